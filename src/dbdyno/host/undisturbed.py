"""Who draws pages and who measures keep apart, in whatever processes they are.

Two locks are a door and a room. Whoever draws goes through the door into the room, and shares
it with others who draw. Whoever measures holds the door shut, and waits until the room is empty. So nobody
begins to draw while a block is measured, a process that waits at the door takes no CPU, and what a dead
process held is free. The locks are this user's own. A mark tells other users of this host that a block is
measured, and they look for it now and then.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dbdyno.host import paths
from dbdyno.host.journal import start_ticks
from dbdyno.host.kernel_files import Unreadable

DOOR, ROOM = "door.lock", "room.lock"
PATIENCE_S = 10.0
"""So long a block waits at most for what is being drawn: a page that takes longer must not hold up a run."""
ASK_AGAIN_S = 0.01
LOOK_AGAIN_S = 0.5
MARK = "block"
"""The name of a mark, before the number and the start of the process that measures."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within, nobody begins to draw, and whoever was drawing has ended or is late."""
    mark = paths.host() / f"{MARK}-{os.getpid()}-{start_ticks(os.getpid())}"
    with paths.lock(DOOR).open() as shut, paths.lock(ROOM).open() as empty:
        try:
            # Without a mark only other users' pages are drawn meanwhile.
            with suppress(OSError):
                mark.touch()
            if _taken(shut):
                _taken(empty)
            yield
        finally:
            paths.discard(mark)


class Look:
    """Whoever draws, between blocks. A context manager that waits until no block is measured."""

    def __init__(self) -> None:
        self._room: IO[str] | None = None

    def __enter__(self) -> Look:
        inside = paths.lock(ROOM).open()
        try:
            while _others_measure():
                time.sleep(LOOK_AGAIN_S)
            with paths.lock(DOOR).open() as open_door:
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
    with paths.lock(DOOR).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return _others_measure()


def _others_measure() -> bool:
    """Whether the mark of another user's process stands, which lives and is that user's own."""
    own = paths.host_place()
    for mark in (
        path for folder in paths.hosts_of_all() if folder != own for path in folder.glob(f"{MARK}-*")
    ):
        with suppress(OSError, ValueError, Unreadable):
            process_id, started = map(int, mark.name.removeprefix(f"{MARK}-").split("-"))
            of_process = Path(f"/proc/{process_id}").stat().st_uid
            if mark.lstat().st_uid == of_process and start_ticks(process_id) == started:
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
