"""A bit that is wrong on the disk: does the engine say so, or does it hand out another row?

A table of its own holds one row with a text that is nowhere else. The engine is stopped cleanly, and one bit
of the text is turned in the file that holds it. Then the engine is started and asked for the row. Afterwards
the bit is turned back, so that nothing of it outlives the round.
"""

from __future__ import annotations

import mmap
import os
import random
import string
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dbdyno.engines.engine import Ask
from dbdyno.errors import Blocked, DriverFailed, LoadDied, ServerFailed
from dbdyno.layers.setup import Running
from dbdyno.trial.acts.engine import lives, start_again
from dbdyno.trial.bench import OpenLoad

LETTERS = 40
"""Of a mark. None stands there twice, so that no engine finds anything to compress."""
BITS = 5
"""So many low bits of a letter make another character of it, which is a whole one in every encoding."""
OF_DYNO = frozenset({"user", "internal"})
"""Kinds of the driver's failures of which the engine knows nothing."""
PLACES_MOST = 8
"""So many places are tried at most: a log may hold the row as well, and is not read again."""


@dataclass(frozen=True)
class Place:
    """Where a file holds a text, and the text with one bit of it turned."""

    file: Path
    offset: int
    right: bytes
    wrong: bytes

    def turn(self) -> bool:
        """Turns the bit, on the disk as well. False where the file does not hold the text any more."""
        return self._replace(self.right, self.wrong)

    def turn_back(self) -> None:
        """Turns the bit back, unless the engine has put something else there: a log goes round."""
        self._replace(self.wrong, self.right)

    def _replace(self, old: bytes, new: bytes) -> bool:
        try:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            there = os.pread(descriptor, len(old), self.offset) == old
            if there:
                os.pwrite(descriptor, new, self.offset)
                os.fsync(descriptor)
            return there
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Mark:
    """A row that is known: its table, its text, and the bit of it that is turned."""

    table: str
    text: str
    letter: int
    value: int

    @staticmethod
    def drawn(number: int, seed: int) -> Mark:
        """Whose table has that number."""
        draw = random.Random(f"{seed} flip {number}")
        text = "".join(draw.sample(string.ascii_letters, LETTERS))
        return Mark(f"dyno_flip_{number}", text, draw.randrange(LETTERS), 1 << draw.randrange(BITS))

    def write(self, ask: Ask) -> None:
        ask(f"CREATE TABLE {self.table} (letters VARCHAR({LETTERS}) NOT NULL)")
        ask(f"INSERT INTO {self.table} VALUES ('{self.text}')")

    def places(self, data: Path) -> Iterator[Place]:
        """Where files hold it, file by file in the order of their names."""
        right, place = self.text.encode(), self.letter
        wrong = right[:place] + bytes((right[place] ^ self.value,)) + right[place + 1 :]
        for path in sorted(data.rglob("*")):
            if path.is_file() and path.stat().st_size:
                for start in _found(path, right):
                    yield Place(path, start, right, wrong)


def told_of(mark: Mark, running: Running, open_load: OpenLoad, undo: ExitStack) -> bool | None:
    """Whether the engine, which has ended, says of a turned bit that something is wrong, by an error or by
    its own end. False where it hands out another row. None where it hands out the right one, because it did
    not read the bit. The engine has ended afterwards as well; `undo` ends what is started.

    Raises Blocked where no file holds the row as it was written, and DriverFailed where it was Dyno itself
    that failed.
    """
    places = list(mark.places(running.setup.data))[:PLACES_MOST]
    if not places:
        reason = "no file holds the row as it was written, so no bit of it can be turned"
        raise Blocked("restarts.flipped_bits", reason, "leave compression, encryption and raw devices out")
    for place in places:
        if not place.turn():
            continue
        try:
            told = _told(mark, running, open_load, undo)
        finally:
            place.turn_back()
        if told is not None:
            return told
    return None


def _told(mark: Mark, running: Running, open_load: OpenLoad, undo: ExitStack) -> bool | None:
    again = running
    try:
        again = start_again(running, open_load, undo)
        rows = again.ask(f"SELECT letters FROM {mark.table}")
    except (ServerFailed, LoadDied):
        return True
    except DriverFailed as failure:
        if failure.kind in OF_DYNO and lives(again):
            raise
        return True
    finally:
        again.load.kill()
        again.server.kill()
    return None if rows == [[mark.text]] else False


def _found(path: Path, text: bytes) -> Iterator[int]:
    """Where a file holds a text."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(text)
        while start >= 0:
            yield start
            start = content.find(text, start + 1)
