"""What verbs over many runs need of each finished run, kept so that its records are read once.

A run that has ended does not change, so neither does what is read of it. A reading is kept in the cache with
what it follows from: the run itself, how many of its trials ended in which way, and the code of this Dyno.
Where one of them is another, or the reading is gone or torn, it is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.host.cache import keep_beside, shelf
from dbdyno.host.paths import PACKAGE, code_files
from dbdyno.records.run import RunSummary
from dbdyno.records.store import Store

KIND = "readings"
BLOCKS_LEAST = 2
"""Of a line over the blocks of a run."""
Reading = TypeVar("Reading", bound=Frozen)


class RunOfIndex(Frozen):
    """What a list of runs says of one, from its records. `line` are the ratios of the variant `line_of` to
    the baseline, or to what it was held against, in the order of the blocks; `verdicts` counts the variants
    by theirs. `file` is the study's, and `engine` what it measured; `has_trend` says that runs of the study
    can be laid over days."""

    title: str
    answer: str
    verdicts: dict[str, int]
    line_of: str = ""
    line_against: str = "the baseline"
    line: tuple[float, ...] = ()
    file: str = ""
    engine: str = ""
    has_trend: bool = False


def nothing_between() -> None:
    """Nobody has a turn between two runs that are read."""


class Readings:
    """The readings of one store. In a cache that this user cannot write, none is kept."""

    def __init__(self, store: Store) -> None:
        self._origin = store.key_of_place
        self._name = _digest(self._origin)[:24]

    def of(
        self, summary: RunSummary, noun: type[Reading], make: Callable[[], Reading | None]
    ) -> Reading | None:
        """The reading of a run, made where none is kept that follows from the run as it is. Of a run that is
        not finished nothing is kept, and what cannot be read (None) is asked for again."""
        place = self.place_of(summary, noun.__name__)
        if place is None:
            return make()
        follows_from = self.follows_from(summary)
        if (kept := _kept(place, noun, follows_from)) is not None:
            return kept
        made = make()
        if made is not None:
            keep_beside(place, f"{follows_from}\n{made.model_dump_json()}\n")
        return made

    def kept(self, summary: RunSummary, noun: type[Reading]) -> Reading | None:
        """The reading of a run where one is kept that follows from the run as it is."""
        place = self.place_of(summary, noun.__name__)
        return None if place is None else _kept(place, noun, self.follows_from(summary))

    def place_of(self, summary: RunSummary, what: str) -> Path | None:
        """Where something of a run is kept; None where nothing is."""
        if not summary.finished or not self._origin or self._folder is None:
            return None
        return self._folder / f"{_digest(summary.run.run)}.{what}.json"

    def kept_index(self, noun: type[Reading]) -> Reading | None:
        """What is kept of all runs together, by this Dyno."""
        place = self._index
        return None if place is None else _kept(place, noun, self._code)

    def keep_index(self, found: Frozen) -> None:
        """Keeps what was read of all runs."""
        if (place := self._index) is not None:
            keep_beside(place, f"{self._code}\n{found.model_dump_json()}\n")

    @property
    def _index(self) -> Path | None:
        return self._folder / "index.json" if self._origin and self._folder is not None else None

    def forget(self, run: str) -> None:
        """Removes what is kept of a run that is no more. Of a folder that this user cannot write it stays."""
        with suppress(OSError):
            for place in (shelf(KIND).folder / self._name).glob(f"{_digest(run)}.*"):
                place.unlink()

    @cached_property
    def _folder(self) -> Path | None:
        try:
            return shelf(KIND).once(self._name, lambda _: ("what runs of a store say", self._origin))
        except (OSError, UserError):
            return None

    def follows_from(self, summary: RunSummary) -> str:
        """What a reading follows from; another one makes it stale."""
        outcomes = json.dumps(summary.outcomes, sort_keys=True)
        return _digest(self._code, summary.run.model_dump_json(), outcomes)

    @cached_property
    def _code(self) -> str:
        """What tells one state of the package from another: its files, with their sizes and times."""
        states = [(file.relative_to(PACKAGE), file.stat()) for file in code_files()]
        return _digest(*(f"{file} {state.st_size} {state.st_mtime_ns}" for file, state in states))


def _kept(place: Path, noun: type[Reading], follows_from: str) -> Reading | None:
    try:
        first, _, rest = place.read_text().partition("\n")
        return noun.model_validate_json(rest) if first == follows_from else None
    except (OSError, ValueError, ValidationError):
        return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
