"""The command in a process of its own, which begins at once.

To start an interpreter and to import what a run needs takes seconds of a CPU. So each worker of the tests
has a process that imported it once, and forks for each command. What it forks has the arguments, environment,
folder and streams that a test gives, and ends as any process does, with all but what it imported taken down.
It waits for no disk, because a kill loses nothing that the kernel has. What a real start or end alone shows,
such as imports, arguments that others see and the encoding of streams, is asked with `conftest.DYNO`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest

from dbdyno.cli import main
from dbdyno.frozen import Frozen
from dbdyno.report.renderers import page
from tests.conftest import once_in_session, wait_for_no_disk

NUMBER = struct.Struct("=q")
"""How the number of a process and its exit code are told."""
MOST_BYTES = 1 << 17
STREAMS = ("stdin", "stdout", "stderr")


class Process:
    """A command that was begun. It is used as `subprocess.Popen` is whose streams are text in UTF-8."""

    def __init__(
        self,
        *arguments: str,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.args = ["dyno", *arguments]
        self.returncode: int | None = None
        asked = {
            "arguments": arguments,
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
        }
        lines = [_line(number, given) for number, given in enumerate((stdin, stdout, stderr))]
        self.stdin, self.stdout, self.stderr = (ours for ours, _ in lines)
        self._status, status = os.pipe()
        theirs = [*(line for _, line in lines), status]
        socket.send_fds(_server()[0], [json.dumps(asked).encode()], theirs)
        for line in theirs:
            os.close(line)
        self.pid = self._told()

    def _told(self) -> int:
        told = os.read(self._status, NUMBER.size)
        assert told, "the process that forks has ended"
        return int(NUMBER.unpack(told)[0])

    def _looked(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout_s)[0]:
            self.returncode = self._told()
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        return self._looked(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._looked(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is left of both streams, once the command has ended."""
        with ThreadPoolExecutor(1) as pool:
            errors = pool.submit(_rest, self.stderr)
            output = _rest(self.stdout)
            self.wait(timeout)
            return output, errors.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def run(
    *arguments: str,
    stdin: int | IO[Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a command says until it has ended, and its exit code."""
    pipe = subprocess.PIPE
    with Process(*arguments, stdin=stdin, stdout=pipe, stderr=pipe, env=env, cwd=cwd) as process:
        said = process.communicate()
    return subprocess.CompletedProcess(process.args, process.wait(), *said)


def _rest(stream: IO[str] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()


def _line(number: int, given: int | IO[Any] | None) -> tuple[IO[str] | None, int]:
    """Our end of a stream, where there is one, and the end that the command has."""
    if given == subprocess.PIPE:
        reads, writes = os.pipe()
        ours, theirs = (writes, reads) if number == 0 else (reads, writes)
        return os.fdopen(ours, "w" if number == 0 else "r", encoding="utf-8"), theirs
    if given == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if given is None:
        return None, os.dup(number)
    return None, os.dup(given if isinstance(given, int) else given.fileno())


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The line to the process that forks. It ends with whoever holds the line."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
        root = Path(__file__).parents[1]
        server = subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=os.environ
        )
    atexit.register(_end, ours, server)
    # Whatever the tests of this worker have imported.
    ours.send(json.dumps([name for name in sys.modules if name.startswith("dbdyno.")]).encode())
    return ours, server


def _end(line: socket.socket, server: subprocess.Popen[bytes]) -> None:
    # A process that a test left may have the line as well.
    line.shutdown(socket.SHUT_RDWR)
    server.wait()


def _forked(line: socket.socket) -> bool:
    """Forks for each command that is asked for. True in the process of a command, and False once nobody can
    ask any more."""
    for name in json.loads(line.recv(MOST_BYTES)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _build_models(Frozen)
    page.vega = cache(partial(str, once_in_session("vega.js", partial(_by_a_fork, page.vega))))
    # What was imported is no garbage, and each process would copy the pages in which it is looked at.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The kernel takes its children away at once: tests look at what is left below their own process.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, lines, _, _ = socket.recv_fds(line, MOST_BYTES, len(STREAMS) + 1)
        if not asked:
            return False
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.close()
            _keep(lines)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _become(json.loads(asked), lines)
            return True
        for one in lines:
            os.close(one)


def _build_models(base: type[Frozen]) -> None:
    """Builds what checks each noun, which a command does for those that it uses."""
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


def _by_a_fork(make: Callable[[], str]) -> str:
    """What a process of its own makes: to draw begins threads, and what forks must have none."""
    with tempfile.TemporaryFile() as made:
        if (process_id := os.fork()) == 0:
            with contextlib.suppress(Exception):
                made.write(make().encode())
                made.flush()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(process_id, 0)[1] == 0, "what it makes cannot be made"
        made.seek(0)
        return made.read().decode()


def _keep(lines: Sequence[int]) -> None:
    """Forks once more: returns in the new process, and tells in this one its number and how it ended."""
    *streams, status = lines
    if (process_id := os.fork()) == 0:
        os.close(status)
        return
    for stream in streams:
        os.close(stream)
    # Whoever asked may have gone.
    with contextlib.suppress(OSError):
        os.write(status, NUMBER.pack(process_id))
        _, ended = os.waitpid(process_id, 0)
        os.write(status, NUMBER.pack(os.waitstatus_to_exitcode(ended)))
    os._exit(0)


def _become(asked: Mapping[str, Any], lines: Sequence[int]) -> None:
    """Takes the streams, folder, environment and arguments of a command that begins."""
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    wait_for_no_disk(Path(tempfile.gettempdir()), pytest.MonkeyPatch())
    sys.argv = [str(Path(sys.executable).with_name("dyno")), *asked["arguments"]]
    for number, (name, line) in enumerate(zip(STREAMS, lines, strict=False)):
        os.dup2(line, number)
        os.close(line)
        begun = getattr(sys, name)
        binary = os.fdopen(number, "rb" if number == 0 else "wb", closefd=False)
        at_once = name == "stderr" or os.isatty(number)
        made = io.TextIOWrapper(binary, begun.encoding, begun.errors, line_buffering=at_once)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def _end_at_once(code: object) -> None:
    """Ends with an exit code as an interpreter does, but takes down nothing of what was imported, because
    that would copy it."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__" and _forked(socket.socket(fileno=int(sys.argv[1]))):
    try:
        main()
    except SystemExit as ended:
        # Of what cannot be written any more, the interpreter tells.
        with contextlib.suppress(OSError):
            _end_at_once(ended.code)
        raise
