"""What this host offers of memory: allocators that are installed, and the kernel's switches of huge pages."""

from __future__ import annotations

import os
from pathlib import Path

ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
}
"""Each allocator's library and the package of the distribution that holds it."""

LIBRARY_FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)

THP_MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGES = Path("/sys/kernel/mm/hugepages")
PAGE_BYTES = {"2M": 2 << 20, "1G": 1 << 30}


def find_library(allocator: str) -> Path | None:
    """The allocator's library on this host; None when it is not installed."""
    machine = os.uname().machine
    for folder in LIBRARY_FOLDERS:
        path = Path(folder.format(machine=machine)) / ALLOCATORS[allocator][0]
        if path.exists():
            return path.resolve()
    return None
