"""What the tests of gate share with others."""

from __future__ import annotations

from dbdyno.analyse import Analysis
from dbdyno.analyse.gate import (
    PastRun,
)
from dbdyno.findings import analyse
from dbdyno.study import Goal
from tests.analyse.factory import Change, a_run, a_study, records_of

SETUP = "the setup"


def an_analysis(
    name: str = "now",
    speed: float = 1.0,
    seed: int = 1,
    change: Change | None = None,
    goal: Goal | None = None,
) -> Analysis:
    study = a_study(goal=goal)
    run = a_run(study).but(run=name)

    records = records_of(study, {"baseline": speed}, seed=seed)
    return analyse(study, run, [change(record) for record in records] if change else records)


def past_of(*log_means: float, setup: str = SETUP) -> list[PastRun]:
    return [
        PastRun(run=f"{setup}-{index}", setup=setup, began_unix_s=float(index), log_mean=value)
        for index, value in enumerate(log_means)
    ]
