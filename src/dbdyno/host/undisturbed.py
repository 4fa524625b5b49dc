"""Who draws pages and who measures keep apart, in whatever processes they are.

Two locks of the kernel's are a door and a room. Whoever draws goes through the door into the room, and shares
it with others who draw. Whoever measures holds the door shut, and waits until the room is empty. So nobody
begins to draw while a block is measured, a process that waits at the door takes no CPU, and what a dead
process held is free.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from dbdyno.host import paths

PATIENCE_S = 10.0
"""So long a block waits at most for what is being drawn: a page that takes longer must not hold up a run."""
ASK_AGAIN_S = 0.01


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within, nobody begins to draw, and whoever was drawing has ended or is late."""
    door, room = paths.look_locks()
    with door.open() as shut, room.open() as empty:
        if _taken(shut):
            _taken(empty)
        yield


class Look:
    """Whoever draws, between blocks. A context manager that waits until no block is measured."""

    def __init__(self) -> None:
        self._room: IO[str] | None = None

    def __enter__(self) -> Look:
        door, room = paths.look_locks()
        inside = room.open()
        try:
            with door.open() as open_door:
                fcntl.flock(open_door, fcntl.LOCK_SH)
                fcntl.flock(inside, fcntl.LOCK_SH)
        except BaseException:
            inside.close()
            raise
        self._room = inside
        return self

    def __exit__(self, *_: object) -> None:
        if self._room is not None:
            self._room.close()
            self._room = None

    def give_way(self) -> None:
        """Lets a block go first that waits to be measured."""
        self.__exit__()
        self.__enter__()


def measured_now() -> bool:
    """Whether somebody holds the door shut."""
    door, _ = paths.look_locks()
    with door.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _taken(lock: IO[str]) -> bool:
    """Takes a lock for itself alone, unless others share it for too long."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
        time.sleep(ASK_AGAIN_S)
