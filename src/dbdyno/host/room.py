"""Room on a disk and in memory, asked for before it is filled: a program that meets the end half-way says so
in its own way, or not at all.
"""

from __future__ import annotations

import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path

import psutil

from dbdyno.errors import Blocked, DynoError, UserError
from dbdyno.host import cgroups, kernel_files


def require_disk(folder: Path, needed_bytes: int, what: str) -> None:
    """Raises DynoError where the disk of a folder has less room than `what` needs."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise DynoError(
            f"{folder} has {free_bytes >> 20} MiB free, {what} needs {_mib(needed_bytes)} MiB",
            "make room there, or point XDG_CACHE_HOME at a larger disk",
        )


def free_disk_bytes(folder: Path) -> int:
    """What is free on the disk that would hold a folder, which need not be there yet."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free


def usable_disk_bytes(folder: Path) -> int:
    """What this user can still write to a folder's disk: root takes what is reserved for it as well."""
    found = os.statvfs(folder)
    blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    return blocks * found.f_frsize


BLOCK_DEVICE, SECTOR_BYTES = "/sys/dev/block/{major}:{minor}/stat", 512
SECTORS_WRITTEN = 6
"""Among the fields of that file (Documentation/block/stat.rst)."""


def disk_written_bytes(folder: Path) -> float | None:
    """What the disk or the partition under a folder's file system has written since it was attached; None
    where the kernel tells of none, as under one in memory. Raises OSError."""
    device = folder.stat().st_dev
    path = BLOCK_DEVICE.format(major=os.major(device), minor=os.minor(device))
    fields = (kernel_files.text_or_none(Path(path)) or "").split()
    return float(fields[SECTORS_WRITTEN]) * SECTOR_BYTES if len(fields) > SECTORS_WRITTEN else None


def memory_bytes() -> int:
    """All memory of this host."""
    return _memory("total")


def available_memory_bytes() -> int:
    """What programs can still take without others having to give anything back."""
    return _memory("available")


def _memory(field: str) -> int:
    """One field of what psutil reads, in bytes."""
    return int(getattr(kernel_files.by_psutil(psutil.virtual_memory, "/proc/meminfo"), field))


def memory_limit() -> tuple[int, str]:
    """The bytes of memory that this process and its children can have at most, and the words for who says
    so."""
    all_bytes = memory_bytes()
    limits = [_limit_bytes(group) for group in cgroups.groups_of(os.getpid(), "memory")]
    least_bytes = min(filter(None, limits), default=all_bytes)
    if least_bytes < all_bytes:
        return least_bytes, "its control group allows"
    return all_bytes, "this host has"


def _limit_bytes(group: Path) -> int | None:
    """The limit of a control group of either version; None where it has none."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        with suppress(ValueError):
            return int(kernel_files.text_or_none(group / name) or "")
    return None


def require_memory(needed_bytes: int, what: str, factor: str, remedy: str) -> None:
    """Raises Blocked, for `factor`, where less memory is available than `what` takes."""
    available_bytes = available_memory_bytes()
    if available_bytes < needed_bytes:
        available_mib = available_bytes >> 20
        reason = f"{what} needs {_mib(needed_bytes)} MiB, {available_mib} MiB of memory are available"
        raise Blocked(factor, reason, remedy)


def require_descriptors(needed: int, what: str) -> None:
    """Lets this process, and those that it starts from now on, open so many files. Raises UserError where the
    hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise UserError(
            f"{needed:,} open files are needed for {what}, and this user may have {hard:,}",
            "raise the limit (`ulimit -Hn`, LimitNOFILE= of a unit, limits.conf), or ask for fewer",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _mib(size_bytes: int) -> int:
    """Rounded up, so that what is short by a byte does not look as if it fitted."""
    return -(-size_bytes >> 20)
