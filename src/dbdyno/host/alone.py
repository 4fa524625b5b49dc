"""One measurement at a time on one host, whoever runs it: two would measure each other.

The lock lies on a file of the kernel's, which all users share. Who holds it leaves a note in the place of his
journal, so that others can tell their users whom they wait for. A note counts only while its process lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dbdyno.errors import RunLocked
from dbdyno.host import paths
from dbdyno.host.journal import start_ticks, user_name
from dbdyno.host.once import Tell, silently

NOTE = "measuring.json"
NOTE_MAX_BYTES = 64 << 10
"""More than a note takes, whatever its study is called."""
TEXT_MAX = 80
LATEST_UNIX_S = 2.0**33
"""In the year 2242."""
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Holder:
    """The Dyno that measures: its process, its study, when it began and expects to end, and the run that it
    adds to; a trial that no run keeps has none."""

    process_id: int
    start_ticks: int
    user_id: int
    study: str
    since_unix_s: float
    ends_unix_s: float
    run: str = ""

    def in_words(self, now_unix_s: float) -> str:
        """`process 4711 of ann, "Which flush?", since 14:03, about 12 min left`."""
        study = "".join(letter if letter.isprintable() else " " for letter in self.study[:TEXT_MAX])
        since = time.strftime("%H:%M", time.localtime(self.since_unix_s))
        left_min = round((self.ends_unix_s - now_unix_s) / 60.0)
        left = f"about {left_min} min left" if left_min >= 1 else "about to end"
        return f'process {self.process_id} of {user_name(self.user_id)}, "{study}", since {since}, {left}'


@contextmanager
def alone(
    study: str, expected_s: float, wait_s: float = 0.0, tell: Tell = silently, run: str = ""
) -> Iterator[None]:
    """Holds the lock of this host within, for a study that takes about `expected_s`, and its `run`.

    Raises RunLocked, which names the holder, where another Dyno still has it after `wait_s`.
    """
    with paths.run_lock().open() as lock:
        _wait(lock, wait_s, tell)
        note = paths.host() / NOTE
        _write(note, study, expected_s, run)
        try:
            yield
        finally:
            note.unlink(missing_ok=True)


def holder() -> Holder | None:
    """The Dyno whose note counts; None where there is none that this user can read."""
    for folder in paths.hosts_of_all():
        with suppress(OSError, ValueError, TypeError, RecursionError):
            found = _read(folder / NOTE)
            # Only the process's own user can say so of it.
            process_user_id = Path(f"/proc/{found.process_id}").stat().st_uid
            if process_user_id == found.user_id and start_ticks(found.process_id) == found.start_ticks:
                return found
    return None


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
    numbers, times = (found.process_id, found.start_ticks), (found.since_unix_s, found.ends_unix_s)
    texts = (found.study, found.run)
    if not all(isinstance(one, int) for one in numbers) or not all(isinstance(one, str) for one in texts):
        raise ValueError("a value of another kind")
    # What is no number, and what is none of the clock's, are not between these.
    if not all(0.0 <= one <= LATEST_UNIX_S for one in times):
        raise ValueError("not a time")
    return found


def _wait(lock: IO[str], wait_s: float, tell: Tell) -> None:
    deadline, told = time.monotonic() + wait_s, False
    while not _taken(lock):
        if time.monotonic() >= deadline:
            waited = " still" if told else ""
            raise RunLocked(
                f"another dyno{waited} measures on this machine{_whom()}",
                "add --wait to wait until it ends, or --wait 10m to wait for ten minutes at most",
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
    found = holder()
    return f": {found.in_words(time.time())}" if found else ""


def _write(note: Path, study: str, expected_s: float, run: str) -> None:
    began_unix_s = time.time()
    about = {
        "process_id": os.getpid(),
        "start_ticks": start_ticks(os.getpid()),
        "study": study,
        "since_unix_s": began_unix_s,
        "ends_unix_s": began_unix_s + expected_s,
        "run": run,
    }
    draft = note.with_suffix(".part")
    draft.write_text(json.dumps(about))
    draft.chmod(0o644)
    draft.replace(note)
