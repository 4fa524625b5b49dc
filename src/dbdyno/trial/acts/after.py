"""What an act came to, and what is judged once it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbdyno.driver.load import Invariant
from dbdyno.engines.server import untold
from dbdyno.layers.setup import Running
from dbdyno.records.record import Check
from dbdyno.records.recovery import Recovery
from dbdyno.study.act import Act
from dbdyno.trial.acts.ledger import Row, doubled
from dbdyno.trial.invariants import checks_of


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
