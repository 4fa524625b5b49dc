"""Calls of the kernel for namespaces and what is mounted in them. Each is safe between fork and exec."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
CLONE_NEWIPC = 0x08000000
MS_NOSUID, MS_NODEV = 2, 4
MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE, MS_SHARED = 0x1000, 0x4000, 0x40000, 0x80000, 0x100000
MOUNT_ATTR_RDONLY = 1
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Moves the calling thread into namespaces of its own (unshare(2)). Raises OSError where it may not."""
    if _LIBC.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def enter(descriptor: int, kind: int) -> None:
    """Moves the calling thread into the namespace of that kind which an open file stands for (setns(2)).
    Raises OSError where it may not."""
    if _LIBC.setns(descriptor, kind) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def mount(source: bytes, point: bytes, kind: bytes | None, flags: int) -> None:
    """mount(2) without options of the file system. Raises OSError where it fails."""
    if _LIBC.mount(source, point, kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


def set_attributes(point: bytes, on: int, off: int, *, recursive: bool = False) -> None:
    """Switches attributes of a mount on and off, with those of all mounts below it if `recursive`
    (mount_setattr(2), Linux 5.12). Raises OSError where it fails."""
    attributes = struct.pack("=QQQQ", on, off, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, point, flags, attributes, len(attributes)) != 0:
        raise OSError(ctypes.get_errno(), "mount_setattr")


def map_user(inside: int, outside: int, group_inside: int, group_outside: int) -> None:
    """Gives the user and the group of the calling process numbers in its new user namespace
    (user_namespaces(7))."""
    for name, text in (
        ("setgroups", b"deny"),
        ("uid_map", f"{inside} {outside} 1".encode()),
        ("gid_map", f"{group_inside} {group_outside} 1".encode()),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text)
        os.close(descriptor)


SEEN = Path("/dev/volume.img")
"""Where the program finds its file."""
HARMLESS = ("null", "zero", "random", "urandom")
MAY_BE_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL)


def seclude(file: Path) -> Callable[[], None]:
    """For `before_exec`: the program sees `file` as SEEN, in a /dev that holds no device but null, zero and
    random, and all else read-only (mount_setattr(2), Linux 5.12). The step raises OSError without the right.
    """
    own = os.fsencode(file.resolve())

    def enter() -> None:
        unshare(CLONE_NEWNS)
        mount(b"none", b"/", None, MS_REC | MS_PRIVATE)
        # Opened before the folder is covered, and bound from there.
        held = {os.fsencode(SEEN): os.open(own, os.O_PATH)}
        held |= {f"/dev/{name}".encode(): os.open(f"/dev/{name}", os.O_PATH) for name in HARMLESS}
        mount(b"tmpfs", b"/dev", b"tmpfs", 0)
        for point, descriptor in held.items():
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o600))
            mount(f"/proc/self/fd/{descriptor}".encode(), point, None, MS_BIND)
            os.close(descriptor)
        try:
            set_attributes(b"/", MOUNT_ATTR_RDONLY, 0, recursive=True)
            set_attributes(os.fsencode(SEEN), 0, MOUNT_ATTR_RDONLY)
        except OSError as refused:
            # Where the kernel cannot, /dev alone is closed off.
            if refused.errno not in MAY_BE_MISSING:
                raise

    return enter
