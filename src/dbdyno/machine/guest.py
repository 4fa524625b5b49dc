"""The guest: what its first process does, and the image that its kernel starts with.

The guest has no disk and no network. Its image holds all: the engine's program and data, and the kernel
itself, because a fast reset starts the same kernel with the same image.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dbdyno.machine.kinds import Kind
from dbdyno.machine.packages import KEXEC, SHELL, Parts

MAGIC = b"070701"
LAST = "TRAILER!!!"
ALIGNMENT = 4


@dataclass(frozen=True)
class Entry:
    """A file, a folder or a device below the root. `mode` holds its kind as well; a `device` has two
    numbers."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Iterable[Entry]) -> bytes:
    """The entries in their order. A folder has to come before what lies in it."""
    return b"".join(_packed(entry) for entry in (*entries, Entry(LAST, 0)))


def programs(files: Mapping[str, bytes]) -> list[Entry]:
    """Files that everybody may run, by their paths without a leading slash, and the folders that they lie
    in."""
    parents = {parent for name in files for parent in PurePosixPath(name).parents}
    folders = sorted(str(parent) for parent in parents if str(parent) != ".")
    return [
        *(Entry(name, stat.S_IFDIR | 0o755) for name in folders),
        *(Entry(name, stat.S_IFREG | 0o755, content) for name, content in files.items()),
    ]


def _packed(entry: Entry) -> bytes:
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
class Image:
    """The files that an emulated machine is started with, and the options of its kernel."""

    kernel: Path
    initrd: Path
    options: str


def write(parts: Parts, data: Mapping[str, bytes], ask: str, folder: Path) -> Image:
    """Puts the image into an empty folder. Raises DynoError where a part is missing, and OSError."""
    inner = archive(_inside(parts, data, ask))
    content = parts.kernel.read_bytes()
    outer = [Entry(KERNEL, stat.S_IFREG | 0o644, content), Entry(INNER, stat.S_IFREG | 0o644, inner)]
    initrd = folder / "initrd"
    # The kernel unpacks archives that follow one another.
    initrd.write_bytes(archive(outer) + inner)
    return Image(parts.kernel, initrd, _options(parts.kind))


def _inside(parts: Parts, data: Mapping[str, bytes], ask: str) -> list[Entry]:
    files = {name: file.read_bytes() for name, file in parts.files().items()}
    return [
        Entry("dev", stat.S_IFDIR | 0o755),
        Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
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


def _options(kind: Kind) -> str:
    """Files of a tmpfs are not measured, so the image's are in a ramfs."""
    return f"console={kind.console} quiet loglevel=1 ima_policy=tcb rootfstype=ramfs"
