"""The devices below volumes: loop devices of a file (loop(4)), which clear themselves at the last close, and
named ones, which are used only when the user allowed this very path and nobody's data are on it.

A label says nothing: anybody may choose it. So Dyno keeps the UUID of each file system that it puts on a
named device, in the folder of its own on this host, which nobody else may write.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host import kernel_files, paths
from dbdyno.host.journal import Journal, undoes

NOTHING, MISSING = 2, 127
"""What blkid ends with where there is no signature; and what a shell does where there is no blkid."""
PUT = "volumes"


def probed(place: Path) -> tuple[int, Mapping[str, str]]:
    """What blkid finds on a device or in an image, and what it ended with."""
    command = ["blkid", "--probe", "--output", "export", str(place)]
    environment = {**os.environ, "LC_ALL": "C", "PATH": path_with_sbin()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except FileNotFoundError:
        return MISSING, {}
    return done.returncode, dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def note_put(image: Path) -> None:
    """Notes that an image's file system is about to be put on a device; durably, because the device may
    outlast this Dyno."""
    _, found = probed(image)
    uuid = found.get("UUID", "")
    if not uuid or is_put(uuid):
        return
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(paths.host() / PUT, how, 0o600)
    try:
        os.write(descriptor, f"{uuid}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_put(uuid: str) -> bool:
    """Whether Dyno has put the file system with this UUID on a device."""
    with suppress(FileNotFoundError):
        return uuid in (paths.host() / PUT).read_text().split()
    return False


def path_with_sbin() -> str:
    """Where the makers of file systems lie; a user's own PATH often leaves it out."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def require_device_allowed(device: Path, allowed: Collection[Path]) -> None:
    """Raises Blocked, with the reason, unless Dyno may overwrite the whole device."""
    refusal, remedy = _refusal(device, allowed)
    if refusal:
        raise Blocked("storage.device", f"{device}: {refusal}", remedy)


def _refusal(device: Path, allowed: Collection[Path]) -> tuple[str, str]:
    if device not in allowed:
        return "not allowed to be overwritten", f"if nothing on it is needed: --allow-device {device}"
    if not device.is_block_device():
        return "not a block device of this machine", "lsblk lists them"
    name = device.resolve().name
    if any((Path("/sys/class/block") / name).glob(f"{name}*")):
        return "it is divided into partitions", "name one of them, or another device"
    holders = Path("/sys/class/block") / name / "holders"
    if holders.is_dir() and kernel_files.names(holders):
        return "another device uses it (LVM, RAID, encryption)", "name another device"
    if not _is_free(device):
        return "in use: mounted, or held by another program", "unmount it, or name another device"
    signature = _signature(device)
    if signature:
        return f"it holds {signature}", f"if nothing on it is needed: wipefs --all {device}"
    return "", ""


def _is_free(device: Path) -> bool:
    """An exclusive open fails while a device is mounted or claimed (open(2), O_EXCL on block devices)."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _signature(device: Path) -> str:
    """What lies on the device in words; empty when nothing does, or a volume that this Dyno left there."""
    code, found = probed(device)
    if code == NOTHING or is_put(found.get("UUID", "")):
        return ""
    if code == MISSING:
        return "data of an unknown kind, because blkid is not installed"
    if code != 0:
        return "data that blkid does not recognise"
    return f"{found.get('TYPE') or found.get('PTTYPE', 'data')} {found.get('LABEL', '')}".strip()


CONTROL = Path("/dev/loop-control")
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
LO_FLAGS_AUTOCLEAR = 4
LO_FLAGS_DIRECT_IO = 16

_LOOP_CONFIG = struct.Struct("=II QQQQQ IIII 64s 64s 32s QQ 64x")
"""`struct loop_config`: descriptor, block size, `loop_info64` (linux/loop.h), reserved."""

_ATTEMPTS = 32


class LoopDevice:
    """An attached loop device. It stays as long as somebody has it open: this object, a mount, or a
    server."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @property
    def sysfs(self) -> Path:
        return Path("/sys/block") / self.path.name

    @property
    def direct_io(self) -> bool:
        """Whether the kernel really passes the page cache of the backing file by."""
        return kernel_files.text(self.sysfs / "loop" / "dio") == "1"

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def attach(journal: Journal, backing: Path, factor: str, direct_io: bool = True) -> LoopDevice:
    """Attaches a file to a free loop device. Raises Blocked, for `factor`, without the right or the
    device."""
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Blocked(
            factor,
            "this kernel offers no loop devices",
            "load the loop module, or allow them in the container",
        ) from None
    except PermissionError:
        raise Blocked(factor, "loop devices may be attached by root only", "run dyno as root") from None
    backing_descriptor = os.open(backing, os.O_RDWR | os.O_CLOEXEC)
    try:
        return _attach_free(journal, control, backing, backing_descriptor, direct_io)
    except OSError as error:
        raise Blocked(factor, f"no loop device could be attached: {error.strerror}") from None
    finally:
        os.close(backing_descriptor)
        os.close(control)


def _attach_free(
    journal: Journal, control: int, backing: Path, backing_descriptor: int, direct_io: bool
) -> LoopDevice:
    for _ in range(_ATTEMPTS):
        path = Path(f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}")
        # The kernel tells a device's file by its path without symbolic links.
        journal.note("loop", device=str(path), backing=str(backing.resolve()))
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(descriptor, LOOP_CONFIGURE, _configuration(backing, backing_descriptor, direct_io))
            return LoopDevice(path, descriptor)
        except OSError as error:
            os.close(descriptor)
            # Somebody else took the device between the question and the answer.
            if error.errno != errno.EBUSY:
                raise
    raise OSError(errno.EBUSY, "every free loop device was taken by somebody else")


def _configuration(backing: Path, backing_descriptor: int, direct_io: bool) -> bytes:
    flags = LO_FLAGS_AUTOCLEAR | (LO_FLAGS_DIRECT_IO if direct_io else 0)
    name = os.fsencode(backing)[:63]
    numbers = (0, 0, 0, 0, 0), (0, 0, 0, flags)
    return _LOOP_CONFIG.pack(backing_descriptor, 0, *numbers[0], *numbers[1], name, b"", b"", 0, 0)


@undoes("loop")
def _detach(entry: Mapping[str, Any]) -> None:
    """Detaches a device that still carries Dyno's own file; one that serves somebody else is left alone."""
    device = Path(entry["device"])
    held = Path("/sys/block") / device.name / "loop" / "backing_file"
    try:
        backing = kernel_files.text(held)
    except kernel_files.Gone:
        return
    # A file that was removed since is shown with a mark behind its name.
    if backing.removesuffix(" (deleted)") != entry["backing"]:
        return
    descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, LOOP_CLR_FD)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
    finally:
        os.close(descriptor)
