"""Loop devices: a file that serves as a block device (loop(4)). They clear themselves at the last close."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host import kernel_files
from dbdyno.host.journal import Journal, undoes

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
    # A file that was removed since is shown with a mark behind its name.
    if not held.exists() or kernel_files.text(held).removesuffix(" (deleted)") != entry["backing"]:
        return
    descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, LOOP_CLR_FD)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
    finally:
        os.close(descriptor)
