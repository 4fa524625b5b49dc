"""Moves the settings of a server that runs already to those of whoever has a turn, and puts them back.

All trials of a run speak to one server. Whoever has a turn gives it all its levels, has them taken over and
reads them, in a pause that is as long for each variant.

Looks at the server's own load while a run goes on, and stops the run where that load suffers.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import NoReturn, Protocol

from dbdyno.engines.engine import Engine
from dbdyno.engines.put_back import (
    SCHEMA,
    TAKE_S,
    ReachedSession,
    SettingBefore,
    Strayed,
    put_back,
    reached,
    restart,
    wait_until,
)
from dbdyno.engines.runtime import BEAT_S, FoundSettings, Runtime, ServerLedger, connected, lacks_right
from dbdyno.errors import AnotherServer, Blocked, DriverFailed, DynoError, ServerFailed, Stopped
from dbdyno.frozen import Level, layer_and_knob, level_shown, level_text
from dbdyno.records.in_use import GuardSeen, InUse, Means, Moved, ServerId, SettingWay
from dbdyno.study.nouns import ServerInUse

LOOK_EVERY_S = 1.0
REMEMBERED = 10
"""Over so many looks the ages of statements are taken together."""
IN_A_ROW = 2
"""So many looks over a bound stop a run."""


def words_of(server: ServerInUse, runtime: Runtime) -> str:
    """What is watched and where it is read, in words; empty where nothing is."""
    bounds = []
    if server.guard_p99_s is not None:
        ages = f"the 99th percentile of the ages of its statements in {REMEMBERED} looks"
        bounds.append(f"{ages} at most {server.guard_p99_s:g} s ({runtime.LATENCY})")
    if server.guard_errors_per_s is not None:
        bounds.append(f"at most {server.guard_errors_per_s:g} errors per second ({runtime.ERRORS})")
    return " and ".join(bounds)


class SwitchGuard:
    """A thread of Dyno's own process. It looks at a fixed pace, whatever has a turn."""

    def __init__(self, switch: SettingsSwitch, server: ServerInUse, run: str) -> None:
        self._switch, self._server, self._run = switch, server, run
        self._over = threading.Event()
        self._ages: deque[tuple[float, ...]] = deque(maxlen=REMEMBERED)
        self._errors: tuple[float, float] | None = None
        self._strikes = 0
        self.seen = GuardSeen()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Looks within."""
        thread = threading.Thread(target=self._look_until_over, name="guard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look_until_over(self) -> None:
        for number in range(1_000_000_000):
            # A look that fails says nothing: whoever has the turn finds out what is wrong with the server.
            with suppress(DriverFailed):
                if self._server.guarded:
                    self.look()
                if self._switch.ledger is not None and number % round(BEAT_S / LOOK_EVERY_S) == 0:
                    self._switch.ledger.beat(self._run)
            if self._switch.stopped or self._over.wait(LOOK_EVERY_S):
                return

    def look(self) -> None:
        """One look. Stops the run where the looks in a row that were over a bound are enough."""
        now = self._switch.runtime.of_others(self._switch.ask)
        self._ages.append(now.ages_s)
        ages = sorted(age for each in self._ages for age in each)
        p99_s = ages[math.ceil(0.99 * len(ages)) - 1] if ages else 0.0
        errors_per_s = self._errors_per_s(now.errors)
        exceeded = self._exceeded(p99_s, errors_per_s)
        self._strikes = self._strikes + 1 if exceeded else 0
        stopped = exceeded if self._strikes >= IN_A_ROW else ""
        self.seen = GuardSeen(
            looks=self.seen.looks + 1,
            p99_s=max(self.seen.p99_s, round(p99_s, 6)),
            errors_per_s=max(self.seen.errors_per_s, round(errors_per_s, 3)),
            stopped=stopped,
        )
        if stopped:
            self._switch.stop(f"the guard of the server's own load stopped the run: {stopped}")

    def _errors_per_s(self, errors: float) -> float:
        before, at_s = self._errors, time.monotonic()
        self._errors = (errors, at_s)
        if before is None or at_s <= before[1]:
            return 0.0
        return max(0.0, errors - before[0]) / (at_s - before[1])

    def _exceeded(self, p99_s: float, errors_per_s: float) -> str:
        """Which bound was passed; empty where none was."""
        server = self._server
        if server.guard_p99_s is not None and p99_s > server.guard_p99_s:
            return f"its statements reached an age of {p99_s:.3f} s, and {server.guard_p99_s:g} s are allowed"
        if server.guard_errors_per_s is not None and errors_per_s > server.guard_errors_per_s:
            return (
                f"it had {errors_per_s:.1f} errors per second, and {server.guard_errors_per_s:g} are allowed"
            )
        return ""


OF_RUNNING = ("config", "workload", "statement")
"""Layers whose levels a server takes that Dyno did not start."""
UNSURE_HINT = "put it back where nobody else has changed it; then: dyno cleanup --forget URL"
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


class Note(Protocol):
    """Where a run notes what it is about to do to the server."""

    def settings(self, standings: Sequence[SettingBefore]) -> None:
        """Settings that are to be put back."""

    def moving(self, levels: Mapping[str, Level], before: Mapping[str, str]) -> AbstractContextManager[None]:
        """Settings are moved within, and all stood like this before."""

    def strayed(self, strayed: Strayed) -> None:
        """What reached another server."""


class SettingsSwitch:
    """The settings of one server during one run. Any thread may ask it to stop.

    `standing` are those that are moved for the whole server. Once it is `stopped`, nobody has a turn any
    more; the text says why."""

    def __init__(
        self,
        engine: Engine,
        in_use: InUse,
        server: ServerId,
        standing: Sequence[SettingBefore],
        note: Note | None = None,
        ledger: ServerLedger | None = None,
        allow_writes: bool = False,
    ) -> None:
        assert engine.runtime is not None, "who has no runtime was refused"
        self.runtime: Runtime = engine.runtime
        self.in_use = in_use
        self.server = server
        self.others_moved: dict[str, str] = {}
        self.along: dict[str, SettingBefore] = {}
        self.ledger = ledger
        self.allow_writes = allow_writes
        self.ask = connected(in_use.url)
        self.ways: Mapping[str, SettingWay] = {way.name: way for way in in_use.ways}
        self.stopped = ""
        self._settings = engine.settings
        self._standing = tuple(standing)
        self._note = note
        self._left = {one.name: one.line for one in standing}
        self._unanswered: dict[str, Level] = {}
        self._before: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._pause_s = PAUSE_S
        self._loads: set[int] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.in_use.url

    @property
    def standing(self) -> tuple[SettingBefore, ...]:
        """What was moved, and what moved along."""
        return (*self._standing, *self.along.values())

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
        """Compares, sets, and looks at what moved along, in one session that asks who answers before each
        write."""
        command = next((one.restart for one in self._standing if one.restart), "")
        try:
            with reached(self.url, self.server) as at:
                before = self._looked_before(at)
                with self._note.moving(levels, before) if self._note else nullcontext():
                    said = list[str]()
                    try:
                        for group in at.groups(levels):
                            self._set(at, group, said)
                        if not command:
                            at.take_over()
                            self._require_in_force(at, levels)
                    finally:
                        # A lost session fails once more, and the journal then names what it left open.
                        self._keep_along(at, before, levels, said)
            if command:
                restart(command, self.ask)
                with reached(self.url, self.server) as at:
                    self._require_in_force(at, levels)
                    self._keep_along(at, before, levels, said)
        except (AnotherServer, ServerFailed) as failed:
            if isinstance(failed, Strayed) and self._note is not None:
                self._note.strayed(failed)
            raise Stopped(failed.message, failed.hint) from None

    def _looked_before(self, at: ReachedSession) -> dict[str, str]:
        """All settings, before some are moved. Raises Stopped where others have changed what Dyno moves."""
        if at.ended:
            told = "the server has started again since the run began, which has ended what was moved there"
            raise Stopped(told, "begin a run of it anew")
        now = at.values()
        if not self._before:
            at.require_own_session()
            self._before = now
        for name, value in now.items():
            if self._last.get(name, value) != value and name not in self._left:
                self.others_moved[name] = f"{name} from {self._last[name]} to {value}"
        for name, along in self.along.items():
            if now.get(name) not in along.levels:
                self._stop_for(at, name, now.get(name), along.levels[-1])
        mine = {one.name for one in self._standing}
        if pending := [one for one in self.runtime.pending(at.ask, False) if one not in mine]:
            told = (
                f"others have changed {', '.join(pending)}, which the server would take over with the run's"
            )
            raise Stopped(told, "have it taken over, or take it back; then: dyno run --resume")
        return now

    def _set(self, at: ReachedSession, levels: Mapping[str, Level], all_said: list[str]) -> None:
        """Gives settings their levels by one statement, where they stand as Dyno left them; adds what the
        server says. Raises Stopped where others have changed one, and Blocked where the server refuses."""
        lines = at.lines(levels)
        for name, line in lines.items():
            unanswered = self._unanswered.get(name)
            own = unanswered is not None and line is not None and self._settings.same(name, unanswered, line)
            if line != self._left[name] and not own:
                self._stop_for(at, name, line, self._left[name])
        self._unanswered |= levels
        found = FoundSettings(lines, self.server)
        try:
            said = self.runtime.move(at.ask, levels, found)
            # Also where others come between next: it tells what moved along.
            all_said += said
        except DriverFailed as refused:
            now = at.lines(levels)
            for name in levels:
                if now[name] != lines[name]:
                    self._stop_for(at, name, now[name], lines[name])
            name = next((name for name in levels if name in refused.message), next(iter(levels)))
            told = f"the server does not take {name} = {level_shown(levels[name])}: {refused.message}"
            grant = self.ways[name].grant or "grant that" if lacks_right(refused) else ""
            raise Blocked(f"config.{name}", told, grant or "choose a level that it takes") from None
        now = at.require_written(found, {name: level_text(level) for name, level in levels.items()})
        for name, level in levels.items():
            line = now[name] or ""
            if not self._settings.same(name, level, line) and not self.runtime.explains(
                said, name, level, line
            ):
                # Others came between the writing and the reading.
                self._stop_for(at, name, now[name], level_text(level))
            self._left[name] = now[name]
            del self._unanswered[name]

    def _stop_for(self, at: ReachedSession, name: str, now: str | None, left: str | None) -> NoReturn:
        words = ["nothing" if one is None else level_shown(one) for one in (now, left)]
        told = f"{at.others_words(name)}: {name} is {words[0]} now, and Dyno had left {words[1]}"
        raise Stopped(told, "theirs stays; once it is to be moved again: dyno run --resume")

    def _keep_along(
        self, at: ReachedSession, before: Mapping[str, str], levels: Mapping[str, Level], said: Sequence[str]
    ) -> None:
        """Notes what else moved while some settings did, which is to be put back as well where the server
        itself has moved it."""
        now = at.values()
        leaders, unsure = tuple(one for one in self._standing if one.name in levels), list[str]()
        for name, value in now.items():
            was = before.get(name, value)
            if was == value or name in self._left:
                continue
            of_server = self.runtime.led_along(at.ask, said, name, value)
            if not of_server:
                self.others_moved[name] = f"{name} from {was} to {value}"
                unsure += [] if of_server is False else [self.others_moved[name]]
                continue
            known = self.along.get(name)
            if known is None:
                does = f"moved along with {', '.join(levels)}"
                line = was if self.runtime.COMPARES else None
                known = SettingBefore(
                    server=self.server, name=name, does=does, line=line, before=was, levels=(), led_by=leaders
                )
            if value not in known.levels:
                self.along[name] = known.but(levels=(*known.levels, value))
                if self._note is not None:
                    self._note.settings((self.along[name],))
        self._last = now
        if unsure:
            told = f"while Dyno moved {', '.join(levels)}, the server changed, or somebody else did"
            raise ServerFailed(f"{told}: {', '.join(unsure)}", UNSURE_HINT)

    def _require_in_force(self, at: ReachedSession, levels: Mapping[str, Level]) -> None:
        wrong: dict[str, str] = {}

        def in_force() -> bool:
            read = at.values()
            found = {name: read.get(name, "") for name in levels}
            wrong.clear()
            wrong.update(
                (name, found[name])
                for name, level in levels.items()
                if not self._settings.same(name, level, found[name])
            )
            return not wrong

        if not wait_until(in_force, TAKE_S):
            name, found = next(iter(wrong.items()))
            asked, runs_with = level_shown(levels[name]), level_shown(found)
            told = f"config.{name}: asked for {asked}, the server runs with {runs_with}"
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
        """Puts back what was moved and what moved along, and reads it. Raises like the putting back of one
        setting, and ServerFailed where another setting is not as it was before the first move."""
        with self._lock:
            if not self._standing:
                return ()
            left = {one.name: self._left_of(one.name) for one in self._standing}
            found = put_back(self.url, self.standing, left=left)
            if self._before:
                self._require_as_before({one.name for one in found if one.left})
            return found

    def _left_of(self, name: str) -> str | None:
        """What Dyno left for a setting; None where a session was lost before it answered."""
        return None if name in self._unanswered else self._left[name]

    def _require_as_before(self, left: Collection[str]) -> None:
        with reached(self.url, self.server) as at:
            now = at.values()
        changed = {
            name: value
            for name, value in self._before.items()
            if name not in left and now.get(name, value) != value
        }
        # What changed between two moves of Dyno's, others have changed.
        own = [name for name, value in changed.items() if now[name] == self._last.get(name)]
        self.others_moved |= {
            name: f"{name} from {value} to {now[name]}" for name, value in changed.items() if name not in own
        }
        if own := [name for name in own if name not in self.others_moved]:
            told = ", ".join(f"{name} was {self._before[name]} and is {now[name]}" for name in own)
            raise ServerFailed(f"not all settings are as before the run: {told}", "put them back by hand")

    def note_schema(self, run: str, name: str) -> None:
        """Notes on the server that a schema is about to be made, as far as that can be noted there."""
        if self.ledger is not None:
            self.ledger.note(run, SCHEMA, {name: self.server.model_dump_json()})
