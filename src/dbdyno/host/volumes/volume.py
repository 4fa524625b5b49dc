"""A volume for one trial: an image with the pristine data, put on a device, and mounted.

The image is made once for each file system, its options, and the data; a trial gets a clone of it. So
every trial of a variant starts from the same blocks, free space included, which copying files into a
fresh file system cannot give.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import struct
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host import cache, kernel_files
from dbdyno.host.clone import Cloned, clone_file, clone_tree, data_ranges, tree_size_bytes
from dbdyno.host.journal import Journal
from dbdyno.host.namespaces import SEEN, seclude
from dbdyno.host.process import refusal
from dbdyno.host.room import require_memory
from dbdyno.host.volumes import loop, mounts
from dbdyno.host.volumes.loop import note_put, path_with_sbin
from dbdyno.host.volumes.mounts import EXT, maker_fault, merged

LABEL = "dyno"
"""Every file system that Dyno makes bears it, for who looks at a device."""

MKFS = {
    "ext2": ("mkfs.ext2", "e2fsprogs", ("-q", "-F", "-L", LABEL, "-E", "nodiscard,lazy_itable_init=0")),
    "ext3": (
        "mkfs.ext3",
        "e2fsprogs",
        ("-q", "-F", "-L", LABEL, "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    ),
    "ext4": (
        "mkfs.ext4",
        "e2fsprogs",
        ("-q", "-F", "-L", LABEL, "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    ),
    "xfs": ("mkfs.xfs", "xfsprogs", ("-q", "-f", "-K", "-L", LABEL)),
    "btrfs": ("mkfs.btrfs", "btrfs-progs", ("-q", "-f", "-K", "-L", LABEL)),
    "jfs": ("mkfs.jfs", "jfsutils", ("-q", "-L", LABEL)),
    "f2fs": ("mkfs.f2fs", "f2fs-tools", ("-q", "-f", "-t", "0", "-l", LABEL)),
}
"""Each file system's maker, its package, and the options that keep work out of the measured time (lazy
tables)."""

NOT_IN_MEMORY = "less data, or a device that is not in memory"
IMAGE = "volume.img"
SMALLEST_BYTES = 320 << 20
"""xfs refuses less than 300 MiB (mkfs.xfs(8))."""


@dataclass(frozen=True)
class VolumeSpecification:
    """What the storage levels ask for. `device` is `loop`, `ram`, or the path of a block device.

    `size_bytes` 0 leaves the size to `size_for`.
    """

    device: str = "loop"
    filesystem: str = "ext4"
    mkfs: tuple[str, ...] = ()
    mount: tuple[str, ...] = ()
    size_bytes: int = 0


@dataclass
class Volume:
    """A volume that is attached. `mount` is None for a raw one; `direct_io` for a device that has no
    such thing."""

    wish: VolumeSpecification
    device: Path
    data: Path
    cloned: Cloned
    mount: mounts.Mount | None = None
    direct_io: bool | None = None
    written_before_bytes: int = 0
    _loop: loop.LoopDevice | None = field(default=None, repr=False)

    @property
    def sysfs(self) -> Path:
        """The counters of the device that really carries the data."""
        return _sysfs(self.device)

    @property
    def queue(self) -> Path:
        """The device's queue; a partition has that of its disk."""
        own = self.sysfs / "queue"
        return own if own.is_dir() else self.sysfs.resolve().parent / "queue"

    def written_bytes(self) -> int:
        """Bytes that reached the device since the volume was put on it."""
        return _device_written_bytes(self.device) - self.written_before_bytes

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()


