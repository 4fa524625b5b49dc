"""What runs on a load host: it keeps the driver's file there, and starts the driver from it.

This text is sent over SSH as it is, so it imports nothing but Python's own library, and nothing of Dyno lies
on that host but the one file. The first line that it says is of these:

    {"ready": {"python", "machine", "kernel", "cpu", "cpus"}}
    {"kept": PATH}
    {"refused": WHY, "detail": "..."}

WHY is a key of `ssh.REFUSALS`. After "ready" it speaks as `driver/child.py` does, and knows four verbs more.
They are answered while a load waits, too:

    {"verb": "ping"}                                    ->  {"reply": {"received_unix_s", "sent_unix_s", ...}}
    {"verb": "reach", "address", "port", "count"}       ->  {"reply": {"connects_s": [...]}}
    {"verb": "hold", "text"}                            ->  {"reply": {"path"}}
    {"verb": "carry", "address", "port", "word", "way", "s"}  ->  {"reply": {"bytes_per_s"}}

A ping also tells what this host's CPUs and its network did in all stretches of load so far. `reach` times
the opening of a connection to the server: one round trip of the network. `hold` keeps a text in memory, at a
path that this process alone can read. `carry` sends or takes bytes for `s` seconds, and tells what it took.

A line with the verb "alive" has no answer. The process ends where it reads nothing for `quiet_s`, and as soon
as its input ends, even in the midst of a load: whoever asked for that is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import platform
import queue
import resource
import select
import socket
import sys
import threading
import time
import types
import zipfile
from pathlib import Path
from typing import Any, NoReturn

MODULE = "_driver.abi3.so"
CHILD = "child.py"
MACHINE = "machine"
"""The members of the driver's file: the driver, the child that speaks for it, and for which CPUs it is."""
ALIVE = "alive"
CONNECT_S = 5.0
TO_SERVER, FROM_SERVER = "to_server", "from_server"
CHUNK, WORD_BYTES = 1 << 16, 16
"""How much is sent at a time, and how long the word is by which a peer is known."""
SEGMENTS = Path("/proc/net/snmp")
"""A line of names and one of numbers for each protocol (RFC 4022 for TCP)."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def place(digest: str) -> Path:
    """Where the driver's file with this hash lies on a load host."""
    return Path.home() / ".cache" / "dyno" / f"driver-{digest[:16]}.zip"


def say(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def refuse(why: str, detail: object = "") -> NoReturn:
    say({"refused": why, "detail": str(detail)})
    os._exit(0)


def keep(digest: str, size: int) -> None:
    """Keeps the file that follows on standard input. It gets its name when it is whole and on disk."""
    path = place(digest)
    part = path.with_suffix(f".{os.getpid()}")
    content = sys.stdin.buffer.read(size)
    if hashlib.sha256(content).hexdigest() != digest:
        refuse("torn", f"{len(content)} of {size} bytes came")
    try:
        if path.exists() and path.read_bytes() == content:
            say({"kept": str(path)})
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        refuse("disk", f"{path.parent}: {error.strerror}")
    say({"kept": str(path)})


def start(digest: str, quiet_s: float) -> None:
    """Checks the file by its hash and serves requests with the driver in it, unless there is nothing to read
    for `quiet_s`."""
    try:
        content = place(digest).read_bytes()
    except FileNotFoundError:
        refuse("absent")
    except OSError as error:
        refuse("disk", f"{place(digest)}: {error.strerror}")
    if hashlib.sha256(content).hexdigest() != digest:
        refuse("changed", place(digest))
    members = zipfile.ZipFile(io.BytesIO(content))
    built_for = members.read(MACHINE).decode()
    if built_for != platform.machine():
        refuse("machine", f"{platform.machine()}, and the driver is built for {built_for}")
    try:
        child = loaded(members)
    except ImportError as error:
        refuse("load", error)
    requests = Requests(quiet_s)
    say({"ready": about()})
    child.serve(requests.read_line)


def loaded(members: zipfile.ZipFile) -> types.ModuleType:
    """The module of the child. The driver is loaded from memory, so that it is what was checked."""
    for name in ("dbdyno", "dbdyno.driver"):
        sys.modules[name] = types.ModuleType(name)
    path = held(members.read(MODULE))
    loader = importlib.machinery.ExtensionFileLoader("dbdyno.driver._driver", path)
    spec = importlib.util.spec_from_loader(loader.name, loader, origin=path)
    assert spec is not None
    driver = importlib.util.module_from_spec(spec)
    loader.exec_module(driver)
    sys.modules[loader.name] = driver
    sys.modules["dbdyno.driver"].__dict__["_driver"] = driver
    child = types.ModuleType("dbdyno.driver.child")
    sys.modules[child.__name__] = child
    exec(compile(members.read(CHILD), CHILD, "exec"), child.__dict__)
    return child


def held(content: bytes) -> str:
    """A path of this process's own memory that holds these bytes."""
    descriptor = os.memfd_create("dyno")
    # It stays open, because the path leads there for as long.
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return f"/proc/self/fd/{descriptor}"


def about() -> dict[str, Any]:
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpu": model,
        "cpus": os.cpu_count() or 1,
    }


