"""Records made once and changed for each simulated run, because their histograms take long to make."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dbdyno.records.record import Record
from dbdyno.study import Study
from tests.analyse.factory import DURATION_S, a_study, records_of

LEVELS = {"config.page_cache": ["2k", "64k", "128k", "256k"]}
STUDY = a_study(LEVELS, blocks=12)
OTHERS = [f"config.page_cache={level}" for level in LEVELS["config.page_cache"][1:]]
OPERATIONS = 80_000
"""About as many as a record has."""


@cache
def as_made() -> tuple[Record, ...]:
    """The records of the study above."""
    return tuple(records_of(STUDY))


def changed(record: Record, operations: float, totals: Mapping[str, float]) -> Record:
    """The record of a trial that had so many transactions, in which these totals were observed."""
    [phase] = record.phases
    assert phase.observation is not None and phase.tally is not None
    observation = phase.observation.but(totals={**phase.observation.totals, **totals})
    count = round(operations)
    tally = phase.tally.but(operations=count, throughput_per_s=count / DURATION_S)
    return record.but(phases=(phase.but(observation=observation, tally=tally),))


def with_goal(study: Study, **goal: object) -> Study:
    return study.but(goal=study.goal.but(**goal))
