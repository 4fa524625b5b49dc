"""The stage that puts the load on a server, or lets it rest."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeVar

from dbdyno.driver.job import Open
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.layers.setup import Running
from dbdyno.records.load_words import came_to
from dbdyno.study.nouns import STATEMENTS
from dbdyno.study.trials import Phase
from dbdyno.trial.bench import Clock

T = TypeVar("T")
AtWork = Callable[[], AbstractContextManager[object]]
"""What surrounds each stretch in which the load is on the server."""
GROWING = ("flow_control_s", "node_aborts")
"""What nodes of a cluster count from their start on."""
LOOK_EVERY_S = 0.5
"""How long a server that rests may be gone before that is noticed."""
MEND_FULL = (
    "raise the server's max_connections, give what stands in front fewer workers or connections, or look for "
    "a leak: connections that it opens and never closes"
)


Steps = Generator[int | None, bool | None, T]
"""What stops where another trial may have a turn. It gives how many transactions its clients have been told
of, where a load waits, and True sent to it ends that load."""


def drive(running: Running, phase: Phase, at_work: AtWork, clock: Clock) -> Steps[Running]:
    """Puts the phase's load on the server, with the engine's own counters read right before and right after
    it. Stops before each of its slices, so that another server can have one meanwhile.

    A phase that rests has neither load nor tally. Raises ServerFailed where the server dies of that.
    """
    told = running.told_so_far
    if phase.rests:
        with at_work():
            _rest(running, phase.duration_s, clock)
        return replace(running, tally=None, told=told)
    job = running.setup.job.but(
        clients=phase.clients or running.setup.job.clients,
        ramp_s=phase.ramp_s,
        warmup_s=phase.warmup_s,
        duration_s=phase.duration_s,
        slices=phase.slices,
        settle_s=phase.settle_s,
        options={**running.setup.job.options, **phase.options},
        operations=phase.operations or running.setup.job.operations,
        load=running.setup.job.load if phase.rate_per_s is None else Open(rate_per_s=phase.rate_per_s),
    )
    lag = running.lag()
    if job.workload == STATEMENTS:
        with at_work(), naming_full_server(running):
            warmed = running.load.run(job.but(options={**job.options, "rounds": 1}))
        told = told.plus(Acknowledged.by([warmed]))
    with at_work():
        before = running.status()
        with naming_full_server(running):
            tally = running.load.begin(job)
    while tally is None:
        over = yield running.load.told.acknowledged if running.load.told else None
        with at_work(), naming_full_server(running):
            tally = running.load.end() if over else running.load.go_on()
    _require_done(phase, tally)
    lagged = _lagged(lag, running.lag())
    with naming_full_server(running, came_to(tally)):
        after = running.status()
    driven = replace(running, tally=tally, told=told, lagged=lagged)
    return replace(driven, status_before=before, status_after=after)


def _require_done(phase: Phase, tally: Tally) -> None:
    """What comes next stands on all of a phase's work, so that variants must have done the same."""
    if phase.operations and tally.operations + tally.failed < phase.operations:
        raise DynoError(
            f"phase {phase.name}: {tally.operations:,} of {phase.operations:,} transactions were done in "
            f"{tally.duration_s:.3g} of {phase.duration_s:g} s",
            "give it a longer duration, or fewer operations",
        )


def _lagged(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How far nodes are behind after a load, and what it added to what only grows."""
    return {
        name: value - before.get(name, 0.0) if name in GROWING else value for name, value in after.items()
    }


@contextmanager
def naming_full_server(running: Running, outcome: str = "") -> Iterator[None]:
    """Names the server beneath an application, where something fails and that server has no connection left.
    The application itself answers with little more than a 500. `outcome` is what the load came to, once it is
    over."""
    try:
        yield
    except DriverFailed as failure:
        refused = _refused(running)
        if not refused:
            raise
        title = running.front.process.title if running.front else ""
        full = f"the server accepts no connection beside those of {title}: {refused}"
        raise DriverFailed(f"{full}; {outcome or failure.message}", MEND_FULL, failure.kind) from None


def _refused(running: Running) -> str:
    """What the server beneath an application says to a client that comes now; empty where it lets that in."""
    if running.front is None or not running.server.alive():
        return ""
    try:
        running.ask("SELECT 1")
    except LoadDied:
        return ""
    except DriverFailed as refusal:
        return refusal.message
    return ""


def _rest(running: Running, duration_s: float, clock: Clock) -> None:
    over_s = clock.monotonic_s() + duration_s
    while (left_s := over_s - clock.monotonic_s()) > 0.0:
        if not running.server.alive():
            raise ServerFailed("the server died while it rested", log=running.server.log())
        clock.sleep(min(left_s, LOOK_EVERY_S))
