"""Intervals cover what they promise; verdicts follow from them; ratios turn over when variant and baseline
do.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analyse.estimate import Contrasts, estimated_ratio
from dbdyno.analyse.found import Narrower
from dbdyno.analyse.intervals import (
    as_told,
    judge,
    one_sided,
    pooled,
    ratio_of,
    share_interval,
    signed_rank,
    within,
)
from dbdyno.analyse.model import Reason, Verdict
from dbdyno.analyse.quantiles import BLOCKS_LEAST, blocks_least, confidence_each
from dbdyno.study import Goal, Interval
from tests.analyse.intervals_cases import a_method, a_ratio, within_binomial_error
from tests.analyse.noises import method_of, told

STUDIES = 2000
some_log_ratios = st.lists(st.floats(-3, 3), min_size=2, max_size=12)


@pytest.mark.parametrize(("blocks", "variants"), [(3, 2), (6, 5), (10, 12)])
def test_all_intervals_of_a_study_hold_together_as_often_as_promised(blocks: int, variants: int) -> None:
    # Noise differs between variants, blocks disturb all alike, all comparisons share the baseline's.
    random = np.random.default_rng(20261121)
    spreads = np.linspace(0.005, 0.08, variants)
    true = np.linspace(-0.5, 0.7, variants)
    each = confidence_each(0.95, variants)
    covered = 0
    for _ in range(STUDIES):
        block = random.normal(0, 0.2, (blocks, 1))
        baseline = block + random.normal(0, 0.02, (blocks, 1))
        responses = true + block + random.normal(0, spreads, (blocks, variants))
        covered += all(
            _covers(column, truth, each) for column, truth in zip((responses - baseline).T, true, strict=True)
        )
    sigma = math.sqrt(0.95 * 0.05 / STUDIES)
    assert covered / STUDIES >= 0.95 - 3 * sigma
    assert covered / STUDIES <= 0.995, "so conservative that it wastes blocks"


def _covers(values: np.ndarray, truth: float, confidence: float) -> bool:
    ratio = ratio_of("throughput", values.tolist(), confidence)
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    return ratio.low <= math.exp(truth) <= ratio.high


def test_a_single_interval_covers_exactly_as_often_as_promised() -> None:
    random = np.random.default_rng(7)
    covered = sum(_covers(random.normal(0.1, 0.05, 5), 0.1, 0.9) for _ in range(STUDIES))
    assert within_binomial_error(covered, STUDIES, 0.9)


@pytest.mark.parametrize(("count", "of"), [(1, 1), (3, 60), (30, 60), (59, 60), (2, 3)])
def test_the_interval_of_a_share_ends_where_a_tail_holds_half_of_the_rest(count: int, of: int) -> None:
    def at_most(most: int, share: float) -> float:
        return sum(math.comb(of, k) * share**k * (1.0 - share) ** (of - k) for k in range(most + 1))

    low, high = share_interval(count, of, 0.9)
    assert 1.0 - at_most(count - 1, low) == pytest.approx(0.05)
    assert high == 1.0 if count == of else at_most(count, high) == pytest.approx(0.05)
    assert share_interval(of - count, of, 0.9) == pytest.approx((1.0 - high, 1.0 - low))


def test_nothing_seen_says_nothing_of_a_share() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)
    assert share_interval(0, 60) == pytest.approx((0.0, 1.0 - 0.025 ** (1 / 60)))


@given(some_log_ratios)
def test_turning_the_ratio_over_turns_the_interval_over(values: list[float]) -> None:
    forward, backward = ratio_of("m", values, 0.95), ratio_of("m", [-value for value in values], 0.95)
    assert forward is not None and backward is not None
    assert forward.low is not None and forward.high is not None
    assert backward.low is not None and backward.high is not None
    assert forward.ratio * backward.ratio == pytest.approx(1.0)
    assert math.log(forward.low) + math.log(backward.high) == pytest.approx(0.0, abs=1e-9)


@given(some_log_ratios, st.randoms())
def test_the_order_of_blocks_changes_no_bit(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ratio_of("m", shuffled, 0.95) == ratio_of("m", values, 0.95)


@given(some_log_ratios)
def test_the_interval_holds_the_ratio(values: list[float]) -> None:
    ratio = ratio_of("m", values, 0.99)
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    assert 0.0 < ratio.low <= ratio.ratio * (1 + 1e-12) and ratio.ratio <= ratio.high * (1 + 1e-12)
    assert math.isfinite(ratio.high)


def test_without_a_pair_there_is_no_ratio_and_with_one_no_interval() -> None:
    assert ratio_of("m", [], 0.95) is None
    alone = ratio_of("m", [0.1], 0.95)
    assert alone is not None and alone.low is None and alone.high is None
    assert judge(alone, a_method()) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.05, 1.10, Verdict.FASTER),
        (0.90, 0.95, Verdict.SLOWER),
        (0.99, 1.01, Verdict.NO_EFFECT),
        (1.001, 1.019, Verdict.NO_EFFECT),  # real, and within the margin
        (1.001, 1.03, Verdict.FASTER),  # real, and reaches out of the margin
        (0.97, 1.01, Verdict.INCONCLUSIVE),
        (0.5, 2.0, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts(low: float, high: float, verdict: Verdict) -> None:
    assert judge(a_ratio(low, high), a_method())[0] is verdict
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(verdict, verdict)
    assert judge(a_ratio(low, high), a_method(higher_is_better=False))[0] is turned
    assert judge(a_ratio(1 / high, 1 / low), a_method())[0] is turned


@pytest.mark.parametrize(
    ("interval", "blocks"), [(Interval.STUDENT, 12), (Interval.SIGNED_RANK, 12), (Interval.PLANNED, 24)]
)
@pytest.mark.parametrize("spread", [0.012, 0.03])
def test_no_effect_and_differences_together_are_wrong_in_one_run_of_twenty(
    interval: Interval, blocks: int, spread: float
) -> None:
    """A true ratio at the end of the margin: "no effect" is wrong, and so is the other side of 1."""
    method = method_of(Goal(margin=0.02), 1, interval).but(blocks_most=blocks)
    found = told(np.random.default_rng(51), 1.02 + 1e-9, spread, method, blocks, 600)
    wrong = found[Verdict.NO_EFFECT] + found[Verdict.SLOWER]
    assert stats.binom.sf(wrong - 1, 600, 0.053) > 1e-3, found


def test_no_effect_is_told_sooner_than_by_the_interval_of_a_difference() -> None:
    """The same 400 runs of equal variants, looked at after each pair of at most 40 blocks, margin of 2 %."""
    method = method_of(Goal(margin=0.02), 1, Interval.STUDENT)
    random, sooner, later = np.random.default_rng(52), [], []
    for _ in range(400):
        logs = random.normal(0.0, 0.02, 40)
        each = [
            estimated_ratio("throughput", Contrasts.apart(logs[:count].tolist()), 0.95, method, judged=True)
            for count in range(6, 41, 2)
        ]
        by = [(one, one.but(narrower=None)) for one in each if one is not None]
        first, second = (
            next((one.pairs for pair in by if within(one := pair[side], 0.02)), 42) for side in (0, 1)
        )
        sooner.append(first)
        later.append(second)
    assert np.mean(sooner) < 0.88 * np.mean(later)


def test_a_ratio_has_its_narrower_interval_only_where_the_verdict_rests_on_it() -> None:
    inner = Narrower(low=0.985, high=1.015, confidence=0.9)
    reaching = a_ratio(0.979, 1.021).but(narrower=inner)
    assert judge(reaching, a_method())[0] is Verdict.NO_EFFECT
    assert as_told(reaching, True, 0.02) == reaching
    assert as_told(reaching, False, 0.02).narrower is None
    assert as_told(a_ratio(0.981, 1.019).but(narrower=inner), True, 0.02).narrower is None
    assert (one_sided(0.95), one_sided(0.5)) == (0.9, 0.0)


def test_without_a_margin_nothing_is_ever_no_effect() -> None:
    assert judge(a_ratio(0.9999, 1.0001), a_method(margin=0.0))[0] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("pairs", "confidence", "rank"),
    [
        (5, 0.95, None),
        (6, 0.95, 0),
        (8, 0.95, 3),
        (10, 0.95, 8),
        (20, 0.95, 52),
        (6, 0.99, None),
        (8, 0.99, 0),
    ],
)
def test_the_signed_rank_is_the_tabled_one(pairs: int, confidence: float, rank: int | None) -> None:
    """Wilcoxon's critical values: T = 0, 3, 8 and 52 for 6, 8, 10 and 20 pairs at 5 %."""
    assert signed_rank(confidence, pairs) == rank


