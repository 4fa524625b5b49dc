"""The power of a volume: cut while a server writes to it, and put on again.

The file system is shut down without flushing its log (EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN). From then on
every write fails, and what the kernel had not yet written is lost, as when the power fails. What the device
had taken stays: a cut shows no loss from a device whose own cache is volatile.

It is only ever done to a volume that Dyno made for the trial, and that nothing else of the host has mounted.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host.volumes import mounts
from dbdyno.host.volumes.volume import Volume, Wish

SHUTDOWN = 0x8004587D
"""`_IOR('X', 125, __u32)`: one number for EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN and F2FS_IOC_SHUTDOWN."""
WITHOUT_FLUSH = struct.pack("=I", 2)
"""The log is not flushed: EXT4_GOING_FLAGS_NOLOGFLUSH and its like."""
FILE_SYSTEMS = ("ext3", "ext4", "f2fs", "xfs")
"""Those that have the call."""
FACTOR = "storage.filesystem"
HAVE_SWITCH = "name a file system of Dyno's own: storage.filesystem = ext4"


def require_switch(wish: Wish) -> None:
    """Raises Blocked for a volume whose file system cannot be shut down."""
    if wish.filesystem not in FILE_SYSTEMS:
        reason = f"the power of a volume with {wish.filesystem} cannot be cut"
        raise Blocked(FACTOR, reason, f"a file system that can be shut down: {', '.join(FILE_SYSTEMS)}")


class Switch:
    """The switch of one volume, found and checked before the load begins, so that cutting is one call.

    Raises Blocked for a volume that is not Dyno's own. A context manager, because an open switch keeps the
    volume mounted.
    """

    def __init__(self, volume: Volume) -> None:
        require_switch(volume.wish)
        self._filesystem = volume.wish.filesystem
        self._descriptor = os.open(point_of(volume), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _require_own(self._descriptor, volume)
        except BaseException:
            self.close()
            raise

    def off(self) -> None:
        """Cuts the power. Raises Blocked where this kernel's file system lacks the call."""
        try:
            fcntl.ioctl(self._descriptor, SHUTDOWN, WITHOUT_FLUSH)
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM):
                raise
            reason = f"this kernel does not shut {self._filesystem} down: {error.strerror}"
            hint = "run dyno as root, with ext4 or xfs, which have the call since Linux 4.11"
            raise Blocked(FACTOR, reason, hint) from None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def point_of(volume: Volume) -> Path:
    """Where the volume is mounted."""
    return volume.data.parent


def lift(volume: Volume) -> None:
    """Unmounts a volume, whose servers have ended."""
    mounts.unmount(point_of(volume))


def put_on(volume: Volume) -> None:
    """Mounts a volume again, as it was. The file system then recovers from its log. Raises Blocked."""
    wish, point = volume.wish, point_of(volume)
    mounts.mount_again(wish.filesystem, str(volume.device), point, wish.mount, "storage.mount")
    volume.mount = mounts.mounted_at(volume.data)


def _require_own(descriptor: int, volume: Volume) -> None:
    """Raises Blocked unless the folder lies on the very device of the volume, in a namespace of Dyno's own,
    and the host has mounted that device nowhere."""
    number = os.fstat(descriptor).st_dev
    named = f"{os.major(number)}:{os.minor(number)}"
    faults = {
        "it is not on the volume's device": number != volume.device.stat().st_rdev,
        "it is mounted where others see it": not mounts.is_private(),
        "the host has mounted it": named in mounts.devices_of_host(),
    }
    fault = next((text for text, is_so in faults.items() if is_so), "")
    if fault:
        reason = f"{point_of(volume)} is not shut down, because {fault}"
        raise Blocked("storage.device", reason, "leave storage.device out: Dyno then makes its own volume")
