"""How each act ends an engine: cleanly after the load, by a kill in its midst, or without power.

And what each act came to, which `judged` says once it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

from dbdyno.driver.job import Closed, Job
from dbdyno.driver.load import Invariant
from dbdyno.driver.tally import Acknowledged
from dbdyno.engines.server import untold
from dbdyno.errors import Blocked
from dbdyno.host.process import standing_still
from dbdyno.host.volumes import power
from dbdyno.host.volumes.power import Page, pages_in_flight
from dbdyno.host.volumes.volume import Volume
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.record import Check
from dbdyno.records.recovery import Recovery
from dbdyno.study.act import CLEANLY, Act
from dbdyno.study.nouns import KEEPS_LEDGER
from dbdyno.study.phases import Phase
from dbdyno.trial.acts.engine import in_the_midst, kill_under_load, stopped_s, strike
from dbdyno.trial.acts.flips import Mark
from dbdyno.trial.acts.ledger import Ledger, Row, doubled
from dbdyno.trial.nodes import checks_of


@dataclass(frozen=True)
class Acted:
    """The server that runs again, how it came there, and whether all is there that any client was told. `log`
    is that of one that did not come back."""

    running: Running
    recovery: Recovery
    checks: tuple[Check, ...] = ()
    log: str = ""


def judged(invariants: Sequence[Invariant], rows: Sequence[Row]) -> tuple[Check, ...]:
    """The workload's invariants, and that no transaction took effect twice."""
    twice = doubled(rows)
    detail = f"{twice} of {len(rows)} transactions took effect twice" if twice else ""
    return (*checks_of(invariants), Check(name="no_transaction_twice", holds=not twice, detail=detail))


def broken(checks: Sequence[Check]) -> str:
    """What does not hold; empty where all does."""
    return "; ".join(f"{check.name}: {check.detail}" for check in checks if not check.holds)


def log_after(act: Act, again: Running) -> tuple[Running, tuple[Check, ...]]:
    """What the server's log says of its start after an act: a check that holds, because an invariant must
    judge it; none where the log says nothing that it has not said before."""
    logged = again.server.log_problems()
    problems = untold(logged, again.logged)
    log = Check(name=f"server_log_after_{act.value}", holds=True, detail=" | ".join(problems))
    return replace(again, logged=tuple(logged)), (log,) if problems else ()


BEYOND_S = 60.0
"""How long the load would go on after the act, which is far beyond what the act takes."""
TRIES, BETWEEN_TRIES_S = 20, 0.05
"""How often pages are looked for until some are in flight."""


@dataclass
class Ending:
    """An act under way. The `ledger` is its witness where one is kept; without one, `told` is what clients
    were told in the act. `at_ns`, of the monotonic clock, is when the engine was last whole: what
    clients were told until then is owed. Those of `in_flight` are torn before power comes back. Of the row
    `mark` a bit is turned before the engine starts."""

    running: Running
    phase: Phase
    ledger: Ledger | None = None
    told: Acknowledged = field(default_factory=Acknowledged)
    at_ns: int = 0
    stop_s: float | None = None
    in_flight: Sequence[Page] = ()
    mark: Mark | None = None
    over: Event = field(default_factory=Event)

    def job(self, ledger: Ledger) -> Job:
        """The load up to the act, which the ledger witnesses: at full speed, and all in one piece."""
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
            ledger=ledger.of_job,
        )


def require_volume(setup: Setup) -> Volume:
    """The volume whose power an act cuts. Raises Blocked where there is none, or none with a switch."""
    if setup.powerless is not None:
        raise Blocked(power.FACTOR, setup.powerless.message, setup.powerless.hint)
    if setup.volume is None:
        reason = "the data lie on the host's file system, which is not cut"
        raise Blocked(power.FACTOR, reason, power.HAVE_SWITCH)
    return setup.volume


def _require_ledger(ending: Ending) -> Ledger:
    """The ledger of a power cut, whose losses nobody could tell otherwise. Raises Blocked without one."""
    if ending.ledger is None:
        raise Blocked(
            "workload.name",
            f"what a power cut takes along is not known under {ending.running.setup.job.workload}",
            f"take a workload that keeps a ledger and writes: {', '.join(KEEPS_LEDGER)}",
        )
    return ending.ledger


def _stop(ending: Ending) -> None:
    """Lets the load come to its end, where a ledger witnesses it, then stops the engine cleanly and times
    that."""
    running = ending.running
    if ending.ledger is not None:
        running.load.run(ending.job(ending.ledger))
    ending.at_ns = time.monotonic_ns()
    ending.stop_s = stopped_s(running)


def _flip(ending: Ending) -> None:
    """Writes a row that is known before the load, so that a bit of it can be turned afterwards."""
    assert ending.ledger is not None, "a round keeps a ledger"
    ending.mark = Mark.drawn(ending.ledger.cut, ending.running.setup.job.seed)
    ending.mark.write(ending.running.ask)
    _stop(ending)


def _kill(ending: Ending) -> None:
    """Kills the engine while all clients of the phase are at work."""
    if ending.ledger is None:
        ending.told = kill_under_load(ending.running, ending.phase.clients)
        return

    def kill() -> None:
        ending.at_ns = time.monotonic_ns()

    _in_the_midst(ending, ending.ledger, kill)


def _cut(ending: Ending) -> None:
    ledger = _require_ledger(ending)
    with power.Switch(require_volume(ending.running.setup)) as switch:

        def cut() -> None:
            ending.at_ns = time.monotonic_ns()
            switch.off()

        _in_the_midst(ending, ledger, cut)


def _tear(ending: Ending) -> None:
    ledger, setup = _require_ledger(ending), ending.running.setup
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

        _in_the_midst(ending, ledger, cut)


ENDINGS: Mapping[Act, Callable[[Ending], None]] = {
    Act.STOP: _stop,
    Act.KILL: _kill,
    Act.CUT: _cut,
    Act.TEAR: _tear,
    Act.FLIP: _flip,
}
"""Each ends the engine. Raises Blocked where it cannot be done here, and ServerFailed where the engine does
not end."""


def _in_the_midst(ending: Ending, ledger: Ledger, act: Callable[[], None]) -> None:
    """Puts the load on, acts when it has gone on for as long as the phase says, and then ends the engine.
    Raises what the engine did wrong where it ended before."""
    running = ending.running

    def when_due() -> bool:
        return ledger.begins(ending.over) and strike(running, ending.over, ending.phase.duration_s, act)

    in_the_midst(running, partial(running.load.run, ending.job(ledger)), when_due, ending.over)
