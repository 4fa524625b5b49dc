"""A mount namespace for one program that may write to one file, and sees no device of the host."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path

from dbdyno.host.volumes.mounts import CLONE_NEWNS, MS_REC_PRIVATE

SEEN = Path("/dev/volume.img")
"""Where the program finds its file."""
HARMLESS = ("null", "zero", "random", "urandom")
MS_BIND = 4096
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
MOUNT_ATTR_RDONLY = 1
MAY_BE_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL)
_LIBC = ctypes.CDLL(None, use_errno=True)


def seclude(file: Path) -> Callable[[], None]:
    """For `before_exec`: the program sees `file` as SEEN, in a /dev that holds no device but null, zero and
    random, and all else read-only (mount_setattr(2), Linux 5.12). The step raises OSError without the right.
    """
    own = os.fsencode(file.resolve())

    def enter() -> None:
        if _LIBC.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        _mount(b"none", b"/", None, MS_REC_PRIVATE)
        # Opened before the folder is covered, and bound from there.
        held = {os.fsencode(SEEN): os.open(own, os.O_PATH)}
        held |= {f"/dev/{name}".encode(): os.open(f"/dev/{name}", os.O_PATH) for name in HARMLESS}
        _mount(b"tmpfs", b"/dev", b"tmpfs", 0)
        for point, descriptor in held.items():
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o600))
            _mount(f"/proc/self/fd/{descriptor}".encode(), point, None, MS_BIND)
            os.close(descriptor)
        if _set_attributes(b"/", AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0):
            _set_attributes(os.fsencode(SEEN), 0, 0, MOUNT_ATTR_RDONLY)

    return enter


def _mount(source: bytes, point: bytes, kind: bytes | None, flags: int) -> None:
    if _LIBC.mount(source, point, kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


def _set_attributes(point: bytes, flags: int, on: int, off: int) -> bool:
    """Changes a mount's attributes; False where the kernel cannot, so that /dev alone is closed off."""
    attributes = struct.pack("=QQQQ", on, off, 0, 0)
    if _LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, point, flags, attributes, len(attributes)) == 0:
        return True
    if ctypes.get_errno() in MAY_BE_MISSING:
        return False
    raise OSError(ctypes.get_errno(), "mount_setattr")
