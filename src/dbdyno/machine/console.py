"""An emulated machine with its TPM, and its console: lines that are dated here, and orders to the guest."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import ServerFailed
from dbdyno.host.process import confine, how_it_ended, kill_family
from dbdyno.machine.guest import MARK, Image
from dbdyno.machine.kinds import TPM, Kind, command

SILENT_S = 240.0
"""How long a machine may say nothing before it counts as hanging. A busy host emulates slowly."""
TPM_S = 10.0
SHOWN = 40
"""So many of the latest lines are told of a machine that failed."""


@dataclass(frozen=True)
class Line:
    """A line of the console, and when it was read, in seconds of a clock that never goes back."""

    text: str
    at_s: float

    @property
    def marked(self) -> str:
        """What the guest tells Dyno; empty for any other line."""
        return self.text.removeprefix(MARK) if self.text.startswith(MARK) else ""


@dataclass
class Emulated:
    """A machine that is up: the lines of its console as they come."""

    machine: subprocess.Popen[bytes]
    clock: Callable[[], float] = time.monotonic
    _lines: list[str] = field(default_factory=list)
    _begun: bytes = b""

    @property
    def log(self) -> str:
        return "\n".join(self._lines[-SHOWN:])

    def order(self, text: str) -> None:
        """Has the guest do something. Raises ServerFailed where nobody reads that."""
        assert self.machine.stdin is not None
        try:
            self.machine.stdin.write(f"{text}\n".encode())
            self.machine.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def until(self, marked: str) -> list[Line]:
        """All lines up to the one that the guest marks so. Raises ServerFailed for a machine that ends before
        that, and for one that hangs."""
        found = list[Line]()
        for line in self._read():
            found.append(line)
            if line.marked == marked:
                return found
        raise AssertionError("lines end with an error alone")

    def _read(self) -> Iterator[Line]:
        assert self.machine.stdout is not None
        while True:
            if not select.select([self.machine.stdout], [], [], SILENT_S)[0]:
                told = f"the emulated machine said nothing for {SILENT_S:g} s"
                raise ServerFailed(told, "look at its console", self.log)
            piece, now_s = os.read(self.machine.stdout.fileno(), 1 << 16), self.clock()
            if not piece:
                raise self._ended()
            *whole, self._begun = (self._begun + piece).split(b"\n")
            for one in whole:
                text = one.decode(errors="replace").strip()
                # Logs have a line of their own, which nobody would read.
                self._lines.append(text[:200])
                yield Line(text, now_s)

    def _ended(self) -> ServerFailed:
        told = how_it_ended(self.machine.wait())
        return ServerFailed(f"the emulated machine ended: {told}", "look at its console", self.log)


@contextmanager
def powered_on(kind: Kind, image: Image, folder: Path) -> Iterator[Emulated]:
    """A machine with a TPM that has never been used, from its power on until the end of the block. `folder`
    is empty, and its path is short enough for a socket's. Raises ServerFailed where one of them does not
    start."""
    socket = folder / "tpm.socket"
    state = folder / "tpm"
    state.mkdir()
    told = f"type=unixio,path={socket}"
    tpm = _started(
        [TPM, "socket", "--tpm2", "--tpmstate", f"dir={state}", "--ctrl", told], folder / "tpm.log"
    )
    try:
        _wait_for(socket, tpm, folder / "tpm.log")
        asked = command(kind, str(image.kernel), str(image.initrd), image.options, str(socket))
        machine = _started(asked, folder / "machine.log")
        try:
            yield Emulated(machine)
        finally:
            kill_family(machine)
    finally:
        kill_family(tpm)


def _started(asked: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as errors:
        return subprocess.Popen(
            asked,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
            preexec_fn=confine(),
        )


def _wait_for(socket: Path, tpm: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + TPM_S
    while not socket.exists():
        if tpm.poll() is not None or time.monotonic() > until:
            said = next(iter(log.read_text(errors="replace").strip().splitlines()), "it makes no socket")
            raise ServerFailed(f"{TPM} does not start: {said}", "run it by hand")
        time.sleep(0.02)
