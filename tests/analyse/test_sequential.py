"""Sequential runs: the intervals hold under peeking, with and without a known end."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.intervals import bounds, group_quantile, planned_quantile, ratio_of
from dbdyno.analyse.quantiles import anytime_quantile, t_quantile
from dbdyno.findings import analyse
from dbdyno.study import Interval
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import NOISES, equal_variants

CONFIDENCE = 0.95
LOOKS = 40
RUNS = 2000


def first_wrong_look(values: np.ndarray, anytime: bool) -> bool:
    """Whether an interval around a true ratio of 1 ever excludes it, when looked at after every block."""
    for pairs in range(2, len(values) + 1):
        ratio = ratio_of(
            "throughput", list(values[:pairs]), CONFIDENCE, Interval.ANYTIME if anytime else Interval.STUDENT
        )
        assert ratio is not None
        if ratio.low is not None and ratio.high is not None and not ratio.low <= 1.0 <= ratio.high:
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


def crossed(ratios: np.ndarray, quantiles: list[float], first: int) -> float:
    """The share of runs (rows of log ratios) whose mean ever lies so many standard errors from nil, at each
    look from the first on."""
    pairs = np.arange(1, ratios.shape[1] + 1)
    means = np.cumsum(ratios, axis=1) / pairs
    squares = np.cumsum(ratios**2, axis=1) - pairs * means**2
    looks = slice(first - 1, None)
    errors = np.sqrt(squares[:, looks] / (pairs[looks] - 1) / pairs[looks])
    return float((np.abs(means[:, looks]) > np.array(quantiles) * errors).any(axis=1).mean())


def planned(most: int, confidence: float = CONFIDENCE) -> list[float]:
    return [planned_quantile(confidence, pairs, most) for pairs in range(6, most + 1)]


@pytest.mark.parametrize(("most", "confidence"), [(6, 0.95), (8, 0.95), (12, 0.95), (24, 0.95), (20, 0.995)])
def test_looks_up_to_a_known_end_are_wrong_as_seldom_as_promised(most: int, confidence: float) -> None:
    """The spread is estimated, of six blocks at first."""
    runs = 40_000
    ratios = np.random.default_rng(31).normal(0.0, 0.03, (runs, most))
    promised = 1.0 - confidence
    assert crossed(ratios, planned(most, confidence), 6) <= promised + 2.0 * math.sqrt(promised / runs)


@pytest.mark.parametrize("name", sorted(NOISES))
def test_looks_up_to_a_known_end_hold_on_hosts_that_are_noisy(name: str) -> None:
    random, runs = np.random.default_rng(32), 2000
    logs = [equal_variants(NOISES[name], random, 24, 2) for _ in range(runs)]
    ratios = np.array([one[:, 1] - one[:, 0] for one in logs])
    assert crossed(ratios, planned(24), 6) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)


def test_the_bounds_of_a_known_spread_alone_would_be_wrong_too_often() -> None:
    from scipy import stats

    looks, runs = tuple(range(6, 21)), 40_000
    known = bounds(1.0 - CONFIDENCE, looks)
    quantiles = [
        float(stats.t.isf(stats.norm.sf(one), look - 1)) for look, one in zip(looks, known, strict=True)
    ]
    ratios = np.random.default_rng(33).normal(0.0, 0.03, (runs, 20))
    assert crossed(ratios, quantiles, 6) > 0.05 + 2.0 * math.sqrt(0.05 / runs)


def test_a_known_end_finds_twice_as_often_what_blocks_can_tell() -> None:
    """A difference of half a block's spread, in 40 blocks."""
    ratios = np.random.default_rng(34).normal(0.5, 1.0, (5000, 40))
    ever = [anytime_quantile(CONFIDENCE, pairs) for pairs in range(6, 41)]
    assert crossed(ratios, planned(40), 6) > 0.75
    assert crossed(ratios, ever, 6) < 0.5


def test_bounds_are_those_of_the_literature() -> None:
    """Four even looks and an error of 5 %: the values that Reboussin, DeMets, Kim and Lan print (2000)."""
    assert bounds(0.05, (1, 2, 3, 4)) == pytest.approx((4.333, 2.963, 2.359, 2.014), abs=0.005)


def test_more_blocks_than_were_planned_have_the_interval_of_any_number() -> None:
    assert planned_quantile(CONFIDENCE, 13, 12) == anytime_quantile(0.985, 13)
    assert math.isinf(planned_quantile(CONFIDENCE, 5, 12))


def settled_at(ratios: np.ndarray, quantiles: list[float], margin: float) -> float:
    """The mean number of blocks after which the interval of a run (row of log ratios) lies beyond the margin
    around nil or within it, where it is looked at from the sixth block on."""
    pairs = np.arange(6, ratios.shape[1] + 1)
    means = (np.cumsum(ratios, axis=1) / np.arange(1, ratios.shape[1] + 1))[:, 5:]
    spreads = np.array([ratios[:, :look].std(axis=1, ddof=1) for look in pairs]).T
    halves = np.array(quantiles) * spreads / np.sqrt(pairs)
    settled = (np.abs(means) - halves > margin) | (np.abs(means) + halves <= margin)
    settled[:, -1] = True
    return float(pairs[settled.argmax(axis=1)].mean())


@pytest.mark.parametrize(
    ("effect", "spread", "by_bounds", "by_both"), [(0.10, 0.03, 10.5, 8.0), (0.05, 0.02, 14.0, 12.0)]
)
def test_a_large_difference_is_told_long_before_the_planned_end(
    effect: float, spread: float, by_bounds: float, by_both: float
) -> None:
    """In so many of 40 blocks at a margin of 2 %; the bounds of planned looks alone tell it later."""
    ratios = np.random.default_rng(35).normal(math.log1p(effect), spread, (2000, 40))
    bounds_alone = [group_quantile(CONFIDENCE, pairs, 40) for pairs in range(6, 41)]
    assert settled_at(ratios, bounds_alone, math.log1p(0.02)) > by_bounds
    assert settled_at(ratios, planned(40), math.log1p(0.02)) < by_both


@pytest.mark.parametrize(
    ("looks_planned", "sequential", "interval"),
    [
        (True, True, Interval.PLANNED),
        (False, True, Interval.ANYTIME),
        (True, False, Interval.STUDENT),
        (False, False, Interval.STUDENT),
    ],
)
def test_only_looks_that_were_planned_have_the_interval_with_an_end(
    looks_planned: bool, sequential: bool, interval: Interval
) -> None:
    study = a_study(blocks=8)
    run = a_run(study).but(looks_planned=looks_planned, sequential=sequential)
    assert analyse(study, run, records_of(study)).method.interval is interval
