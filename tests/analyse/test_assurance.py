"""How many more blocks: what is promised is kept, with ratio and spread that only a few blocks told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse.floor import ASSURANCE, WIDE, Outlook, most_more, outlook
from dbdyno.analyse.intervals import judge, ratio_of
from dbdyno.analyse.model import Method, Ratio, Verdict
from dbdyno.study import Interval
from tests.analyse.intervals_cases import a_method, a_ratio

RUNS = 120


def blocks_more(effect: Ratio, method: Method) -> int | None:
    return outlook(effect, method).likely


@pytest.mark.parametrize("true", [0.0, 0.005, 0.01, 0.015, 0.02])
@pytest.mark.parametrize(("blocks", "spread"), [(12, 0.035), (24, 0.045)])
def test_so_many_more_blocks_settle_what_was_inconclusive_as_often_as_they_say(
    blocks: int, spread: float, true: float
) -> None:
    """Whatever the ratio is: half of the margin is the hardest."""
    random, method = np.random.default_rng(3), a_method(margin=0.02)
    settled = open_still = 0
    for _ in range(RUNS):
        seen = random.normal(true, spread, blocks).tolist()
        effect = ratio_of("m", seen, 0.95)
        assert effect is not None
        if judge(effect, method)[0] is not Verdict.INCONCLUSIVE:
            continue
        more = blocks_more(effect, method)
        if more is None:
            # Beyond reach, so nothing is promised.
            continue
        # Whoever adds blocks has looked, so the interval is the one that holds at every look.
        added = random.normal(true, spread, more).tolist()
        whole = ratio_of("m", seen + added, 0.95, Interval.ANYTIME)
        assert whole is not None
        settled += judge(whole, method)[0] is not Verdict.INCONCLUSIVE
        open_still += 1
    assert open_still > RUNS / 12
    # So few would come up in one of a thousand estimates that settle what they promise.
    assert stats.binom.cdf(settled, open_still, ASSURANCE) > 1e-3, f"{settled} of {open_still}"


def test_a_wider_spread_and_a_ratio_near_the_margin_need_more_blocks() -> None:
    def needed(ratio: float, spread: float) -> int:
        seen = Ratio(metric="m", pairs=8, ratio=ratio, low=0.9, high=1.1, log_sd=spread, confidence=0.95)
        more = blocks_more(seen, a_method())
        assert more is not None
        return more

    assert needed(1.03, 0.02) < needed(1.03, 0.03)
    assert needed(1.05, 0.03) < needed(1.03, 0.03)


def test_the_same_records_give_the_same_number() -> None:
    effect = a_ratio(0.97, 1.04)
    assert outlook(effect, a_method()) == outlook(effect, a_method())


def test_too_few_blocks_need_those_that_a_verdict_needs() -> None:
    clear = Ratio(metric="m", pairs=3, ratio=2.0, low=1.9, high=2.1, log_sd=0.01, confidence=0.95)
    assert blocks_more(clear, a_method()) == 3


def test_without_a_spread_or_beyond_reach_it_is_unknown() -> None:
    assert blocks_more(a_ratio(None, None, pairs=1, spread=None), a_method()) is None
    hopeless = Ratio(metric="m", pairs=200, ratio=1.0, low=0.5, high=2.0, log_sd=1.0, confidence=0.95)
    assert blocks_more(hopeless, a_method(margin=0.001)) is None


def noisy(pairs: int, spread: float, ratio: float = 1.03) -> Ratio:
    return Ratio(metric="m", pairs=pairs, ratio=ratio, low=0.5, high=2.0, log_sd=spread, confidence=0.95)


def test_of_a_few_noisy_blocks_two_numbers_are_told() -> None:
    """The same ratio and spread from more blocks give one."""
    few = outlook(noisy(12, 0.06, 1.05), a_method(margin=0.02))
    assert few.even is not None and few.likely is not None and few.likely > WIDE * few.even
    many = outlook(noisy(24, 0.06, 1.05), a_method(margin=0.02))
    assert many.even is None and many.likely is not None and many.likely < few.likely


def test_beyond_twenty_times_the_blocks_no_number_is_told() -> None:
    """A run that must grow so much needs less noise."""
    assert most_more(6) == 120 and most_more(999) == 1 and most_more(2000) == 0
    assert outlook(noisy(6, 0.15), a_method(margin=0.02)) == Outlook(None, None)


def test_few_blocks_more_are_told_by_one_number() -> None:
    clear = Ratio(metric="m", pairs=4, ratio=1.5, low=1.0, high=2.2, log_sd=0.1, confidence=0.95)
    found = outlook(clear, a_method())
    assert found.likely is not None and found.likely <= 6 and found.even is None


def test_half_of_the_futures_need_no_more_than_the_first_number() -> None:
    random, method, spread = np.random.default_rng(5), a_method(margin=0.02), 0.06
    settled = told = 0
    for _ in range(RUNS):
        # The true ratio is drawn as widely as the estimate supposes: nothing was known of it before.
        true = random.normal(0.0, 0.3)
        seen = random.normal(true, spread, 6).tolist()
        effect = ratio_of("m", seen, 0.95)
        assert effect is not None
        even = outlook(effect, method).even
        if judge(effect, method)[0] is not Verdict.INCONCLUSIVE or even is None:
            continue
        whole = ratio_of("m", seen + random.normal(true, spread, even).tolist(), 0.95)
        assert whole is not None
        settled += judge(whole, method)[0] is not Verdict.INCONCLUSIVE
        told += 1
    assert told and stats.binom.cdf(settled, told, 0.5) > 1e-3, f"{settled} of {told}"


def test_nothing_is_known_without_a_spread() -> None:
    assert outlook(a_ratio(None, None, pairs=1, spread=None), a_method()) == Outlook(None, None)
