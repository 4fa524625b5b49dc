"""Hosts of a fleet on one machine: each has a network, a name, mounts and folders of Dyno's of its own. In
their midst lies a hub, where the store's PostgreSQL listens. Needs root.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.needs import IS_ROOT, on_machine

HUB_ADDRESS = "10.99.0.1"
PROGRAMS = ("ip", "nsenter", "unshare", "setpriv")
FOLDERS = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "DYNO_HOST_FOLDER")
DYNO = str(Path(sys.executable).with_name("dyno"))


def lacking() -> str:
    """What this machine lacks for namespaces; empty where nothing."""
    if not IS_ROOT:
        return "namespaces of hosts need root"
    missing = [program for program in PROGRAMS if on_machine(program) is None]
    if missing:
        return f"no {missing[0]}"
    command = ("unshare", "--net", "--uts", "--mount", "ip", "link", "set", "lo", "up")
    tried = subprocess.run(command, capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"the kernel refuses them: {tried.stderr.strip()}"


class Space:
    """Namespaces that live as long as this object is open: of a network, and of a host's name and mounts."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = ("unshare", "--net", "--uts", "--mount", "sh", "-c", f"hostname {name}; echo in; cat")
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        self.enters = ("nsenter", "-t", str(self._holder.pid), "--net", "--uts", "--mount", "--")
        self.run("ip", "link", "set", "lo", "up")

    @property
    def process_id(self) -> int:
        return self._holder.pid

    def run(self, *command: str) -> None:
        subprocess.run([*self.enters, *command], check=True, capture_output=True)

    def process_ids(self) -> list[int]:
        """All processes in its network but the one that holds it."""
        own = Path(f"/proc/{self.process_id}/ns/net").readlink()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "ns/net").readlink() == own and _lives(folder):
                    found.append(int(folder.name))
        holders = {self.process_id, *_children(self.process_id)}
        return [one for one in found if one not in holders]

    def close(self) -> None:
        for process_id in self.process_ids():
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()


class Machine(Space):
    """A host with a way to the hub, and a worker that can be killed, stopped and started."""

    def __init__(self, name: str, number: int, hub: Space, folder: Path) -> None:
        super().__init__(name)
        self.folder, self._hub, self._link = folder / name, hub, f"to-{name}"
        self.worker: subprocess.Popen[bytes] | None = None
        self.variables = folders_in(self.folder)
        link = ("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0")
        hub.run(*link, "netns", str(self.process_id))
        hub.run("ip", "address", "add", f"10.99.{number}.1/30", "dev", self._link)
        hub.run("ip", "link", "set", self._link, "up")
        self.run("ip", "address", "add", f"10.99.{number}.2/30", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "route", "add", "default", "via", f"10.99.{number}.1")

    @property
    def alive(self) -> bool:
        return self.worker is not None and self.worker.poll() is None

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"

    @property
    def journals(self) -> list[Path]:
        """What a Dyno of this host has changed and not put back."""
        places = (self.folder / "DYNO_HOST_FOLDER" / name for name in ("journal", "standing"))
        return [path for place in places if place.is_dir() for path in place.iterdir()]

    def connected(self, up: bool) -> None:
        """Lays the way to the hub, or cuts it: nothing passes then, and nobody is told."""
        self._hub.run("ip", "link", "set", self._link, "up" if up else "down")

    def start_worker(self, url: str, lease: str) -> None:
        self.worker = self.another_worker(url, lease)

    def another_worker(self, url: str, lease: str) -> subprocess.Popen[bytes]:
        command = (DYNO, "worker", "start", "--name", self.name, "--lease", lease)
        with self.log.open("ab") as log:
            return started(self, command, {**self.variables, "DYNO_STORE": url}, stderr=log, stdout=log)

    def kill(self) -> None:
        assert self.worker is not None
        self.worker.kill()
        self.worker.wait()


def started(
    space: Space, command: Sequence[str], variables: Mapping[str, str], **how: Any
) -> subprocess.Popen[bytes]:
    """A process in the namespaces; a signal that is sent to it arrives at the command itself."""
    return subprocess.Popen([*space.enters, *command], env={**os.environ, **variables}, **how)


def folders_in(folder: Path) -> dict[str, str]:
    """The variables that lead to Dyno's own folders, all in one."""
    found = {name: str(folder / name) for name in FOLDERS}
    found["XDG_RUNTIME_DIR"] = str(folder / "r")
    for place in found.values():
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


@contextmanager
def machines(names: Sequence[str], folder: Path) -> Iterator[tuple[Space, list[Machine]]]:
    """A hub and hosts around it. All that runs there is gone at the end."""
    spaces = list[Space]()
    try:
        hub = Space("hub")
        spaces.append(hub)
        hub.run("ip", "address", "add", f"{HUB_ADDRESS}/32", "dev", "lo")
        hub.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
        found = [Machine(name, number, hub, folder) for number, name in enumerate(names, 1)]
        spaces += found
        yield hub, found
    finally:
        for space in reversed(spaces):
            space.close()


def wait_for(what: str, holds: Any, seconds: float) -> None:
    """Raises AssertionError where something does not come about in time."""
    until_s = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until_s, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)


def _lives(folder: Path) -> bool:
    return (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"


def _children(process_id: int) -> list[int]:
    text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    return [int(word) for word in text.split()]
