"""The budget: as many blocks as pay, durations that fit, and never more time than was given."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from dbdyno.budget import BLOCKS_LEAST, SHORTEST_S, fitted, precision
from dbdyno.errors import UserError
from dbdyno.plan import expected_duration_s, make_plan
from dbdyno.study import Study
from tests.fakes import make_study

OVERHEAD_S = 3.0


def study_of(levels: int, warmup_s: float = 2.0, duration_s: float = 20.0) -> Study:
    study = make_study(*range(levels))
    timed = study.workload.model_copy(update={"warmup_s": warmup_s, "duration_s": duration_s})
    return study.model_copy(update={"workload": timed})


@given(
    levels=some.integers(2, 30),
    warmup_s=some.floats(0, 10),
    duration_s=some.floats(0.5, 60),
    budget_s=some.floats(10, 20_000),
)
def test_a_budget_is_never_exceeded_and_well_used(
    levels: int, warmup_s: float, duration_s: float, budget_s: float
) -> None:
    study = study_of(levels, warmup_s, duration_s)
    assume(budget_s >= levels * BLOCKS_LEAST * (warmup_s + OVERHEAD_S + SHORTEST_S))
    fit = fitted(study, budget_s, OVERHEAD_S)
    takes_s = expected_duration_s(make_plan(fit), fit, OVERHEAD_S)
    assert takes_s <= budget_s * (1 + 1e-9)
    assert fit.blocks >= BLOCKS_LEAST
    assert min(SHORTEST_S, duration_s) <= fit.workload.duration_s <= duration_s
    assert fit.workload.warmup_s == warmup_s
    # One more block would not have fitted, or the time went into longer trials.
    one_block_s = levels * (warmup_s + OVERHEAD_S + fit.workload.duration_s)
    assert takes_s + one_block_s + levels * fit.blocks * 0.1 > budget_s


def test_more_time_gives_more_precision() -> None:
    widths = [
        precision(fitted(study_of(4), budget_s, OVERHEAD_S), 0.05).half_width
        for budget_s in (120.0, 300.0, 900.0, 3600.0)
    ]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4


def test_too_small_a_budget_says_what_is_needed() -> None:
    with pytest.raises(UserError, match="5 s are too few for 3 blocks of 4 variants") as caught:
        fitted(study_of(4), 5.0, OVERHEAD_S)
    assert caught.value.hint == "give at least 84 s, or leave out some levels"
    fitted(study_of(4), 84.0, OVERHEAD_S)


def test_one_block_has_no_precision() -> None:
    assert math.isfinite(precision(make_study(1, 2, blocks=2), 0.05).half_width)
    assert precision(make_study(1, 2, blocks=1), 0.05).half_width > 1e300
