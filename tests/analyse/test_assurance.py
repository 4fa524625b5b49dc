"""How many more blocks: what is promised is kept, with ratio and spread that only a few blocks told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse.assurance import ASSURANCE, blocks_more
from dbdyno.analyse.intervals import judge, ratio_of
from dbdyno.analyse.model import Ratio, Verdict
from tests.analyse.test_intervals import a_method, a_ratio

RUNS = 150


@pytest.mark.parametrize("true", [0.0, 0.01, 0.02, 0.03])
def test_so_many_more_blocks_settle_what_was_inconclusive_as_often_as_they_say(true: float) -> None:
    random, method, spread = np.random.default_rng(3), a_method(margin=0.02), 0.03
    settled = open_still = 0
    for _ in range(RUNS):
        seen = random.normal(true, spread, 6).tolist()
        effect = ratio_of("m", seen, 0.95)
        assert effect is not None
        if judge(effect, method)[0] is not Verdict.INCONCLUSIVE:
            continue
        more = blocks_more(effect, method)
        assert more is not None
        whole = ratio_of("m", seen + random.normal(true, spread, more).tolist(), 0.95)
        assert whole is not None
        settled += judge(whole, method)[0] is not Verdict.INCONCLUSIVE
        open_still += 1
    # So few would come up in one of a thousand estimates that settle what they promise.
    assert stats.binom.cdf(settled, open_still, ASSURANCE) > 1e-3, f"{settled} of {open_still}"


def test_a_wider_spread_and_a_ratio_near_the_margin_need_more_blocks() -> None:
    def needed(ratio: float, spread: float) -> int:
        seen = Ratio(metric="m", pairs=8, ratio=ratio, low=0.9, high=1.1, log_sd=spread, confidence=0.95)
        more = blocks_more(seen, a_method())
        assert more is not None
        return more

    assert needed(1.02, 0.02) < needed(1.02, 0.04) < needed(1.01, 0.06)


def test_the_same_records_give_the_same_number() -> None:
    effect = a_ratio(0.97, 1.04)
    assert blocks_more(effect, a_method()) == blocks_more(effect, a_method())


def test_too_few_blocks_need_those_that_a_verdict_needs() -> None:
    clear = Ratio(metric="m", pairs=3, ratio=2.0, low=1.9, high=2.1, log_sd=0.01, confidence=0.95)
    assert blocks_more(clear, a_method()) == 3


def test_without_a_spread_or_beyond_reach_it_is_unknown() -> None:
    assert blocks_more(a_ratio(None, None, pairs=1, spread=None), a_method()) is None
    hopeless = Ratio(metric="m", pairs=200, ratio=1.0, low=0.5, high=2.0, log_sd=1.0, confidence=0.95)
    assert blocks_more(hopeless, a_method(margin=0.001)) is None
