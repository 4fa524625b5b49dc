"""The guest: what its first process does, and the image that its kernel starts with; and the machine around
it, with its TPM and its console.

The guest has no disk and no network. Its image holds all: the engine's program and data, and the kernel
itself, because a fast reset starts the same kernel with the same image.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from dbdyno.errors import ServerFailed
from dbdyno.host.process import confine, how_it_ended, kill_family
from dbdyno.machine.kinds import TPM, MachineKind, command
from dbdyno.machine.packages import KEXEC, SHELL, Parts

SILENT_S = 240.0
"""How long a machine may say nothing before it counts as hanging. A busy host emulates slowly."""
TPM_S = 10.0
SHOWN = 40
"""So many of the latest lines are told of a machine that failed."""


@dataclass(frozen=True)
class ConsoleLine:
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

    def until(self, marked: str) -> list[ConsoleLine]:
        """All lines up to the one that the guest marks so. Raises ServerFailed for a machine that ends before
        that, and for one that hangs."""
        found = list[ConsoleLine]()
        for line in self._read():
            found.append(line)
            if line.marked == marked:
                return found
        raise AssertionError("lines end with an error alone")

    def _read(self) -> Iterator[ConsoleLine]:
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
                yield ConsoleLine(text, now_s)

    def _ended(self) -> ServerFailed:
        told = how_it_ended(self.machine.wait())
        return ServerFailed(f"the emulated machine ended: {told}", "look at its console", self.log)


@contextmanager
def powered_on(kind: MachineKind, image: BootImage, folder: Path) -> Iterator[Emulated]:
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


MAGIC = b"070701"
LAST = "TRAILER!!!"
ALIGNMENT = 4


@dataclass(frozen=True)
class ImageEntry:
    """A file, a folder or a device below the root. `mode` holds its kind as well; a `device` has two
    numbers."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Iterable[ImageEntry]) -> bytes:
    """The entries in their order. A folder has to come before what lies in it."""
    return b"".join(_packed(entry) for entry in (*entries, ImageEntry(LAST, 0)))


def programs(files: Mapping[str, bytes]) -> list[ImageEntry]:
    """Files that everybody may run, by their paths without a leading slash, and the folders that they lie
    in."""
    parents = {parent for name in files for parent in PurePosixPath(name).parents}
    folders = sorted(str(parent) for parent in parents if str(parent) != ".")
    return [
        *(ImageEntry(name, stat.S_IFDIR | 0o755) for name in folders),
        *(ImageEntry(name, stat.S_IFREG | 0o755, content) for name, content in files.items()),
    ]


def _packed(entry: ImageEntry) -> bytes:
    """The header's 13 numbers have eight hexadecimal digits each. Name and content end at a multiple of
    four."""
    name = entry.name.encode() + b"\0"
    links, size = 1, len(entry.content)
    numbers = (0, entry.mode, 0, 0, links, 0, size, 0, 0, *entry.device, len(name), 0)
    head = MAGIC + b"".join(b"%08X" % number for number in numbers) + name
    return _padded(head) + _padded(entry.content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % ALIGNMENT)


MARK = "dyno:"
"""How each line of the guest begins that is meant for Dyno."""
REGISTERS = 11
"""PCR 0 to 7 are the firmware's, and 10 is the kernel's."""
KERNEL, INNER = "vmlinux", "guest.cpio"
SCRIPT = """#!/{shell} sh
b=/{shell}
echo; echo {mark}up
$b mkdir -p /dev /proc /sys
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t securityfs security /sys/kernel/security
$b stty raw -echo
{ask} | while read -r line; do echo "{mark}answer $line"; done
echo {mark}ready
echo "{mark}kernel $($b uname -r) $($b uname -m)"
echo "{mark}pages $($b grep -m 1 KernelPageSize /proc/self/smaps)"
echo "{mark}firmware $($b base64 -w 0 /sys/kernel/security/tpm0/binary_bios_measurements)"
echo "{mark}measured $($b base64 -w 0 /sys/kernel/security/ima/binary_runtime_measurements)"
n=0
while [ $n -lt {registers} ]; do
    echo "{mark}register $n $($b cat /sys/class/tpm/tpm0/pcr-sha256/$n)"
    n=$((n + 1))
done
echo {mark}waiting
while read -r order; do
    case $order in
    full)
        echo {mark}reset
        $b reboot -f
        ;;
    kexec)
        (echo {kernel}; echo {inner}) | (cd /; $b cpio -o -H newc > /again 2> /dev/null)
        $b cat /{inner} >> /again
        if /{kexec} -l /{kernel} --initrd=/again --command-line="$($b cat /proc/cmdline)"; then
            echo "{mark}before $($b base64 -w 0 /sys/kernel/security/ima/binary_runtime_measurements)"
            echo {mark}reset
            /{kexec} -e
        fi
        ;;
    esac
    # Whoever comes here was not reset.
    echo {mark}waiting
done
"""


@dataclass(frozen=True)
class BootImage:
    """The files that an emulated machine is started with, and the options of its kernel."""

    kernel: Path
    initrd: Path
    options: str


def write(parts: Parts, data: Mapping[str, bytes], ask: str, folder: Path) -> BootImage:
    """Puts the image into an empty folder. Raises DynoError where a part is missing, and OSError."""
    inner = archive(_inside(parts, data, ask))
    content = parts.kernel.read_bytes()
    outer = [
        ImageEntry(KERNEL, stat.S_IFREG | 0o644, content),
        ImageEntry(INNER, stat.S_IFREG | 0o644, inner),
    ]
    initrd = folder / "initrd"
    # The kernel unpacks archives that follow one another.
    initrd.write_bytes(archive(outer) + inner)
    return BootImage(parts.kernel, initrd, _options(parts.kind))


def _inside(parts: Parts, data: Mapping[str, bytes], ask: str) -> list[ImageEntry]:
    files = {name: file.read_bytes() for name, file in parts.files().items()}
    return [
        ImageEntry("dev", stat.S_IFDIR | 0o755),
        ImageEntry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
        *programs({**files, **data, "init": _script(ask).encode()}),
    ]


def _script(ask: str) -> str:
    return SCRIPT.format(
        shell=SHELL,
        mark=MARK,
        ask=ask,
        registers=REGISTERS,
        kernel=KERNEL,
        inner=INNER,
        kexec=KEXEC,
    )


def _options(kind: MachineKind) -> str:
    """Files of a tmpfs are not measured, so the image's are in a ramfs."""
    return f"console={kind.console} quiet loglevel=1 ima_policy=tcb rootfstype=ramfs"
