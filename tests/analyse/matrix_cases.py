"""What the tests of matrix share with others."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.study import Goal, Workload
from tests.analyse.counted_cases import counted, counted_records
from tests.analyse.factory import Change, a_run, a_study, records_of

PGO: dict[str, list[Level]] = {"build.pgo": ["off", "read_write tables=4", "point_select"]}


BY_WRITES, BY_SELECTS = "build.pgo=read_write tables=4", "build.pgo=point_select"


def measured(
    workload: str,
    clients: int,
    ratios: Mapping[str, float],
    changes: Mapping[str, Change] | None = None,
    goal: Goal | None = None,
    factors: dict[str, list[Level]] | None = None,
    counts: Mapping[str, tuple[float, ...]] | None = None,
) -> Analysis:
    """The analysis of a run of builds under one load. `counts` are the repeats of counted instructions."""
    load = Workload(name=workload, clients=clients, warmup_s=5, duration_s=20)
    study = a_study(factors or PGO, goal=goal).but(workload=load)
    run = a_run(study).but(run=f"{workload}-{clients}")
    records = records_of(study, ratios, changes)
    beside = [(name, counted({"parse": each[0]}, each)) for name, each in (counts or {}).items()]
    return analyse(study, run, [*records, *counted_records(records[0], *beside)])


def runs() -> list[Analysis]:
    """Trained by selects it loses under writes."""
    return [
        measured("read_write", 8, {BY_WRITES: 1.3, BY_SELECTS: 0.9}),
        measured("point_select", 8, {BY_WRITES: 1.1, BY_SELECTS: 1.5}),
        measured("point_select", 64, {BY_WRITES: 1.1, BY_SELECTS: 1.2}),
    ]
