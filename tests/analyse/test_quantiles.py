"""Quantiles are the tabled ones, and several intervals hold together as often as one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.quantiles import beside, claims, confidence_each, floor_reach, is_beaten, t_quantile
from dbdyno.findings import analyse
from dbdyno.findings.factors import Cells, factorial
from dbdyno.findings.gap_shares import explain
from dbdyno.report.words.numbers import differs
from dbdyno.study import Design, Study
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import PLAIN


def test_one_comparison_is_not_corrected_and_more_are_corrected_more() -> None:
    assert confidence_each(0.95, 1) == 0.95
    assert confidence_each(0.95, 0) == 0.95
    assert confidence_each(0.95, 10) ** 10 == pytest.approx(0.95)


def test_the_t_quantile_is_the_tabled_one() -> None:
    assert t_quantile(0.95, 6) == pytest.approx(2.571, abs=5e-4)


@given(st.floats(0.5, 0.9999), st.integers(2, 50_000))
def test_students_quantile_has_the_digits_of_the_library_of_distributions(
    confidence: float, pairs: int
) -> None:
    assert t_quantile(confidence, pairs) == float(stats.t.ppf(0.5 + confidence / 2.0, pairs - 1))


RUNS = 300
MOST = 28
"""Wrong runs of 300: a share of 5 % gives more in one series of a thousand (binomial law)."""


def of_factors(count: int, levels: int = 2, design: Design = Design.FACTORIAL) -> Study:
    return a_study({f"config.f{one}": list(range(levels)) for one in range(count)}, design=design)


def head_errs(study: Study, random: np.random.Generator, blocks: int, together: bool) -> bool:
    """Whether the head of a report on equal variants says that anything differs."""
    settings = list(product(*(factor.levels for factor in study.factors)))
    logs = random.normal(0.0, 0.02, (len(settings), blocks))
    cells: Cells = {
        setting: {("host", block): math.exp(log) for block, log in enumerate(row)}
        for setting, row in zip(settings, logs, strict=True)
    }
    candidates = len(settings) - 1
    size = claims(study, candidates) if together else study.goal.comparisons(candidates)
    each = confidence_each(0.95, size)
    told = [ratio_of("throughput", row - logs[0], each) for row in logs[1:]]
    estimator = Estimator(PLAIN.method.but(confidence_each=each))
    told += [one.effect for one in factorial(study.factors, cells, estimator, together).main]
    gap = explain(study.factors, cells, settings[0], settings[-1], estimator, together)
    told += [gap.total, *(one.share for one in gap.shares)]
    return any(one is not None and differs(one) for one in told)


@pytest.mark.parametrize(("factors", "levels"), [(2, 2), (2, 3), (3, 2)])
def test_a_head_is_wrong_in_five_of_a_hundred_runs_at_most(factors: int, levels: int) -> None:
    random, study = np.random.default_rng(3), of_factors(factors, levels)
    wrong = sum(head_errs(study, random, 6, together=True) for _ in range(RUNS))
    assert wrong <= MOST


def test_verdicts_effects_and_gap_as_families_of_their_own_are_wrong_more_often() -> None:
    random, study = np.random.default_rng(3), of_factors(3)
    wrong = sum(head_errs(study, random, 6, together=False) for _ in range(RUNS))
    assert wrong > MOST


def test_an_analysis_judges_all_that_its_head_says_alike() -> None:
    study = of_factors(3)
    found = analyse(study, a_run(study), records_of(study))
    assert (found.method.comparisons, found.method.beside) == (7 + 3 + 3, 6)
    assert found.gap is not None
    assert found.factorial is not None
    told = [found.gap.total, *(one.share for one in found.gap.shares)]
    told += [one.effect for one in found.factorial.main] + [one.effect for one in found.candidates]
    assert {one.confidence for one in told if one is not None} == {found.method.confidence_each}


def test_the_gap_of_a_run_that_is_not_over_has_the_interval_of_its_verdicts() -> None:
    study = of_factors(2).but(blocks=8)
    whole = records_of(study)
    part = [record for record in whole if record.block < 6]
    found = analyse(study, a_run(study), part)
    assert found.method.unfinished
    assert found.gap is not None
    assert found.gap.total is not None
    [last] = [one for one in found.candidates if one.changed.keys() == {"config.f0", "config.f1"}]
    assert last.effect is not None
    assert (found.gap.total.low, found.gap.total.high) == (last.effect.low, last.effect.high)


@pytest.mark.parametrize(
    ("study", "size"),
    [
        (of_factors(2, design=Design.ONE_AT_A_TIME), 0),
        (of_factors(1), 0),
        (of_factors(2), 2),
        (of_factors(2, levels=3), 4 + 2),
        (of_factors(3), 3 + 3),
        (of_factors(7), 7),
        (of_factors(6, design=Design.FRACTIONAL), 6),
    ],
)
def test_what_stands_beside_the_verdicts_goes_with_the_design(study: Study, size: int) -> None:
    assert beside(study) == size


@pytest.mark.parametrize(
    ("own", "other", "beaten"),
    [
        ((1.0, -2.0), (1.0, -1.0), True),
        ((1.0, -2.0), (2.0, -2.0), True),
        ((1.0, -2.0), (2.0, -3.0), False),
        ((1.0, -2.0), (1.0, -2.0), False),
    ],
)
def test_only_what_is_as_good_in_both_and_better_in_one_beats(
    own: tuple[float, float], other: tuple[float, float], beaten: bool
) -> None:
    assert is_beaten(own, [own, other]) is beaten


def test_the_first_part_of_a_loss_comes_before_the_second() -> None:
    damaged, lossy = (1.0, (-1, 0)), (1.0, (0, -900))
    assert is_beaten(damaged, [lossy]) and not is_beaten(lossy, [damaged])


@pytest.mark.parametrize("blocks", [1, 3])
def test_equal_servers_lie_beyond_the_noise_floor_as_seldom_as_promised(blocks: int) -> None:
    draw, runs = np.random.default_rng(63), 20_000
    floors = np.sqrt(np.mean(draw.normal(0.0, 0.03, (runs, 4)) ** 2, axis=1))
    means = draw.normal(0.0, 0.03, (runs, blocks)).mean(axis=1)
    reach = np.array([floor_reach(floor, 4, 0.95, blocks) for floor in floors])
    assert np.mean(np.abs(means) > reach) == pytest.approx(0.05, abs=0.005)
