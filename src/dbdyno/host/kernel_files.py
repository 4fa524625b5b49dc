"""The one way to read what the kernel tells under /proc and /sys (proc(5), sysfs(5)).

A sandbox may hide such a file, its owner may be another user, and a process may be gone. `text` says so in a
sentence. `text_or_none` gives nothing instead, where there is a fall-back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dbdyno.errors import DynoError

T = TypeVar("T")
HIDDEN = "run Dyno where nothing hides this file, as a sandbox may"


class UnreadableFile(DynoError):
    """A file of the kernel's cannot be read here."""


class Gone(UnreadableFile):
    """A file of the kernel's is not there: its process or device is gone, or this kernel has none."""


def text(path: str | Path, may_be_empty: bool = False) -> str:
    """What a file says, without the blanks around it; paths in it are as `os.fsdecode` has them. Raises Gone,
    or Unreadable, also where it says nothing: a sandbox puts an empty file over one that it hides."""
    try:
        found = os.fsdecode(Path(path).read_bytes()).strip()
    except OSError as error:
        raise refused(path, error) from None
    if not found and not may_be_empty:
        raise UnreadableFile(f"{path} is empty", HIDDEN)
    return found


def text_or_none(path: str | Path) -> str | None:
    """What a file says in letters that can be stored, without the blanks around it; None where it cannot be
    read or says nothing."""
    try:
        return os.fsencode(text(path)).decode(errors="replace")
    except UnreadableFile:
        return None


def counters_text(path: str) -> str:
    """What a file says, up to 16 KiB, by plain system calls, because it is read several times a second beside
    a measurement. Raises Gone, or UnreadableFile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 16384).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise refused(path, error) from None


def by_psutil(read: Callable[[], T], path: str) -> T:
    """What psutil reads of a file, without the right words where it cannot. Raises Gone, or
    UnreadableFile."""
    try:
        return read()
    except OSError as error:
        raise refused(path, error) from None
    except (LookupError, RuntimeError, ValueError):
        raise UnreadableFile(f"{path} does not hold what Linux writes there", HIDDEN) from None


def names(folder: str | Path) -> list[str]:
    """What a folder holds. Raises Gone, or UnreadableFile."""
    try:
        return os.listdir(folder)  # noqa: PTH208  as cheap as it gets
    except OSError as error:
        raise refused(folder, error) from None


def link(path: str | Path) -> str:
    """Where a link leads. Raises Gone, or UnreadableFile."""
    try:
        return str(Path(path).readlink())
    except OSError as error:
        raise refused(path, error) from None


def is_gone(error: OSError) -> bool:
    """Whether the process or device of a file is no longer there. While it goes, its files are there and say
    ENODEV or ENXIO of a device, ESRCH of a process."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ESRCH)


def refused(path: str | Path, error: OSError) -> UnreadableFile:
    """What an error says of a file of the kernel's. Raises the error itself where a limit of this
    process is its cause."""
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise error
    if is_gone(error):
        return Gone(f"there is no {path}", "look whether /proc and /sys are mounted and whole here")
    said = f"{path} cannot be read: {error.strerror or error}"
    if isinstance(error, PermissionError):
        return UnreadableFile(said, "give this user the right to read it, or run Dyno as root")
    return UnreadableFile(said)