def test_a_signed_rank_interval_covers_as_often_as_promised_whatever_the_tails() -> None:
    random = np.random.default_rng(8)
    covered = 0
    for _ in range(STUDIES):
        values = 0.1 + 0.05 * random.standard_t(1.5, 10)
        ratio = ratio_of("m", values.tolist(), 0.95, Interval.SIGNED_RANK)
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        covered += ratio.low <= math.exp(0.1) <= ratio.high
    assert within_binomial_error(covered, STUDIES, 1.0 - 2 * 25 / 1024)


def test_the_signed_rank_estimate_is_the_median_of_the_averages() -> None:
    ratio = ratio_of("m", [0.0, 0.1, 0.2, 0.3, 0.4, 9.0], 0.95, Interval.SIGNED_RANK)
    assert ratio is not None and ratio.low == 1.0 and ratio.high == pytest.approx(math.exp(9.0))
    assert ratio.ratio == pytest.approx(math.exp(0.25))


@pytest.mark.parametrize(("comparisons", "blocks"), [(1, 6), (3, 7), (10, 9)])
def test_signed_ranks_need_more_blocks_for_more_comparisons(comparisons: int, blocks: int) -> None:
    each = confidence_each(0.95, comparisons)
    assert blocks_least(each, Interval.SIGNED_RANK) == blocks
    assert signed_rank(each, blocks) is not None
    assert signed_rank(each, blocks - 1) is None
    assert blocks_least(each, Interval.STUDENT) == BLOCKS_LEAST


@given(
    over=st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=9),
    under=st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=9),
)
def test_one_spread_for_two_sides_is_that_of_the_t_test(over: list[float], under: list[float]) -> None:
    ratio = pooled("throughput", over, under, 0.95)
    assume(ratio.log_sd is not None and ratio.log_sd > 1e-3)
    found = stats.ttest_ind(over, under).confidence_interval(0.95)
    assert ratio.low is not None and ratio.high is not None
    assert (math.log(ratio.low), math.log(ratio.high)) == pytest.approx((found.low, found.high), abs=1e-6)
