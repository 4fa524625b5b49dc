"""The dip: what the seconds of a load show of an act beside it, and what they cannot show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import pytest
from scipy import stats

from dbdyno.driver.tally import Second, Tally
from dbdyno.records.meanwhile import ActMeanwhile, dip_of, windows_to_full
from dbdyno.records.metrics import METRICS
from dbdyno.study.soak import OF_MEANWHILE
from tests.fakes import make_tally

BEFORE = (1000, 1020, 980, 1010, 990, 1000, 1010, 990)


def of(counts: Sequence[int], p99_us: float = 2000.0) -> Tally:
    """A load with so many transactions in each whole second."""
    series = [
        Second(
            second=at,
            phase="measured",
            operations=count,
            errors=0,
            p50_us=1.0,
            p99_us=p99_us * (1 + at % 3),
            max_us=9.0,
        )
        for at, count in enumerate(counts)
        if count
    ]
    return make_tally(duration_s=float(len(counts)), series=series)


def act(began_s: float | None = 8.2, took_s: float = 2.6, done: bool = True) -> ActMeanwhile:
    return ActMeanwhile(name="alter", text="ALTER", at_s=8.0, began_s=began_s, took_s=took_s, done=done)


def test_a_dip_has_its_depth_its_length_and_its_area() -> None:
    dip = dip_of(of([*BEFORE, 500, 0, 0, 600, 1000, 1000]), [act()])
    assert dip is not None
    assert (dip.base_per_s, dip.base_seconds, dip.seconds) == (1000.0, 8, 4)
    assert (dip.depth, dip.length_s, dip.silent_s) == (1.0, 4.0, 2.0)
    assert dip.lost_s == pytest.approx(0.5 + 1.0 + 1.0 + 0.4)
    assert dip.full_speed_s == 2, "the second after its end was still slow"
    assert dip.is_deep and dip.is_lost
    assert (dip.p99_ms_before, dip.p99_ms_within) == (6.0, 6.0)


def test_what_the_seconds_before_let_expect_is_the_limit_of_a_prediction() -> None:
    dip = dip_of(of([*BEFORE, 970, 985, 975, 990]), [act()])
    assert dip is not None
    spread, seconds = dip.spread, dip.seconds
    logs = [math.log(count / 1000) for count in BEFORE]
    reach = stats.t.ppf(1 - 0.05 / seconds, 7) * stdev(logs) * (1 + 1 / 8) ** 0.5
    each = 1 - math.exp(fmean(logs) - reach)
    whole = stats.t.ppf(0.95, 7) * spread * (seconds + seconds**2 / 8) ** 0.5
    assert dip.depth_seen == pytest.approx(each)
    assert dip.lost_seen_s == pytest.approx(whole)
    assert not dip.is_deep, "3 % below a base that scatters by 1.3 %"


def test_a_load_that_is_a_little_slower_for_long_is_seen_by_its_area_alone() -> None:
    dip = dip_of(of([*BEFORE, *[965] * 20]), [act(took_s=20.0)])
    assert dip is not None
    assert dip.is_lost and not dip.is_deep
    assert dip.length_s == 0.0


def test_a_load_that_stands_still_is_seen_whatever_the_seconds_before_scatter() -> None:
    dip = dip_of(of([1400, 300, 900, 500, 1300, 600, 1200, 800, 0, 0, 900]), [act()])
    assert dip is not None and dip.spread > 0.4
    assert dip.is_deep and dip.length_s == 2.0


def test_the_longest_wait_ends_in_the_second_after() -> None:
    tally = of([*BEFORE, 0, 0, 0, 1000, 1000])
    late = tally.series[-2].but(p99_us=3_000_000.0)
    dip = dip_of(tally.but(series=(*tally.series[:-2], late, tally.series[-1])), [act()])
    assert dip is not None and dip.p99_ms_within == 3000.0


def test_a_queue_that_is_worked_off_afterwards_makes_up_for_nothing() -> None:
    dip = dip_of(of([*BEFORE, 0, 2000, 2000]), [act(took_s=2.7)])
    assert dip is not None and dip.lost_s == pytest.approx(1.0)


def test_no_dip_is_never_told_as_none_at_all() -> None:
    steady = of([1000] * 12)
    assert {name: METRICS[name].higher_is_better for name in OF_MEANWHILE} == dict.fromkeys(
        OF_MEANWHILE, False
    )
    dip = dip_of(steady, [act()])
    assert dip is not None and not dip.is_seen
    assert 0.0 < dip.depth_seen < 0.0011 and dip.lost_seen_s > 0.0


@pytest.mark.parametrize("acts", [[], [act(began_s=None)], [act(began_s=1.0)]])
def test_without_an_act_or_seconds_before_it_nothing_is_said(acts: list[ActMeanwhile]) -> None:
    assert dip_of(of([*BEFORE, 0, 0]), acts) is None


def test_a_load_that_ends_before_it_is_back_has_no_time_to_full_speed() -> None:
    dip = dip_of(of([*BEFORE, 100, 100, 100]), [act(took_s=2.7, done=False)])
    assert dip is not None and dip.full_speed_s is None
    assert windows_to_full([10, 89, 90], 100.0) == 3
    assert windows_to_full([], 100.0) is None