def size_for(data_bytes: int, wish: VolumeSpecification) -> int:
    """How large a volume is made: thrice the data and room for logs, in whole MiB, unless the study says."""
    if wish.size_bytes:
        return wish.size_bytes
    wanted = max(SMALLEST_BYTES, 3 * data_bytes + (512 << 20))
    return -(-wanted // (1 << 20)) << 20


def image_of(journal: Journal, pristine: Path, raw_file: str, wish: VolumeSpecification) -> Path:
    """The image that holds the pristine data under a file system; makes it when it is not there yet.

    It lies within the folder of the data, and goes with them. `raw_file` names the one file that a raw
    volume carries. Raises Blocked when the file system cannot be made, filled or mounted here.
    """
    size_bytes = size_for(tree_size_bytes(pristine / "data"), wish)

    def make(making: Path) -> tuple[str, str]:
        _make_image(journal, pristine, raw_file, wish, making / IMAGE, size_bytes)
        options = f" ({' '.join(wish.mkfs)})" if wish.mkfs else ""
        return f"{wish.filesystem}{options}, {size_bytes >> 20} MiB", f"pristine data {pristine.name}"

    # The data's name makes this one the only one of its name in the cache.
    name = f"{image_name(wish, size_bytes)}-{pristine.name[:8]}"
    return cache.shelf("volumes", pristine).once(name, make, note=journal.note_tree) / IMAGE


def image_name(wish: VolumeSpecification, size_bytes: int) -> str:
    """One name for each shape of an image."""
    shape = json.dumps([wish.filesystem, wish.mkfs, size_bytes], sort_keys=True)
    return f"{wish.filesystem}-{hashlib.sha256(shape.encode()).hexdigest()[:12]}"


def _make_image(
    journal: Journal, pristine: Path, raw_file: str, wish: VolumeSpecification, image: Path, size_bytes: int
) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    try:
        if wish.filesystem == "raw":
            _fill_raw(pristine / "data" / raw_file, image)
        else:
            _fill_file_system(journal, pristine / "data", image, wish)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        reason = f"the pristine data do not fit on a volume of {size_bytes >> 20} MiB"
        raise Blocked("storage.size", reason, "a larger storage.size, or none: it is then chosen") from None


def attach(
    journal: Journal, image: Path, pristine: Path, raw_file: str, wish: VolumeSpecification, scratch: Path
) -> Volume:
    """Puts a clone of the image on the wished device and mounts it below `scratch`; its `data` is then
    in place."""
    began = time.monotonic()
    with ExitStack() as undo:
        if wish.device.startswith("/"):
            device, attached = Path(wish.device), None
            note_put(image)
            way = write_to_device(image, device)
        else:
            backing = _backing_folder(journal, wish, image, scratch) / "volume.img"
            way = f"image {clone_file(image, backing)}"
            attached = loop.attach(journal, backing, "storage.device", direct_io=wish.device == "loop")
            undo.callback(attached.close)
            device = attached.path
        point, written_before_bytes = None, _device_written_bytes(device)
        if wish.filesystem == "raw":
            data = _raw_data(pristine / "data", raw_file, device, scratch / "data")
        else:
            mounts.mount(
                journal, wish.filesystem, str(device), scratch / "volume", wish.mount, "storage.mount"
            )
            data = scratch / "volume" / "data"
            point = mounts.mounted_at(data)
        # From here on the volume's owner closes the device.
        undo.pop_all()
    cloned = Cloned(way, 1, image.stat().st_blocks * 512, time.monotonic() - began)
    direct_io = attached.direct_io if attached else None
    return Volume(wish, device, data, cloned, point, direct_io, written_before_bytes, attached)


def attach_tmpfs(journal: Journal, pristine: Path, wish: VolumeSpecification, scratch: Path) -> Volume:
    """A file system in memory has no device and no image: the data are copied into it."""
    data_bytes = tree_size_bytes(pristine / "data")
    require_memory(2 * data_bytes, "a tmpfs with the data", "storage.filesystem", NOT_IN_MEMORY)
    options = (f"size={size_for(data_bytes, wish)}", *wish.mount)
    mounts.mount(journal, "tmpfs", "tmpfs", scratch / "volume", options, "storage.mount")
    data = scratch / "volume" / "data"
    try:
        cloned = clone_tree(pristine / "data", data)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        reason = f"the pristine data do not fit into a tmpfs with {','.join(options)}"
        raise Blocked("storage.size", reason, "a larger storage.size, or none: it is then chosen") from None
    return Volume(wish, Path("tmpfs"), data, cloned, mounts.mounted_at(data))


def _backing_folder(journal: Journal, wish: VolumeSpecification, image: Path, scratch: Path) -> Path:
    """Where the volume's file lies: on the disk of Dyno's cache, or in memory for a RAM disk."""
    if wish.device != "ram":
        return scratch
    needed_bytes = 2 * image.stat().st_blocks * 512
    require_memory(needed_bytes, "a RAM disk with the data", "storage.device", NOT_IN_MEMORY)
    mounts.mount(journal, "tmpfs", "tmpfs", scratch / "ram", ("size=100%",), "storage.device")
    return scratch / "ram"


def _raw_data(pristine: Path, raw_file: str, device: Path, data: Path) -> Path:
    """A data directory whose one large file is the device itself."""
    clone_tree(pristine, data)
    (data / raw_file).unlink()
    (data / raw_file).symlink_to(device)
    return data


def require_maker(filesystem: str) -> None:
    """Raises Blocked when the program that makes the file system, or the kernel's own support, is missing."""
    if filesystem in ("raw", "tmpfs"):
        return
    program, package, _ = MKFS[filesystem]
    if shutil.which(program, path=path_with_sbin()) is None:
        raise Blocked("storage.filesystem", f"{program} is not installed", f"apt-get install {package}")


def _fill_raw(source: Path, image: Path) -> None:
    if source.stat().st_size > image.stat().st_size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with source.open("rb") as origin, image.open("r+b") as target:
        shutil.copyfileobj(origin, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())


def make_file_system(image: Path, wish: VolumeSpecification) -> None:
    """Makes the wished file system in a file. Raises Blocked with what its maker says.

    The maker can write to the file alone, whatever its options do.
    """
    require_maker(wish.filesystem)
    fault = maker_fault(wish.filesystem, wish.mkfs)
    if fault is not None:
        raise Blocked("storage.mkfs", fault.reason, fault.hint)
    step = seclude(image)
    refused = refusal(step)
    if refused:
        reason = f"a mount namespace for mkfs.{wish.filesystem} is refused: {os.strerror(refused)}"
        raise Blocked("storage.filesystem", reason, "run dyno as root, in a container with CAP_SYS_ADMIN")
    program, _, own = MKFS[wish.filesystem]
    is_ext = wish.filesystem in EXT
    options = merged(wish.filesystem, own, wish.mkfs) if is_ext else [*own, *wish.mkfs]
    command = [program, *options, "--", str(SEEN)]
    environment = {**os.environ, "LC_ALL": "C", "PATH": path_with_sbin()}
    finished = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, preexec_fn=step
    )
    if finished.returncode != 0:
        # Some makers tell all their options after the reason.
        said = " ".join((finished.stderr or finished.stdout).partition("Usage:")[0].split())
        reason = f"{' '.join([program, *wish.mkfs])} failed: {said[:300]}"
        raise Blocked("storage.mkfs", reason, f"`man 8 {program}` lists its options")


