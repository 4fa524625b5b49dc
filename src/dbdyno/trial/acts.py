"""What is done to a server on purpose, one function for each act. Each ends with a server that runs again on
what was left, and is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from dbdyno.driver.tally import Acknowledged
from dbdyno.engines.log import untold
from dbdyno.errors import Blocked
from dbdyno.layers.setup import Running
from dbdyno.records.record import Check, Recovery
from dbdyno.study.act import Act
from dbdyno.study.nouns import KEEPS_LEDGER
from dbdyno.study.phases import Phase
from dbdyno.trial.act import kill_under_load, start_again, stopped_s
from dbdyno.trial.bench import Bench
from dbdyno.trial.invariants import checks_of


@dataclass(frozen=True)
class Acted:
    """The server that runs again, how it came there, and whether all is there that any client was told. `log`
    is that of one that did not come back."""

    running: Running
    recovery: Recovery
    checks: tuple[Check, ...] = ()
    log: str = ""


Deed = Callable[[Running, Phase, Bench, ExitStack], Acted]
"""Raises Blocked where it cannot be done here, and nothing was done; ServerFailed where the server does not
end or does not come up again."""


def act_on(running: Running, phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
    """Does to the server what the phase asks for. What cannot be done here is told as such, and the server
    goes on as it was."""
    assert phase.then is not None, "there is something to be done"
    try:
        return DEEDS[phase.then](running, phase, bench, undo)
    except Blocked as refused:
        return not_done(running, phase.then, refused)


def not_done(running: Running, act: Act, refused: Blocked) -> Acted:
    """An act that was left out, with what would allow it."""
    return Acted(running, Recovery(act=act, blocked=refused.message, remedy=refused.hint))


def _stop(running: Running, _phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
    """Asks for a clean end."""
    stop_s = stopped_s(running)
    again = start_again(running, bench.open_load, undo)
    recovery = Recovery(act=Act.STOP, stop_s=stop_s, ready_s=again.server.ready_s)
    return _checked(running, again, Acknowledged(), recovery)


def _kill(running: Running, phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
    """Kills the engine while all clients of the phase are at work."""
    told = kill_under_load(running, phase.clients)
    again = start_again(running, bench.open_load, undo)
    recovery = Recovery(act=Act.KILL, ready_s=again.server.ready_s)
    return _checked(running, again, told, recovery)


def _without_ledger(running: Running, _phase: Phase, _bench: Bench, _undo: ExitStack) -> Acted:
    """Refuses a power cut whose losses nobody could tell."""
    raise Blocked(
        "workload.name",
        f"what a power cut takes along is not known under {running.setup.job.workload}",
        f"take a workload that keeps a ledger and writes: {', '.join(KEEPS_LEDGER)}",
    )


def _checked(before: Running, again: Running, told: Acknowledged, recovery: Recovery) -> Acted:
    """Whether all is there that clients were told until the server went down."""
    again = replace(again, tally=None, told=before.told_so_far.plus(told))
    invariants = again.load.check(again.setup.job, again.told)
    up, log = log_after(recovery.act, again)
    return Acted(up, recovery, (*checks_of(invariants, after=recovery.act.value), *log))


def log_after(act: Act, again: Running) -> tuple[Running, tuple[Check, ...]]:
    """What the server's log says of its start after an act: a check that holds, because an invariant must
    judge it; none where the log says nothing that it has not said before."""
    logged = again.server.log_problems()
    problems = untold(logged, again.logged)
    log = Check(name=f"server_log_after_{act.value}", holds=True, detail=" | ".join(problems))
    return replace(again, logged=tuple(logged)), (log,) if problems else ()


DEEDS: Mapping[Act, Deed] = {
    Act.STOP: _stop,
    Act.KILL: _kill,
    Act.CUT: _without_ledger,
    Act.TEAR: _without_ledger,
}
"""Acts of phases without a ledger. Those with one are `rounds.py`'s."""
