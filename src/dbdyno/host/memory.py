"""What this host offers of memory: allocators that are installed, and the kernel's switches of huge pages."""

from __future__ import annotations

from pathlib import Path

from dbdyno.host import libraries

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
    return libraries.find(ALLOCATORS[allocator][0])
