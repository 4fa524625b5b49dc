"""One measurement at a time on one host, whoever runs it, because two would measure each other; and whoever
draws pages keeps apart from whoever measures.

Dynos of one user meet at a lock that nobody else can open. Each user's note in the place of his journal tells
the others who measures, and who waits for it in which turn (Lamport's bakery, CACM 17, 1974). A note counts
only while its process lives and belongs to whoever wrote it, so that whoever is in the way can be named.

Two locks are a door and a room. Whoever draws goes through the door into the room, and shares it with others
who draw. Whoever measures holds the door shut, and waits until the room is empty. So nobody begins to draw
while a block is measured, a process that waits at the door takes no CPU, and what a dead process held is
free. The locks are this user's own. A mark tells other users of this host that a block is measured, and they
look for it now and then.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dbdyno.errors import RunLocked
from dbdyno.host import paths
from dbdyno.host.cache import Tell, silently
from dbdyno.host.journal import start_ticks, user_name
from dbdyno.host.kernel_files import UnreadableFile

NOTE = "measuring.json"
NOTE_MAX_BYTES = 64 << 10
"""More than a note takes, whatever its study is called."""
TEXT_MAX = 80
LATEST_UNIX_S = 2.0**33
"""In the year 2242."""
LOOK_EVERY_S = 0.2
DRAWING_S, ASK_AGAIN_S = 2.0, 0.01
"""How long another user's Dyno may take to draw its turn before it seems to be in the way, and how often that
is looked at."""


@dataclass(frozen=True)
class Holder:
    """The Dyno that measures: its process, its study, when it began and expects to end, and the run that it
    adds to; a trial that no run keeps has none. The least `turn` measures; 0 is one that is
    being drawn."""

    process_id: int
    start_ticks: int
    user_id: int
    study: str
    since_unix_s: float
    ends_unix_s: float
    run: str = ""
    turn: int = 1

    def in_words(self, now_unix_s: float) -> str:
        """`process 4711 of ann, "Which flush?", since 14:03, about 12 min left`."""
        study = "".join(letter if letter.isprintable() else " " for letter in self.study[:TEXT_MAX])
        since = time.strftime("%H:%M", time.localtime(self.since_unix_s))
        left_min = round((self.ends_unix_s - now_unix_s) / 60.0)
        left = f"about {left_min} min left" if left_min >= 1 else "about to end"
        return f'process {self.process_id} of {user_name(self.user_id)}, "{study}", since {since}, {left}'


TO_WAIT = "add --wait to wait until it ends, or --wait 10m to wait for ten minutes at most"


@contextmanager
def alone(
    study: str, expected_s: float, wait_s: float | None = None, tell: Tell = silently, run: str = ""
) -> Iterator[None]:
    """Holds the lock of this host within, for a study that takes about `expected_s`, and its `run`.

    Raises RunLocked, which names the holder, where another Dyno still has it after `wait_s`. None is of a
    command that cannot wait, so that no hint tells its user to.
    """
    hint = TO_WAIT if wait_s is not None else "type this again when it has ended"
    with paths.lock("run.lock").open() as lock:
        deadline = time.monotonic() + (wait_s or 0.0)
        _wait(lambda: _taken(lock), deadline, tell, hint)
        note = paths.host() / NOTE
        try:
            _write(note, study, expected_s, run, turn=0)
            turn = 1 + max((other.turn for other in _others()), default=0)
            _write(note, study, expected_s, run, turn)
            drawing_until = time.monotonic() + DRAWING_S
            while time.monotonic() < drawing_until and any(other.turn == 0 for other in _others()):
                time.sleep(ASK_AGAIN_S)
            _wait(lambda: all(_goes_behind(other, turn) for other in _others()), deadline, tell, hint)
            yield
        finally:
            paths.discard(note)


def _goes_behind(other: Holder, turn: int) -> bool:
    """Whether another user's Dyno measures after one with that turn. What draws its turn may get any."""
    return other.turn != 0 and (turn, os.getuid()) < (other.turn, other.user_id)


def holder() -> Holder | None:
    """The Dyno whose note counts and whose turn it is; None where there is none that this user can read."""
    found = list(_noted(paths.hosts_of_all()))
    return min(found, key=lambda one: (one.turn, one.user_id), default=None)


