"""What is done to a server on purpose: it is stopped, killed, loses its power, or finds a bit that is wrong.

Each act ends the engine in a way of its own (`endings.py`); all else is the same for each. The engine is
started again on what is left, and then it is asked whether all is there that clients were told. Where a
ledger was kept, every acknowledged transaction is looked for, one by one; without one, the workload's
invariants count.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack, suppress
from dataclasses import replace

from dbdyno.errors import Blocked, DriverFailed, DynoError, ServerFailed
from dbdyno.host import paths
from dbdyno.host.volumes import power
from dbdyno.host.volumes.power import tear
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.record import Loss, Recovery
from dbdyno.study.soak import CLEANLY, OF_CLUSTER, OF_POWER, Act
from dbdyno.study.trials import Phase
from dbdyno.trial.acts.cluster import act_on_node
from dbdyno.trial.acts.endings import (
    ENDINGS,
    Acted,
    ActUnderWay,
    Ledger,
    Row,
    broken,
    full_speed_s,
    judged,
    log_after,
    losses,
    make_table,
    require_volume,
    speed_per_s,
    told_of,
    windows_of,
)
from dbdyno.trial.acts.engine import start_again
from dbdyno.trial.bench import Bench
from dbdyno.trial.nodes import checks_of_invariants
from dbdyno.trial.record_builder import of_the_engine

TORN_MOST = 16
"""So many pages of those in flight are torn: about what a device has in hand at one time."""


def act_on(running: Running, phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
    """Does to the server what the phase asks for, and starts it again. `undo` ends what is started. An
    optional act that cannot be done here is told as such, and the server goes on as it was.

    Raises Blocked where another act is not possible here, ServerFailed or LoadDied for an engine that died
    before the act, ServerFailed where nobody keeps a ledger and it does not end or come up again,
    DriverFailed where the driver fails after it, and DynoError where the act would show nothing.
    """
    assert phase.then is not None, "there is something to be done"
    ending = ActUnderWay(running, phase, _ledger_of(running) if phase.ledger else None)
    try:
        if phase.then in OF_CLUSTER:
            assert ending.ledger is not None, "a round keeps a ledger"
            return act_on_node(running, phase, ending.ledger, bench, undo)
        ENDINGS[phase.then](ending)
    except Blocked as refused:
        if not phase.optional:
            raise
        # A kernel without the call refuses in the midst of the load, whose engine is then killed.
        up = start_again(running, bench.open_load, undo) if ending.at_ns else running
        recovery = Recovery(act=phase.then, blocked=refused.message, remedy=refused.hint)
        return Acted(up, recovery)
    if ending.ledger is None:
        return _counted(phase.then, ending, bench, undo)
    return _looked_for(phase.then, ending, ending.ledger, bench, undo)


def _ledger_of(running: Running) -> Ledger:
    make_table(running.ask)
    return Ledger(paths.runtime() / running.setup.scratch.name)


def _counted(act: Act, ending: ActUnderWay, bench: Bench, undo: ExitStack) -> Acted:
    """Starts the engine again, and holds its data against what clients were told until it went down, by
    counts alone."""
    up = start_again(ending.running, bench.open_load, undo)
    recovery = Recovery(act=act, stop_s=ending.stop_s, ready_s=up.server.ready_s)
    up = replace(up, tally=None, told=ending.running.told_so_far.plus(ending.told))
    invariants = up.load.check(up.setup.job, up.told)
    up, log = log_after(act, up)
    return Acted(up, recovery, (*checks_of_invariants(invariants, after=act.value), *log))


def _looked_for(act: Act, ending: ActUnderWay, ledger: Ledger, bench: Bench, undo: ExitStack) -> Acted:
    """Starts the engine again, and looks for each transaction that the ledger holds."""
    running, entries = ending.running, ledger.entries()
    if not entries:
        raise DynoError("no transaction was acknowledged before the act", "look at the server's log")
    running.load.kill()
    running.server.kill()
    torn_pages = _put_power_on(act, ending)
    counts = windows_of(entries, ending.at_ns)
    found = Recovery(
        act=act,
        permits=permitted(running.setup, act),
        stop_s=ending.stop_s,
        torn_pages=torn_pages,
        told=told_of(ending.mark, running, bench.open_load, undo) if ending.mark else None,
        full_speed_s=full_speed_s(counts, running.fastest_per_s),
        speed_per_s=speed_per_s(counts),
        acknowledged=sum(entry.told_ns < ending.at_ns for entry in entries),
    )
    try:
        fastest_per_s = max(running.fastest_per_s, found.speed_per_s)
        again = replace(start_again(running, bench.open_load, undo), fastest_per_s=fastest_per_s)
        rows, ready_s = _first_answer(again, ledger)
        lost = losses(entries, rows, ending.at_ns)
        found = found.but(ready_s=ready_s, lost=lost.lost, lost_ms=lost.first_ms, present=len(rows))
        checks = judged(again.load.check(again.setup.job, None), rows)
        again, log = log_after(act, again)
    except (ServerFailed, DriverFailed) as failure:
        if not of_the_engine(failure, running.setup.engine):
            raise
        last_words = failure.log if isinstance(failure, ServerFailed) else running.log()
        return Acted(running, found.but(damage=failure.message), log=last_words)
    return Acted(again, found.but(damage=broken(checks)), (*checks, *log))


def permitted(setup: Setup, act: Act) -> Loss:
    """What the settings let an act take along. The kernel keeps what it was given, whatever becomes of the
    engine, so a kill damages nothing; and a clean stop loses nothing, nor does a bit that is turned back."""
    if act in CLEANLY:
        return Loss.NOTHING
    found = setup.engine.settings.permits(setup.settings)
    return found if act in OF_POWER or found is Loss.NOTHING else Loss.COMMITS


def _put_power_on(act: Act, ending: ActUnderWay) -> int | None:
    """Mounts the volume again after a cut. Returns how many pages were torn; None where none were to be."""
    if act not in OF_POWER:
        return None
    volume = require_volume(ending.running.setup)
    power.lift(volume)
    torn_pages = None
    if act is Act.TEAR:
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
