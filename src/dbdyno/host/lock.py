"""A lock on a file, free again when its holder ends in whatever way (flock(2))."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Waits for the lock and holds it within: of two Dynos one makes a thing, the other finds it made."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
