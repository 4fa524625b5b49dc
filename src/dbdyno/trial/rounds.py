"""How a phase ends with its engine, and how the engine comes back: stopped, killed, or without power.

Each act ends the engine in a way of its own; all else is the same for each. The engine is started again on
what is left, and then every acknowledged transaction is looked for, one by one, and the workload's invariants
are checked.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

from dbdyno.driver.job import Closed, Job
from dbdyno.driver.load import Invariant
from dbdyno.errors import Blocked, DriverFailed, DynoError, ServerFailed
from dbdyno.host import paths
from dbdyno.host.process import standing_still
from dbdyno.host.volumes import power
from dbdyno.host.volumes.in_flight import Page, pages_in_flight, tear
from dbdyno.host.volumes.volume import Volume
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.record import Check, Loss, Recovery
from dbdyno.study.act import CLEANLY, OF_POWER, Act
from dbdyno.study.phases import Phase
from dbdyno.trial.act import in_the_midst, start_again, stopped_s, strike
from dbdyno.trial.acts import Acted, log_after, not_done
from dbdyno.trial.bench import Bench
from dbdyno.trial.blame import of_the_engine
from dbdyno.trial.flips import Mark, told_of
from dbdyno.trial.invariants import checks_of
from dbdyno.trial.ledger import (
    Ledger,
    Row,
    doubled,
    full_speed_s,
    losses,
    make_table,
    speed_per_s,
    windows_of,
)

BEYOND_S = 60.0
"""How long the load would go on after the act, which is far beyond what the act takes."""
TORN_MOST = 16
"""So many pages of those in flight are torn: about what a device has in hand at one time."""
TRIES, BETWEEN_TRIES_S = 20, 0.05
"""How often pages are looked for until some are in flight."""


@dataclass
class Ending:
    """An act under way. `at_ns`, of the monotonic clock, is when the engine was whole for the last time: what
    clients were told until then is owed. Those of `in_flight` are torn before power comes back. Of the row
    `mark` a bit is turned before the engine starts."""

    running: Running
    phase: Phase
    ledger: Ledger
    at_ns: int = 0
    stop_s: float | None = None
    in_flight: Sequence[Page] = ()
    mark: Mark | None = None
    over: Event = field(default_factory=Event)

    @property
    def job(self) -> Job:
        """The load up to the act: at full speed, and all in one piece."""
        beyond_s = 0.0 if self.phase.then in CLEANLY else BEYOND_S
        job = self.running.setup.job
        return job.but(
            load=Closed(),
            clients=self.phase.clients or job.clients,
            ramp_s=0.0,
            warmup_s=0.0,
            duration_s=self.phase.duration_s + beyond_s,
            slices=None,
            settle_s=0.0,
            operations=None,
            ledger=self.ledger.of_job,
        )


def round_of(running: Running, phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
    """Puts a load on the engine, acts, and starts the engine again. `undo` ends what is started.

    Raises Blocked where the act is not possible here, unless it is optional, ServerFailed or LoadDied for an
    engine that died before the act, DriverFailed where the driver fails after it, and DynoError where the act
    would show nothing.
    """
    assert phase.then is not None
    make_table(running.ask)
    folder = paths.runtime() / running.setup.scratch.name
    ending = Ending(running, phase, Ledger(folder))
    if phase.then is Act.FLIP:
        ending.mark = Mark.drawn(ending.ledger.cut, running.setup.job.seed)
        ending.mark.write(running.ask)
    try:
        ENDINGS[phase.then](ending)
    except Blocked as refused:
        if not phase.optional:
            raise
        # A kernel without the call refuses in the midst of the load, whose engine is then killed.
        up = start_again(running, bench.open_load, undo) if ending.at_ns else running
        return not_done(up, phase.then, refused)
    entries = ending.ledger.entries()
    if not entries:
        raise DynoError("no transaction was acknowledged before the act", "look at the server's log")
    running.load.kill()
    running.server.kill()
    torn_pages = _put_power_on(ending)
    counts = windows_of(entries, ending.at_ns)
    told = told_of(ending.mark, running, bench.open_load, undo) if ending.mark else None
    found = Recovery(
        act=phase.then,
        permits=permitted(running.setup, phase.then),
        stop_s=ending.stop_s,
        torn_pages=torn_pages,
        told=told,
        full_speed_s=full_speed_s(counts, running.fastest_per_s),
        speed_per_s=speed_per_s(counts),
        acknowledged=sum(entry.told_ns < ending.at_ns for entry in entries),
    )
    try:
        again = replace(
            start_again(running, bench.open_load, undo),
            fastest_per_s=max(running.fastest_per_s, found.speed_per_s),
        )
        rows, ready_s = _first_answer(again, ending.ledger)
        lost = losses(entries, rows, ending.at_ns)
        update = {"ready_s": ready_s, "lost": lost.lost, "lost_ms": lost.first_ms, "present": len(rows)}
        found = found.but(**update)
        checks = _judged(again.load.check(again.setup.job, None), rows)
        again, log = log_after(phase.then, again)
    except (ServerFailed, DriverFailed) as failure:
        if not of_the_engine(failure, running.setup.engine):
            raise
        last_words = failure.log if isinstance(failure, ServerFailed) else running.log()
        return Acted(running, found.but(damage=failure.message), log=last_words)
    broken = "; ".join(f"{check.name}: {check.detail}" for check in checks if not check.holds)
    return Acted(again, found.but(damage=broken), (*checks, *log))


def permitted(setup: Setup, act: Act) -> Loss:
    """What the settings let an act take along. The kernel keeps what it was given, whatever becomes of the
    engine, so a kill damages nothing; and a clean stop loses nothing, nor does a bit that is turned back."""
    if act in CLEANLY:
        return Loss.NOTHING
    found = setup.engine.settings.permits(setup.settings)
    return found if act in OF_POWER or found is Loss.NOTHING else Loss.COMMITS


def require_volume(setup: Setup) -> Volume:
    """The volume whose power an act cuts. Raises Blocked where there is none, or none with a switch."""
    if setup.powerless is not None:
        raise Blocked(power.FACTOR, setup.powerless.message, setup.powerless.hint)
    if setup.volume is None:
        reason = "the data lie on the host's file system, which is not cut"
        raise Blocked(power.FACTOR, reason, power.HAVE_SWITCH)
    return setup.volume


def _stop(ending: Ending) -> None:
    """Lets the load come to its end, then stops the engine cleanly and times that."""
    running = ending.running
    running.load.run(ending.job)
    ending.at_ns = time.monotonic_ns()
    ending.stop_s = stopped_s(running)


def _kill(ending: Ending) -> None:
    def kill() -> None:
        ending.at_ns = time.monotonic_ns()

    _in_the_midst(ending, kill)


def _cut(ending: Ending) -> None:
    with power.Switch(require_volume(ending.running.setup)) as switch:

        def cut() -> None:
            ending.at_ns = time.monotonic_ns()
            switch.off()

        _in_the_midst(ending, cut)


def _tear(ending: Ending) -> None:
    setup = ending.running.setup
    volume = require_volume(setup)
    page_bytes = setup.engine.settings.page_bytes(setup.settings)
    with power.Switch(volume) as switch:

        def cut() -> None:
            for number in range(TRIES):
                ending.at_ns = time.monotonic_ns()
                with standing_still(ending.running.process_ids) as still:
                    # Of a server that goes on, other pages are on their way by the cut.
                    ending.in_flight = pages_in_flight(volume, page_bytes) if still else ()
                    if ending.in_flight or number == TRIES - 1:
                        switch.off()
                        return
                ending.over.wait(BETWEEN_TRIES_S)

        _in_the_midst(ending, cut)


ENDINGS: dict[Act, Callable[[Ending], None]] = {
    Act.STOP: _stop,
    Act.KILL: _kill,
    Act.CUT: _cut,
    Act.TEAR: _tear,
    Act.FLIP: _stop,
}


def _in_the_midst(ending: Ending, act: Callable[[], None]) -> None:
    """Puts the load on, acts when it has gone on for as long as the phase says, and then ends the engine.
    Raises what the engine did wrong where it ended before."""

    def when_due() -> bool:
        return ending.ledger.begins(ending.over) and strike(
            ending.running, ending.over, ending.phase.duration_s, act
        )

    in_the_midst(ending.running, partial(ending.running.load.run, ending.job), when_due, ending.over)


def _put_power_on(ending: Ending) -> int | None:
    """Mounts the volume again after a cut. Returns how many pages were torn; None where none were to be."""
    if ending.phase.then not in OF_POWER:
        return None
    volume = require_volume(ending.running.setup)
    power.lift(volume)
    torn_pages = None
    if ending.phase.then is Act.TEAR:
        draw = random.Random(ending.at_ns)
        chosen = draw.sample(ending.in_flight, min(TORN_MOST, len(ending.in_flight)))
        torn_pages = tear(volume, chosen, [draw.random() < 0.5 for _ in chosen])
    power.put_on(volume)
    return torn_pages


def _first_answer(again: Running, ledger: Ledger) -> tuple[list[Row], float]:
    """The rows of the ledger, and how long the engine needed to answer. An embedded engine recovers when its
    file is opened, which the first question does."""
    if again.setup.engine.embedded:
        # The load process is listening once it refuses what is no address.
        with suppress(DriverFailed):
            again.load.query("", "")
    began = time.monotonic()
    rows = ledger.rows(again.ask)
    opening_s = time.monotonic() - began if again.setup.engine.embedded else 0.0
    return rows, round(again.server.ready_s + opening_s, 6)


def _judged(invariants: Sequence[Invariant], rows: Sequence[Row]) -> tuple[Check, ...]:
    twice = doubled(rows)
    detail = f"{twice} of {len(rows)} transactions took effect twice" if twice else ""
    return (*checks_of(invariants), Check(name="no_transaction_twice", holds=not twice, detail=detail))
