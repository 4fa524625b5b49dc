"""Values of the running kernel under /sys and /proc/sys: read, set through the journal, restored.

A value is set only after the journal holds what it was. Files that offer a choice (`always [madvise] never`)
are read as the word in brackets. What the kernel forgets when CPUs are taken offline is told before.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host import cgroups, kernel_files, paths
from dbdyno.host.journal import Journal, claiming, of_dead, undoes

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
        with suppress(OSError, ValueError, kernel_files.UnreadableFile):
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


@dataclass
class _Claim:
    """The lock of a value that this process has set, as often as it has."""

    descriptor: int
    count: int = 0


_claimed: dict[Path, _Claim] = {}

_HOMES = (Path("/sys"), Path("/proc/sys"))
"""The only trees in which Dyno ever sets or restores a kernel value."""


def read(path: Path) -> str:
    """The value in force. Raises Unreadable."""
    text = kernel_files.text(path)
    opened, closed = text.find("["), text.find("]")
    return text[opened + 1 : closed] if 0 <= opened < closed else text


def choices(path: Path) -> tuple[str, ...]:
    """What a file with a choice offers, in the kernel's order. Raises Unreadable."""
    return tuple(kernel_files.text(path).replace("[", " ").replace("]", " ").split())


def set_value(journal: Journal, path: Path, value: str, factor: str) -> str:
    """Sets a value until the journal's scope ends and returns what the kernel then says it is.

    Raises Blocked, for `factor`, when the kernel or the lack of a right refuses, or when another Dyno has
    set it and will restore it.
    """
    try:
        # A value that another Dyno is about to put back is not the one that was there before.
        with claiming(path):
            _claim(path, factor)
            try:
                before = read(path)
                if before != value:
                    own = {"value": value, "device": _device(path)}
                    journal.note("kernel_value", path=str(path), before=before, **own)
            except BaseException:
                _let_go(path)
                raise
        if before == value:
            _let_go(path)
            return before
        _write(path, value)
        return read(path)
    except PermissionError:
        raise Blocked(factor, f"{path} may be set by root only", "run dyno as root for this level") from None
    except (FileNotFoundError, kernel_files.Gone):
        raise Blocked(factor, f"this kernel has no {path}", "use a kernel or device that offers it") from None
    except kernel_files.UnreadableFile as hidden:
        raise Blocked(factor, hidden.message, hidden.hint) from None
    except OSError as error:
        raise Blocked(factor, f"the kernel refused {value!r} for {path}: {error.strerror}") from None


def _claim(path: Path, factor: str) -> None:
    """Locks the value's name until all that this process has set there is restored. Every Dyno of this user
    sees that lock, and nobody else can take it."""
    if path not in _claimed:
        try:
            _claimed[path] = _Claim(_locked(path))
        except BlockingIOError:
            raise Blocked(
                factor, f"another dyno of this user has set {path} for its own trial", "wait until it ends"
            ) from None
    _claimed[path].count += 1


def _let_go(path: Path) -> None:
    claim = _claimed[path]
    claim.count -= 1
    if claim.count == 0:
        os.close(_claimed.pop(path).descriptor)


def _locked(path: Path) -> int:
    """The lock of a value, taken until it is closed. Raises BlockingIOError where another Dyno has it."""
    name = f"value{str(path).replace('/', '-')}"
    descriptor = os.open(paths.lock(name), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@undoes("kernel_value")
def _put_back(entry: Mapping[str, Any]) -> None:
    """Puts a value back. A device that is gone took its values with it."""
    path = Path(entry["path"])
    if not any(path.is_relative_to(home) for home in _HOMES) or ".." in path.parts:
        raise ValueError("not a kernel value, so it is left alone")
    if path in _claimed and not of_dead(entry):
        _restore(entry, path)
        _let_go(path)
    elif path.exists():
        try:
            descriptor = _locked(path)
        except BlockingIOError:
            raise ValueError(
                "another dyno of this user has set it for its own trial, and must end first"
            ) from None
        try:
            _restore(entry, path)
        finally:
            os.close(descriptor)


def _restore(entry: Mapping[str, Any], path: Path) -> None:
    before = str(entry["before"])
    try:
        if (now := read(path)) == before:
            return
        is_own = _device(path) == entry.get("device", _device(path))
        if is_own or _is_nobodys_loop(path) or (_is_loop(path) and now == entry.get("value")):
            _write(path, before)
    except kernel_files.Gone:
        return
    except OSError as error:
        if not kernel_files.is_gone(error):
            raise


def _disk(path: Path) -> Path | None:
    return next((folder for folder in path.resolve().parents if folder.parent.name == "block"), None)


def _device(path: Path) -> str:
    """Which disk a value is of: its name comes to another one when it is gone (diskseq, Linux 5.15). Empty
    for what is no disk's, and where the kernel does not tell."""
    disk = _disk(path)
    with suppress(OSError):
        return (disk / "diskseq").read_text().strip() if disk else ""
    return ""


def _is_nobodys_loop(path: Path) -> bool:
    """Whether a value is of a loop device without a file."""
    disk = _disk(path)
    return disk is not None and _is_loop(path) and not (disk / "loop" / "backing_file").exists()


def _is_loop(path: Path) -> bool:
    """Whether a value is of a loop device. Such a one keeps its scheduler when its file goes, as it does
    where Dyno was killed, and hands it on: whoever has Dyno's value has inherited it."""
    disk = _disk(path)
    return disk is not None and disk.name.startswith("loop")


def _write(path: Path, value: str) -> None:
    # No buffering: the kernel's refusal must come from this write, not from a later close.
    with path.open("wb", buffering=0) as file:
        file.write(value.encode())
