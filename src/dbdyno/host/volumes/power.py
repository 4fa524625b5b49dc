"""The power of a volume: cut while a server writes to it, and put on again; and the pages that are then in
flight: written by a server, and not yet on the device. A power cut may leave half of one.

A page is in flight where what the file system shows differs from what the device holds, byte for byte. The
kernel holds such pages until it writes them back, so they are found while the server stands still. Nothing
else is ever torn: a page that the device has taken whole stays whole.

What a server writes past the page cache (O_DIRECT, O_SYNC) is in flight only within the call itself, which no
stopped process is in. Of such servers no page is found.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host.volumes import mounts
from dbdyno.host.volumes.volume import Volume, VolumeSpecification

SHUTDOWN = 0x8004587D
"""`_IOR('X', 125, __u32)`: one number for EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN and F2FS_IOC_SHUTDOWN."""
WITHOUT_FLUSH = struct.pack("=I", 2)
"""The log is not flushed: EXT4_GOING_FLAGS_NOLOGFLUSH and its like."""
FILE_SYSTEMS = ("ext3", "ext4", "f2fs", "xfs")
"""Those that have the call."""
FACTOR = "storage.filesystem"
HAVE_SWITCH = "name a file system of Dyno's own: storage.filesystem = ext4"


def require_switch(wish: VolumeSpecification) -> None:
    """Raises Blocked for a volume whose file system cannot be shut down."""
    if wish.filesystem not in FILE_SYSTEMS:
        reason = f"the power of a volume with {wish.filesystem} cannot be cut"
        raise Blocked(FACTOR, reason, f"a file system that can be shut down: {', '.join(FILE_SYSTEMS)}")


class PowerSwitch:
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

    def __enter__(self) -> PowerSwitch:
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


FIEMAP = 0xC020660B
"""FS_IOC_FIEMAP (Documentation/filesystems/fiemap.rst)."""
_REQUEST = struct.Struct("=QQIIII")
"""`struct fiemap`: start, length, flags, how many were mapped, room for how many, reserved."""
_EXTENT = struct.Struct("=QQQQQIIII")
"""`struct fiemap_extent`: place in the file, place on the device, length, four reserved and the flags."""
AT_ONCE = 256
LAST, MERGED = 0x1, 0x1000
"""Flags of an extent whose bytes lie on the device as they are. With any other flag there is nothing to tear:
the place is not known yet, was never written, or is shared."""
SECTOR_BYTES = 512
"""What a device writes whole."""
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class PageInFlight:
    """A page in flight: its file, its place on the device in bytes, what the device holds, and what was
    written."""

    file: Path
    place: int
    held: bytes
    written: bytes

    def torn(self, first: bool) -> bytes:
        """The page as a cut leaves it in the midst of its writing: its first or its second half is there."""
        half = len(self.held) // 2
        parts = (self.written[:half], self.held[half:]) if first else (self.held[:half], self.written[half:])
        return b"".join(parts)


@dataclass(frozen=True)
class DeviceExtent:
    """A part of a file that lies in one piece on the device, all in bytes."""

    offset: int
    place: int
    length: int


def pages_in_flight(volume: Volume, page_bytes: int) -> list[PageInFlight]:
    """All pages of the volume's data that are in flight now. Nobody may write to them meanwhile. None are
    found where a page is a sector, which cannot be torn."""
    if page_bytes < 2 * SECTOR_BYTES:
        return []
    found: list[PageInFlight] = []
    device = os.open(volume.device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        for path in sorted(volume.data.rglob("*")):
            if path.is_file() and not path.is_symlink():
                # A file that is not readable is none that a server keeps rows in.
                with suppress(OSError):
                    found += _pages_of(path, device, page_bytes)
    finally:
        os.close(device)
    return found


def tear(volume: Volume, pages: Sequence[PageInFlight], first: Sequence[bool]) -> int:
    """Writes half of each page to the device of a volume that is not mounted: the first half where `first`
    says so. Returns how many were torn: one that reached the device meanwhile is left whole."""
    count = 0
    device = os.open(volume.device, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
    try:
        for page, with_first in zip(pages, first, strict=True):
            with _aligned(len(page.held)) as buffer:
                os.preadv(device, [buffer], page.place)
                if buffer[:] != page.held:
                    continue
                buffer[:] = page.torn(with_first)
                os.pwritev(device, [buffer], page.place)
                count += 1
        os.fsync(device)
    finally:
        os.close(device)
    return count


def _pages_of(path: Path, device: int, page_bytes: int) -> Iterator[PageInFlight]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for extent in extents(file):
            for offset, place, length in _pieces(extent, page_bytes):
                shown = os.pread(file, length, offset)
                # The end of a file may be less than a page, and its last block is longer than it.
                whole = len(shown) // page_bytes * page_bytes
                shown, held = shown[:whole], _read(device, length, place)[:whole]
                if shown != held:
                    yield from _differing(path, place, held, shown, page_bytes)
    finally:
        os.close(file)


def _differing(path: Path, place: int, held: bytes, shown: bytes, page_bytes: int) -> Iterator[PageInFlight]:
    for start in range(0, len(shown), page_bytes):
        was, now = held[start : start + page_bytes], shown[start : start + page_bytes]
        if was != now:
            yield PageInFlight(path, place + start, was, now)


def _pieces(extent: DeviceExtent, page_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Offset, place and length of pieces of whole pages, none of them long."""
    first = -(-extent.offset // page_bytes) * page_bytes
    end = (extent.offset + extent.length) // page_bytes * page_bytes
    step = max(page_bytes, READ_BYTES // page_bytes * page_bytes)
    for offset in range(first, end, step):
        yield offset, extent.place + offset - extent.offset, min(step, end - offset)


def extents(file: int) -> list[DeviceExtent]:
    """Where an open file lies on its device, as far as its bytes lie there as they are. Raises OSError on a
    file system that does not say."""
    found: list[DeviceExtent] = []
    start = 0
    while True:
        answer = bytearray(_REQUEST.size + AT_ONCE * _EXTENT.size)
        _REQUEST.pack_into(answer, 0, start, 2**64 - 1 - start, 0, 0, AT_ONCE, 0)
        fcntl.ioctl(file, FIEMAP, answer)
        mapped = _REQUEST.unpack_from(answer)[3]
        flags = LAST
        for number in range(mapped):
            fields = _EXTENT.unpack_from(answer, _REQUEST.size + number * _EXTENT.size)
            offset, place, length, flags = fields[0], fields[1], fields[2], fields[5]
            start = offset + length
            if not flags & ~(LAST | MERGED):
                found.append(DeviceExtent(offset, place, length))
        if flags & LAST:
            return found


def _read(device: int, length: int, place: int) -> bytes:
    with _aligned(length) as buffer:
        os.preadv(device, [buffer], place)
        return buffer[:]


def _aligned(length: int) -> mmap.mmap:
    """Memory that begins with a page of its own, as direct I/O asks for."""
    return mmap.mmap(-1, length)
