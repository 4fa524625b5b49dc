"""What the tests of restarts share with others."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import Loss, Outcome, PhaseRecord, Record, Recovery
from dbdyno.study import DURABLE, Goal, Guard, Restarts
from dbdyno.study.designs import CONTROL
from dbdyno.study.soak import Act
from dbdyno.study.trials import NO_BLOCK, RESTARTS_FROM
from tests.analyse.factory import a_run, a_study, records_of

FAST = "config.page_cache=64k"


GUARDS = (Guard(text="invariants", metric="invariants"), Guard(text=DURABLE, metric=DURABLE))


RESTARTS = Restarts(power_cuts=3, control={"config.forced_writes": False})


STUDY = a_study(goal=Goal(guards=GUARDS)).but(restarts=RESTARTS)


TIMED = records_of(STUDY, {FAST: 2.0})


def kept(**found: Any) -> Recovery:
    """A power cut after which all is there, but for what is `found`."""
    return Recovery(**{"act": Act.CUT, "ready_s": 1.5, "acknowledged": 100, "present": 100, **found})


LOST = kept(permits=Loss.COMMITS, lost=7, lost_ms=12.5, present=93)


def record_of(number: int, variant: str, *recoveries: Recovery, **changes: Any) -> Record:
    phases = tuple(
        PhaseRecord(name=f"{one.act}-{place}", recovery=one) for place, one in enumerate(recoveries, 1)
    )
    where = {"trial": RESTARTS_FROM + number, "block": NO_BLOCK, "variant": variant, "phases": phases}
    return TIMED[0].but(**{**where, "outcome": Outcome.MEASURED, **changes})


def analysed(*restarts: Record) -> Analysis:
    return analyse(STUDY, a_run(STUDY), [*TIMED, *restarts])


CONTROLLED = record_of(9, CONTROL, LOST)
