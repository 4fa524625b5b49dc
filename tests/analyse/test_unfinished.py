"""A run that is read before its planned blocks are there, and may be stopped for what it shows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.intervals import judge, ratio_of, share_interval
from dbdyno.analyse.model import Method, Verdict
from dbdyno.findings import analyse
from dbdyno.study import Goal, Interval
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import NOISES, equal_variants

Values = npt.NDArray[np.float64]
BLOCKS, RUNS = 24, 500


def after(blocks: int, interval: Interval | None = None) -> Analysis:
    """The analysis of a run of `BLOCKS` after so many of them."""
    study = a_study(blocks=BLOCKS, goal=Goal(interval=interval))
    done = [one for one in records_of(study) if one.block < blocks]
    return analyse(study, a_run(study), done)


@pytest.mark.parametrize("interval", [None, Interval.SIGNED_RANK])
def test_until_all_blocks_are_there_intervals_hold_at_every_look(interval: Interval | None) -> None:
    short, whole = (after(blocks, interval).method for blocks in (BLOCKS - 1, BLOCKS))
    assert (short.interval, short.unfinished) == (Interval.ANYTIME, True)
    assert (whole.interval, whole.unfinished) == (interval or Interval.STUDENT, False)


@pytest.mark.parametrize("noise", ["lognormal", "two states"])
def test_a_run_that_stops_when_it_pleases_is_seldom_wrong(noise: str) -> None:
    """Somebody looks after every block from the sixth on, stops at the first difference, and else reads the
    verdict of the whole run. The variants are equal."""
    random = np.random.default_rng(7)
    methods = after(6).method, after(BLOCKS).method
    logs = (equal_variants(NOISES[noise], random, BLOCKS, 2) for _ in range(RUNS))
    wrong = sum(_stops(one[:, 1] - one[:, 0], *methods) for one in logs)
    assert share_interval(wrong, RUNS)[0] <= 0.05, f"{wrong} of {RUNS}"


def _stops(ratios: Values, short: Method, whole: Method) -> bool:
    return any(_different(ratios[:look], whole if look == BLOCKS else short) for look in range(6, BLOCKS + 1))


def _different(ratios: Values, method: Method) -> bool:
    effect = ratio_of("throughput", list(ratios), method.confidence_each, method.interval)
    assert effect is not None
    return judge(effect, method)[0] in (Verdict.FASTER, Verdict.SLOWER)
