"""What a server's processes hold at a moment, and how much of it they may, read from /proc (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psutil

from dbdyno.host import cgroups
from dbdyno.host.room import usable_disk_bytes
from dbdyno.records.gauges import SHARED
from dbdyno.records.record import Limit

PROC = Path("/proc")
BLOCK_BYTES = 512
"""Of `st_blocks`, whatever the file system's own blocks are (stat(2))."""
STATUS = {
    "VmRSS": "resident_bytes",
    "RssAnon": "private_bytes",
    "VmSwap": "private_bytes",
    "RssShmem": SHARED,
}
"""Lines of /proc/PID/status, in KiB, and the gauges that they belong to."""
MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""Of a control group, by the version of control groups."""


def held(members: Iterable[int]) -> tuple[dict[str, float], dict[str, str]]:
    """What processes hold together, by gauge; and for each gauge that could not be read the reason. A process
    that ends meanwhile holds nothing. Processes that share no memory have no such gauge."""
    total = dict.fromkeys((*STATUS.values(), "threads", "open_files"), 0.0)
    missing: dict[str, str] = {}
    for process_id in members:
        folder = PROC / str(process_id)
        try:
            for gauge, value in _status(folder):
                total[gauge] += value
            total["open_files"] += sum(1 for _ in (folder / "fd").iterdir())
        except PermissionError:
            missing["open_files"] = f"{folder}/fd belongs to another user"
        except (FileNotFoundError, ProcessLookupError):
            continue
    left_out = {*missing, *([] if total[SHARED] else [SHARED])}
    return {gauge: value for gauge, value in total.items() if gauge not in left_out}, missing


def _status(folder: Path) -> Iterator[tuple[str, float]]:
    for line in (folder / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in STATUS:
            yield STATUS[name], float(value.split()[0]) * 1024
        elif name == "Threads":
            yield "threads", float(value)


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
        "threads": Limit(most=float(threads.read_text()), source=str(threads)),
    }
    if data.is_dir():
        room = occupied_bytes(data) + usable_disk_bytes(data)
        found["disk_bytes"] = Limit(most=room, source="the room on the disk that holds the data")
    if len(members) == 1 and (files := _file_limit(members[0])) is not None:
        found["open_files"] = files
    return found


def _memory_limit(members: Sequence[int]) -> Limit:
    """The host's memory, or the least that a control group above the first process allows."""
    least = Limit(most=float(psutil.virtual_memory().total), source="the host's memory")
    for group in cgroups.groups_of(members[0], "memory") if members else ():
        for path in (group / name for name in MEMORY_LIMITS):
            text = path.read_text().strip() if path.is_file() else "max"
            if text != "max" and float(text) < least.most:
                least = Limit(most=float(text), source=str(path))
    return least


def _file_limit(process_id: int) -> Limit | None:
    """The soft limit of a process; None where there is none, or it is gone."""
    path = PROC / str(process_id) / "limits"
    try:
        lines = path.read_text().splitlines()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "unlimited")
    return None if soft == "unlimited" else Limit(most=float(soft), source=f"Max open files of {path}")
