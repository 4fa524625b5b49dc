"""What a server's processes hold at a moment, and how much of it they may, read from /proc (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from dbdyno.host import cgroups, kernel_files
from dbdyno.host.room import memory_bytes, usable_disk_bytes
from dbdyno.records.gauges import SHARED
from dbdyno.records.record import Limit

PROC = Path("/proc")
BLOCK_BYTES = 512
"""Of `st_blocks`, whatever the file system's own blocks are (stat(2))."""
RESIDENT, PRIVATE = "resident_bytes", "private_bytes"
MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""Of a control group, by the version of control groups."""


def held(members: Iterable[int]) -> tuple[dict[str, float], dict[str, str]]:
    """What processes hold together, by gauge; and for each gauge that could not be read the reason. A process
    that ends meanwhile holds nothing. Processes that share no memory have no such gauge.

    What they share counts once, as the process that holds most of it has it, because each of PostgreSQL's
    touches the same buffers.
    """
    own_bytes = private_bytes = threads = open_files = 0.0
    files_bytes = shared_bytes = 0.0
    missing: dict[str, str] = {}
    for process_id in members:
        folder = PROC / str(process_id)
        lines: dict[str, float] = {}
        with suppress(kernel_files.Gone):
            lines = _status(folder)
            try:
                open_files += len(kernel_files.names(folder / "fd"))
            except kernel_files.Gone:
                raise
            except kernel_files.Unreadable as hidden:
                missing["open_files"] = hidden.message
        own_bytes += lines.get("RssAnon", 0.0)
        private_bytes += lines.get("RssAnon", 0.0) + lines.get("VmSwap", 0.0)
        files_bytes = max(files_bytes, lines.get("RssFile", 0.0))
        shared_bytes = max(shared_bytes, lines.get("RssShmem", 0.0))
        threads += lines.get("Threads", 0.0)
    total = {
        RESIDENT: own_bytes + files_bytes + shared_bytes,
        PRIVATE: private_bytes,
        SHARED: shared_bytes,
        "threads": threads,
        "open_files": open_files,
    }
    left_out = {*missing, *([] if shared_bytes else [SHARED])}
    return {gauge: value for gauge, value in total.items() if gauge not in left_out}, missing


def _status(folder: Path) -> dict[str, float]:
    """The lines of /proc/PID/status that are numbers, memory in bytes."""
    found: dict[str, float] = {}
    for line in kernel_files.text(folder / "status").splitlines():
        name, _, value = line.partition(":")
        amount, *unit = value.split()[:2] or [""]
        if amount.isdigit():
            found[name] = float(amount) * (1024 if unit == ["kB"] else 1)
    return found


def occupied_bytes(folder: Path) -> float:
    """What the files below a folder occupy of its disk. A file that goes meanwhile occupies nothing."""
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
                continue
            try:
                total += entry.stat(follow_symlinks=False).st_blocks
            except FileNotFoundError:
                continue
    return float(total * BLOCK_BYTES)


def limits_of(members: Sequence[int], data: Path) -> dict[str, Limit]:
    """How much the processes may hold. Descriptors are limited process by process, so those of several have
    no limit that they share."""
    memory = _memory_limit(members)
    threads = PROC / "sys" / "kernel" / "threads-max"
    found = {
        "resident_bytes": memory,
        "private_bytes": memory,
        "heap_bytes": memory,
    }
    if (most := kernel_files.text_or_none(threads)) is not None:
        found["threads"] = Limit(most=float(most), source=str(threads))
    if data.is_dir():
        room = occupied_bytes(data) + usable_disk_bytes(data)
        found["disk_bytes"] = Limit(most=room, source="the room on the disk that holds the data")
    if len(members) == 1 and (files := _file_limit(members[0])) is not None:
        found["open_files"] = files
    return found


def _memory_limit(members: Sequence[int]) -> Limit:
    """The host's memory, or the least that a control group above the first process allows."""
    least = Limit(most=float(memory_bytes()), source="the host's memory")
    for group in cgroups.groups_of(members[0], "memory") if members else ():
        for path in (group / name for name in MEMORY_LIMITS):
            text = kernel_files.text_or_none(path) or "max"
            if text != "max" and float(text) < least.most:
                least = Limit(most=float(text), source=str(path))
    return least


def _file_limit(process_id: int) -> Limit | None:
    """The soft limit of a process; None where there is none, or it is gone."""
    path = PROC / str(process_id) / "limits"
    lines = (kernel_files.text_or_none(path) or "").splitlines()
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "unlimited")
    return None if soft == "unlimited" else Limit(most=float(soft), source=f"Max open files of {path}")