def _others() -> Iterator[Holder]:
    """The Dynos of other users that measure or wait for it."""
    own = paths.host_place()
    return _noted(folder for folder in paths.hosts_of_all() if folder != own)


def _noted(folders: Iterable[Path]) -> Iterator[Holder]:
    """The notes that count."""
    for folder in folders:
        with suppress(OSError, ValueError, TypeError, RecursionError, UnreadableFile):
            found = _read(folder / NOTE)
            # Only the process's own user can say so of it.
            process_user_id = Path(f"/proc/{found.process_id}").stat().st_uid
            if process_user_id == found.user_id and start_ticks(found.process_id) == found.start_ticks:
                yield found


def _read(note: Path) -> Holder:
    """What a note says, which anybody may have written. Raises OSError, ValueError, TypeError or
    RecursionError for what is no note."""
    # A pipe would be waited for, and a link may lead to a device without an end.
    descriptor = os.open(note, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a plain file")
        about = json.loads(os.pread(descriptor, NOTE_MAX_BYTES, 0))
    finally:
        os.close(descriptor)
    found = Holder(**about, user_id=status.st_uid)
    numbers, times = (
        (found.process_id, found.start_ticks, found.turn),
        (found.since_unix_s, found.ends_unix_s),
    )
    texts = (found.study, found.run)
    if not all(isinstance(one, int) for one in numbers) or not all(isinstance(one, str) for one in texts):
        raise ValueError("a value of another kind")
    # What is no number, and what is none of the clock's, are not between these.
    if not all(0.0 <= one <= LATEST_UNIX_S for one in times):
        raise ValueError("not a time")
    return found


def _wait(may: Callable[[], bool], deadline: float, tell: Tell, hint: str) -> None:
    told = False
    while not may():
        if time.monotonic() >= deadline:
            waited = " still" if told else ""
            raise RunLocked(
                f"another dyno{waited} measures on this machine{_whom()}",
                hint,
            )
        if not told:
            tell(f"waiting for another dyno to end{_whom()}")
            told = True
        time.sleep(min(LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _whom() -> str:
    """Who is in the way. This process may have a note as well."""
    notes = (one for one in _noted(paths.hosts_of_all()) if one.process_id != os.getpid())
    found = min(notes, key=lambda one: (one.turn, one.user_id), default=None)
    return f": {found.in_words(time.time())}" if found else ""


def _write(note: Path, study: str, expected_s: float, run: str, turn: int) -> None:
    """Raises DynoError where the note cannot be written."""
    began_unix_s = time.time()
    about = {
        "process_id": os.getpid(),
        "start_ticks": start_ticks(os.getpid()),
        "study": study,
        "since_unix_s": began_unix_s,
        "ends_unix_s": began_unix_s + expected_s,
        "run": run,
        "turn": turn,
    }
    draft = note.with_suffix(".part")
    try:
        draft.write_text(json.dumps(about))
        draft.chmod(0o644)
        draft.replace(note)
    except OSError as error:
        paths.discard(draft)
        raise paths.host_is_full(note, error) from None


DOOR, ROOM = "door.lock", "room.lock"
PATIENCE_S = 10.0
"""So long a block waits at most for what is being drawn: a page that takes longer must not hold up a run."""
ASK_ANEW_S = 0.01
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
            if _taken_in_time(shut):
                _taken_in_time(empty)
            yield
        finally:
            paths.discard(mark)


class LookBetweenBlocks:
    """Whoever draws, between blocks. A context manager that waits until no block is measured."""

    def __init__(self) -> None:
        self._room: IO[str] | None = None

    def __enter__(self) -> LookBetweenBlocks:
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
        with suppress(OSError, ValueError, UnreadableFile):
            process_id, started = map(int, mark.name.removeprefix(f"{MARK}-").split("-"))
            of_process = Path(f"/proc/{process_id}").stat().st_uid
            if mark.lstat().st_uid == of_process and start_ticks(process_id) == started:
                return True
    return False


def _taken_in_time(lock: IO[str]) -> bool:
    """Takes a lock for itself alone, unless others share it for too long."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
        time.sleep(ASK_ANEW_S)
