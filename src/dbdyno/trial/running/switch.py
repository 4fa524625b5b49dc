"""Moves the settings of a server that runs already to those of whoever has a turn, and puts them back.

All trials of a run speak to one server. Whoever has a turn gives it all its levels, has them taken over and
reads them, in a pause that is as long for each variant.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dbdyno.engines.engine import Engine
from dbdyno.engines.ledger import Ledger
from dbdyno.engines.put_back import SCHEMA, TAKE_S, Standing, put_back, restart, wait_until
from dbdyno.engines.runtime import Runtime, connected
from dbdyno.errors import Blocked, DriverFailed, DynoError, ServerFailed, Stopped
from dbdyno.frozen import Level, layer_and_knob, level_text
from dbdyno.records.in_use import InUse, Means, Moved, Way

OF_RUNNING = ("config", "workload")
"""Layers whose levels a server takes that Dyno did not start."""
PAUSE_S = 0.25
"""From the beginning of a turn to its load. A server takes a change over in a few milliseconds."""


def unprovable(levels: Mapping[str, Level], baseline: Mapping[str, Level]) -> list[Blocked]:
    """Why a variant's levels are blocked that only a server of Dyno's own can have. The baseline's stand for
    whatever the server has."""
    return [
        Blocked(
            name,
            f"Dyno did not start this server, so {name} can be neither put in nor proved",
            "study it on a server of Dyno's own",
        )
        for name, level in levels.items()
        if layer_and_knob(name)[0] not in OF_RUNNING and level != baseline.get(name)
    ]


class Switch:
    """The settings of one server during one run. Any thread may ask it to stop.

    `standing` are those that are moved for the whole server. Once it is `stopped`, nobody has a turn any
    more; the text says why."""

    def __init__(
        self,
        engine: Engine,
        in_use: InUse,
        standing: Sequence[Standing],
        ledger: Ledger | None = None,
        allow_writes: bool = False,
    ) -> None:
        assert engine.runtime is not None, "who has no runtime was refused"
        self.runtime: Runtime = engine.runtime
        self.in_use = in_use
        self.ledger = ledger
        self.allow_writes = allow_writes
        self.ask = connected(in_use.url)
        self.ways: Mapping[str, Way] = {way.name: way for way in in_use.ways}
        self.stopped = ""
        self._settings = engine.settings
        self._standing = tuple(standing)
        self._pause_s = PAUSE_S
        self._loads: set[int] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.in_use.url

    @property
    def restarts(self) -> bool:
        """Whether the server is restarted between two variants."""
        return any(one.restart for one in self._standing)

    def refusal(self, name: str, level: Level) -> Blocked | None:
        """Why a level cannot be put in; None where it can, or where it is in force already."""
        way = self.ways.get(name)
        if way is None or not way.refused or self._settings.same(name, level, way.now):
            return None
        return Blocked(f"config.{name}", way.refused, way.remedy)

    def of_sessions(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Those of the levels that each session gives itself."""
        return {name: level for name, level in levels.items() if self._means(name) is Means.SESSION}

    def moves(self, name: str) -> bool:
        """Whether a setting can be given a level here."""
        return self._means(name) is not None

    def _means(self, name: str) -> Means | None:
        way = self.ways.get(name)
        return None if way is None or way.refused else way.means

    def follow(self, process_id: int) -> None:
        """Has a load process end when the run is stopped."""
        self._loads.add(process_id)

    def leave(self, process_id: int) -> None:
        """Forgets a load process that is about to end."""
        self._loads.discard(process_id)

    def take_turn(self, levels: Mapping[str, Level], anew: bool = True) -> None:
        """Gives the server these levels and returns once it runs with them. What only a restart puts into
        force is given `anew` alone.

        Raises Blocked for a level that the server refuses, and Stopped where nobody has a turn any more.
        """
        with self._lock:
            self.require_going()
            if not self._standing or (self.restarts and not anew):
                return
            began_s = time.monotonic()
            self._move({one.name: levels[one.name] for one in self._standing if one.name in levels})
            took_s = time.monotonic() - began_s
            # The pause is the same for all, so whoever took longer makes it longer for all that follow.
            self._pause_s = max(self._pause_s, 0.0 if self.restarts else took_s)
            time.sleep(max(0.0, self._pause_s - took_s))

    def _move(self, levels: Mapping[str, Level]) -> None:
        for name, level in levels.items():
            try:
                self.runtime.move(self.ask, name, level)
            except DriverFailed as refused:
                told = f"the server does not take {name} = {level_text(level)}: {refused.message}"
                raise Blocked(f"config.{name}", told, "choose a level that it takes") from None
        if command := next((one.restart for one in self._standing if one.restart), ""):
            try:
                restart(command, self.ask)
            except ServerFailed as failed:
                raise Stopped(failed.message, failed.hint) from None
        else:
            self.runtime.taken(self.ask)
        self._require_in_force(levels)

    def _require_in_force(self, levels: Mapping[str, Level]) -> None:
        wrong: dict[str, str] = {}

        def in_force() -> bool:
            read = self._settings.read(self.ask, frozenset(levels))
            found = {name: read[name].value if name in read else "" for name in levels}
            wrong.clear()
            wrong.update(
                (name, found[name])
                for name, level in levels.items()
                if not self._settings.same(name, level, found[name])
            )
            return not wrong

        if not wait_until(in_force, TAKE_S):
            name, found = next(iter(wrong.items()))
            told = f"config.{name}: asked for {level_text(levels[name])}, the server runs with {found}"
            raise Blocked(f"config.{name}", told, "choose a level that the server takes as it is")

    def require_going(self) -> None:
        """Raises Stopped where nobody has a turn any more."""
        if self.stopped:
            raise Stopped(self.stopped, "what was measured before is kept; the server has what it had")

    def stop(self, why: str) -> None:
        """Ends all loads at once and puts the settings back. Called from any thread."""
        self.stopped = why
        for process_id in tuple(self._loads):
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        with suppress(DynoError):
            # What resists still stands in the journal, which is undone when the run ends.
            self.put_back()

    def put_back(self) -> tuple[Moved, ...]:
        """Puts back what was moved, and reads it. Raises like the putting back of one setting."""
        with self._lock:
            return tuple(put_back(self.url, one) for one in reversed(self._standing))[::-1]

    def note_schema(self, run: str, name: str) -> None:
        """Notes on the server that a schema is about to be made, as far as that can be noted there."""
        if self.ledger is not None:
            self.ledger.note(run, SCHEMA, name, "", self.runtime.NOW)