class Requests:
    """The lines of standard input, which a thread waits for, so that their end is noticed under load as
    well."""

    def __init__(self, quiet_s: float) -> None:
        self._lines: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self._began: dict[str, float] | None = None
        self._loaded = dict.fromkeys(counters(), 0.0)
        # The child gives its standard output to what an engine's library prints.
        self._replies = os.dup(1)
        threading.Thread(target=self._listen, args=(quiet_s,), name="requests", daemon=True).start()

    def read_line(self) -> str:
        """The next request that is the child's to answer. Whatever it does until it asks for another one
        counts as load."""
        if self._began is not None:
            for name, value in counters().items():
                self._loaded[name] += value - self._began[name]
            self._began = None
        while True:
            line, received_unix_s = self._lines.get()
            request: dict[str, Any] = json.loads(line)
            answer = self._answer(request, received_unix_s)
            if answer is None:
                if request["verb"] in ("run", "go on"):
                    self._began = counters()
                return line
            os.write(self._replies, json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict[str, Any], received_unix_s: float) -> dict[str, Any] | None:
        """What this host itself answers; None where the driver has to."""
        if request["verb"] == "ping":
            stamps = {"received_unix_s": received_unix_s, "sent_unix_s": time.time()}
            return {"reply": {**stamps, **self._loaded}}
        if request["verb"] == "hold":
            return {"reply": {"path": held(request["text"].encode())}}
        if request["verb"] == "reach":
            return reached(request["address"], request["port"], request["count"])
        if request["verb"] == "carry":
            word = bytes.fromhex(request["word"])
            return carried((request["address"], request["port"]), word, request["way"], request["s"])
        return None

    def _listen(self, quiet_s: float) -> None:
        rest = b""
        while True:
            if not select.select([0], [], [], quiet_s)[0]:
                os._exit(1)
            part = os.read(0, 1 << 16)
            received_unix_s = time.time()
            if not part:
                os._exit(0)
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if json.loads(line)["verb"] != ALIVE:
                    self._lines.put((line.decode(), received_unix_s))


def reached(address: str, port: int, count: int) -> dict[str, Any]:
    """How long connections to a server take to open, one after the other, each in seconds."""
    connects_s = []
    for _ in range(count):
        began = time.perf_counter()
        try:
            with socket.create_connection((address, port), CONNECT_S):
                connects_s.append(time.perf_counter() - began)
        except OSError as error:
            why = error.strerror or str(error)
            return {"error": {"kind": "connect", "message": why, "hint": ""}}
    return {"reply": {"connects_s": connects_s}}


def carried(place: tuple[str, int], word: bytes, way: str, seconds: float) -> dict[str, Any]:
    """What the network carries between here and a socket of the server's host, in one direction."""
    try:
        with socket.create_connection(place, CONNECT_S) as peer:
            peer.sendall(word)
            if way == FROM_SERVER:
                return {"reply": {"bytes_per_s": taken(peer, seconds)}}
            sent(peer, bytes(CHUNK))
            return {"reply": {"bytes_per_s": 0.0}}
    except OSError as error:
        return {"error": {"kind": "connect", "message": error.strerror or str(error), "hint": ""}}


def taken(peer: socket.socket, seconds: float) -> float:
    """What comes from a peer in the second half of so many seconds, in bytes per second."""
    began, size, room = time.perf_counter(), 0, bytearray(CHUNK)
    half, counted_from = began + seconds / 2, 0.0
    while (now := time.perf_counter()) < began + seconds:
        came = peer.recv_into(room)
        if not came:
            break
        if now >= half:
            counted_from = counted_from or now
            size += came
    return size / (time.perf_counter() - counted_from) if size else 0.0


def sent(peer: socket.socket, chunk: bytes) -> None:
    """Sends to a peer until it has enough, and closes."""
    with contextlib.suppress(OSError):
        while True:
            peer.sendall(chunk)


def told(path: Path) -> str:
    """What the kernel tells in a file; the end of this process where the file cannot be read or is empty."""
    text = why = ""
    try:
        text = path.read_text(encoding="ascii")
    except OSError as error:
        why = f", {error.strerror}"
    return text or refuse("hidden", f"{path}{why}")


def counters() -> dict[str, float]:
    """Running totals: seconds of time, and of CPU time of this host and of this process; segments of TCP."""
    line = told(Path("/proc/stat")).partition("\n")[0]
    values = [int(value) / TICKS_PER_S for value in line.split()[1:]]
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = values[:8]
    own = resource.getrusage(resource.RUSAGE_SELF)
    names, numbers = (line.split() for line in told(SEGMENTS).splitlines() if line.startswith("Tcp:"))
    tcp = dict(zip(names, numbers, strict=True))
    return {
        "load_s": time.monotonic(),
        "busy_s": user + nice + system + interrupt + soft_interrupt,
        "steal_s": steal,
        "driver_s": own.ru_utime + own.ru_stime,
        "segments_sent": float(tcp["OutSegs"]),
        "segments_resent": float(tcp["RetransSegs"]),
    }