def _fill_file_system(journal: Journal, data: Path, image: Path, wish: VolumeSpecification) -> None:
    make_file_system(image, wish)
    point = image.with_suffix(".mount")
    with journal.scope():
        journal.note_tree(point)
        attached = loop.attach(journal, image, "storage.filesystem")
        try:
            mounts.mount(journal, wish.filesystem, str(attached.path), point, (), "storage.filesystem")
        finally:
            attached.close()
        clone_tree(data, point / "data")


BLKZEROOUT, BLKGETSIZE64 = 0x127F, 0x80081272


def write_to_device(image: Path, device: Path) -> str:
    """Makes a whole device hold what the image holds, its holes as zeros. Returns the way.

    Raises Blocked when the device is smaller than the image.
    """
    with image.open("rb") as origin, device.open("r+b", buffering=0) as target:
        size_bytes = os.fstat(origin.fileno()).st_size
        room_bytes = struct.unpack("=Q", fcntl.ioctl(target, BLKGETSIZE64, bytes(8)))[0]
        if room_bytes < size_bytes:
            reason = f"{device} has {room_bytes >> 20} MiB, the volume needs {size_bytes >> 20} MiB"
            raise Blocked("storage.device", reason, "a larger device, or a smaller storage.size")
        # The file system's maker found zeros where it wrote none; what the device held before must not show.
        fcntl.ioctl(target, BLKZEROOUT, struct.pack("=QQ", 0, size_bytes))
        for start, end in data_ranges(origin.fileno()):
            origin.seek(start)
            target.seek(start)
            while start < end:
                start += target.write(origin.read(min(end - start, 1 << 20)))
        os.fsync(target.fileno())
    return "image to device"


def _sysfs(device: Path) -> Path:
    return Path("/sys/class/block") / device.resolve().name


def _device_written_bytes(device: Path) -> int:
    """Bytes written to a device since it came to be, in units of 512 (Documentation/block/stat.rst)."""
    return int(kernel_files.text(_sysfs(device) / "stat").split()[6]) * 512
