"""Shared libraries: those of this host, and those that a process holds. Allocators are among them, and beside
them stand the kernel's switches of huge pages.
"""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.host import kernel_files

ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
}
"""Each allocator's library and the package of the distribution that holds it."""

THP_MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGES = Path("/sys/kernel/mm/hugepages")
NR_HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
"""How many huge pages of the default size are reserved."""
DEFAULT_SIZE = "2M"
PAGE_BYTES = {"2M": 2 << 20, "1G": 1 << 30}


def find_library(allocator: str) -> Path | None:
    """The allocator's library on this host; None when it is not installed."""
    return find(ALLOCATORS[allocator][0])


FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)


def find(name: str) -> Path | None:
    """The library of that file name on this host, links resolved; None when it is not installed."""
    paths = (folder / name for folder in _folders())
    return next((path.resolve() for path in paths if path.exists()), None)


def found(pattern: str) -> bool:
    """Whether this host has a library whose file name matches the pattern."""
    return any(any(folder.glob(pattern)) for folder in _folders())


def _folders() -> tuple[Path, ...]:
    machine = os.uname().machine
    return tuple(Path(folder.format(machine=machine)) for folder in FOLDERS)


def mapped(process_id: int) -> frozenset[Path]:
    """The files that a process has mapped into its memory; what was removed since is ` (deleted)` by name."""
    fields = (
        line.split(maxsplit=5)
        for line in kernel_files.text(f"/proc/{process_id}/maps", may_be_empty=True).splitlines()
    )
    return frozenset(Path(found[5]) for found in fields if len(found) == 6 and found[5].startswith("/"))
