"""Putting on disk what was written: the names in a folder; and a whole tree by one call, because a call for
each file takes longer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on disk. Raises OSError where that fails."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


def sync_file_system(folder: Path) -> None:
    """Puts the file system that holds a folder on disk, by syncfs(2). Raises OSError where that fails."""
    with _opened(folder) as descriptor:
        if _LIBC.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
