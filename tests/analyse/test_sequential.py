"""Sequential runs: the intervals hold under peeking."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.quantiles import anytime_quantile, t_quantile
from dbdyno.study import Interval

CONFIDENCE = 0.95
LOOKS = 40
RUNS = 2000


def first_wrong_look(values: np.ndarray, anytime: bool) -> bool:
    """Whether an interval around a true ratio of 1 ever excludes it, when looked at after every block."""
    for pairs in range(2, len(values) + 1):
        ratio = ratio_of(
            "throughput", list(values[:pairs]), CONFIDENCE, Interval.ANYTIME if anytime else Interval.STUDENT
        )
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        if ratio.low > 1.0 or ratio.high < 1.0:
            return True
    return False


def test_false_alarms_under_peeking_stay_below_what_was_promised() -> None:
    random = np.random.default_rng(20)
    alarms = sum(first_wrong_look(random.normal(0.0, 0.03, LOOKS), anytime=True) for _ in range(RUNS))
    promised = 1.0 - CONFIDENCE
    allowance = 3.0 * math.sqrt(promised * CONFIDENCE / RUNS)
    assert alarms / RUNS <= promised + allowance


def test_students_interval_does_not_survive_peeking() -> None:
    """The reason for the other interval: the same looks with Student's raise several times the alarms."""
    random = np.random.default_rng(21)
    alarms = sum(first_wrong_look(random.normal(0.0, 0.03, LOOKS), anytime=False) for _ in range(300))
    assert alarms / 300 > 3 * (1.0 - CONFIDENCE)


@pytest.mark.parametrize(("effect", "blocks_most"), [(0.10, 12), (0.05, 30)])
def test_an_effect_is_found(effect: float, blocks_most: int) -> None:
    """Power: with a spread of 2 %, at least nine of ten runs settle within the blocks given."""
    random = np.random.default_rng(22)
    found = 0
    for _ in range(300):
        values = random.normal(math.log1p(effect), 0.02, blocks_most)
        ratio = ratio_of("throughput", list(values), CONFIDENCE, Interval.ANYTIME)
        assert ratio is not None and ratio.low is not None
        found += ratio.low > 1.0
    assert found >= 270


@pytest.mark.parametrize("pairs", [4, 5, 8, 20, 100])
def test_the_price_of_peeking_is_a_wider_interval(pairs: int) -> None:
    assert t_quantile(CONFIDENCE, pairs) < anytime_quantile(CONFIDENCE, pairs) < math.inf


def test_the_quantile_answers_the_equation_that_defines_it() -> None:
    """The likelihood ratio at the quantile is 1 / alpha."""
    pairs, variance = 9, 10.0
    t = anytime_quantile(CONFIDENCE, pairs)
    growth, freedom = 1.0 + pairs * variance, pairs - 1
    likelihood = growth**-0.5 * ((1 + t**2 / freedom) / (1 + t**2 / (freedom * growth))) ** (pairs / 2)
    assert likelihood == pytest.approx(1.0 / (1.0 - CONFIDENCE))
