"""What would not come back when CPUs are taken offline and brought online again: the kernel forgets it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from dbdyno.host import cgroups, kernel_files

PROC = Path("/proc")
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD among a task's flags. The kernel parks its threads of a CPU, and binds them again itself."""
FLAGS_FIELD = 6


def losing_cpusets(going: Collection[int]) -> list[Path]:
    """The control groups of version 1 that name one of these CPUs. The kernel takes it out of their list, and
    does not put it there again; version 2 keeps the list."""
    root = cgroups.mounted("cpuset")
    if root is None or root[0] != 1 or _keeps_lists(root[1]):
        return []
    files = (place for place in root[1].rglob("cpuset.cpus") if place.parent != root[1])
    return sorted(place.parent for place in files if _named(place) & set(going))


def bound_threads(going: Collection[int]) -> list[tuple[int, str]]:
    """The threads that may run on these CPUs alone, with their names. The kernel then lets them run
    everywhere, and does not bind them again."""
    found = []
    for task in PROC.glob("[0-9]*/task/[0-9]*"):
        with suppress(OSError, ValueError, kernel_files.Unreadable):
            fields = kernel_files.text(task / "stat").rpartition(")")[2].split()
            if int(fields[FLAGS_FIELD]) & KERNEL_THREAD:
                continue
            thread = int(task.name)
            if os.sched_getaffinity(thread) <= set(going):
                found.append((thread, kernel_files.text(task / "comm")))
    return sorted(found)


def parse_cpu_list(text: str) -> set[int]:
    """CPU numbers of the kernel's list format (`0-3,8`)."""
    return set(_numbers(text))


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _named(file: Path) -> set[int]:
    with suppress(ValueError):
        return parse_cpu_list(kernel_files.text_or_none(file) or "")
    return set()


def _keeps_lists(point: Path) -> bool:
    """Whether version 1 was mounted so that it keeps lists as version 2 does."""
    lines = (line.split() for line in kernel_files.text(PROC / "mounts").splitlines())
    return any(fields[1] == str(point) and "cpuset_v2_mode" in fields[3].split(",") for fields in lines)
