"""A trend: runs are the unit, what is known to differ sets them apart, and one run proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.compare import excludes_one
from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.model import Ratio
from dbdyno.analyse.trend import (
    READ_AFTER_EACH,
    Earlier,
    Movement,
    Omission,
    Trend,
    beyond_blocks,
    run_of_trend,
    trend,
)
from dbdyno.frozen import Level
from dbdyno.records.circumstances import Circumstance
from dbdyno.records.run import Calibrated
from dbdyno.study import Arrangement
from tests.analyse.factory import broken
from tests.analyse.intervals_cases import within_binomial_error
from tests.analyse.trend_cases import STUDY, VARIANT, a_trend_run, analysed, followed

PAGES = 600


def of_last(found: Trend) -> Ratio | None:
    last = found.runs[-1].ratio(VARIANT)
    assert last is not None
    return last.against_earlier


def test_a_run_is_held_against_three_of_its_stretch_or_none() -> None:
    found = followed([1.5, 1.52, 1.48, 1.5])
    ratios = [run.ratio(VARIANT) for run in found.runs]
    assert [one is not None and one.against_earlier is not None for one in ratios] == [False] * 3 + [True]
    against = of_last(found)
    assert against is not None and against.pairs == 3
    assert against.ratio == pytest.approx(1.5 / (1.5 * 1.52 * 1.48) ** (1 / 3))
    assert of_last(followed([1.5, 1.52, 1.48, 1.5], changed_at=1)) is None, "the first ran another engine"


def test_an_interval_of_a_run_is_that_of_one_more_of_the_same() -> None:
    """By hand: Student's quantile of three runs, at the confidence that two claims share."""
    found = followed([1.0, math.exp(0.01), math.exp(-0.01), math.exp(0.05)])
    against = of_last(found)
    assert against is not None and against.low is not None and against.high is not None
    assert against.confidence == pytest.approx(0.95**0.5)
    half = 6.164 * 0.01 * math.sqrt(1 + 1 / 3)  # t(0.98734, 2)
    assert math.log(against.high) - math.log(against.ratio) == pytest.approx(half, rel=0.01)
    assert math.log(against.low) + math.log(against.high) == pytest.approx(2 * 0.05)


def test_of_the_runs_that_are_held_against_earlier_ones_the_last_one_counts() -> None:
    """It, the mean, and the last three runs over those before them: 27 earlier pages had their own."""
    found = followed([1.5, 1.51, 1.49] * 10)
    intervals = [one.against_earlier for run in found.runs for one in run.ratios if one.against_earlier]
    assert len(intervals) == 27
    assert [one.confidence for one in intervals] == pytest.approx([0.95 ** (1 / 3)] * 27)


def test_equal_runs_stand_out_no_more_often_than_promised() -> None:
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(PAGES):
        against = of_last(followed(np.exp(random.normal(0.4, 0.03, 4)).tolist()))
        assert against is not None
        alarms += excludes_one(against)
    assert within_binomial_error(alarms, PAGES, 1.0 - 0.95**0.5)


def test_one_run_that_fell_far_is_no_shift() -> None:
    found = followed([1.5, 1.51, 1.49, 1.5, 1.5, 1.1])
    against = of_last(found)
    assert against is not None and excludes_one(against)
    [variant] = found.variants
    assert all(shift.movement is not Movement.MOVED for shift in variant.shifts)


def test_the_last_three_runs_are_held_against_those_before_them() -> None:
    found = followed([1.5, 1.51, 1.49, 1.5, 1.2, 1.21, 1.19])
    [shift] = found.variants[0].shifts
    assert (shift.first, shift.runs, shift.changed) == ("run-4", (4, 3), ())
    assert shift.movement is Movement.MOVED and shift.ratio is not None
    assert shift.ratio.ratio == pytest.approx(1.2 / 1.5, rel=0.01)
    assert followed([1.5] * 5).variants[0].shifts == ()


def test_a_change_of_the_engine_parts_the_runs() -> None:
    found = followed([1.5, 1.51, 1.49, 1.2, 1.21, 1.19], changed_at=3)
    assert [run.changed for run in found.runs] == [(), (), (), (Circumstance.ENGINE,), (), ()]
    [shift] = found.variants[0].shifts
    assert (shift.runs, shift.changed, shift.movement) == ((3, 3), (Circumstance.ENGINE,), Movement.MOVED)
    mean = found.variants[0].mean
    assert mean is not None and mean.ratio == pytest.approx(1.2, rel=0.01), "of the last engine alone"


def test_two_runs_a_side_say_nothing() -> None:
    found = followed([1.5, 1.51, 1.2, 1.21], changed_at=2)
    [shift] = found.variants[0].shifts
    assert (shift.ratio, shift.movement) == (None, Movement.OPEN)
    assert found.variants[0].mean is None


def test_what_lies_within_the_margin_is_the_same() -> None:
    [shift] = followed([1.5, 1.5001, 1.4999, 1.503, 1.5031, 1.5029]).variants[0].shifts
    assert shift.movement is Movement.SAME


def test_a_run_without_a_ratio_counts_nowhere() -> None:
    found = followed([1.5, None, 1.51, 1.49, None, 1.5])
    [shift] = found.variants[0].shifts
    assert (shift.runs, shift.ratio) == ((2, 2), None)
    mean = found.variants[0].mean
    assert mean is not None and mean.pairs == 4


@given(st.permutations(range(7)))
def test_the_order_in_which_runs_are_given_does_not_matter(order: list[int]) -> None:
    runs = [a_trend_run(day, 1.5 + 0.01 * (day % 3)) for day in range(7)]
    assert trend(STUDY, [runs[day] for day in order], {}) == trend(STUDY, runs, {})


def test_reasons_that_hold_for_no_run_are_not_told() -> None:
    left_out = {Omission.UNFINISHED: 2, Omission.OLDER: 0}
    assert trend(STUDY, [a_trend_run(0, 1.5)], left_out).left_out == {Omission.UNFINISHED: 2}


def test_a_run_is_taken_with_what_its_report_says() -> None:
    analysis = analysed("one")
    run = run_of_trend(analysis).but(name="nightly", note="a new disk")
    assert (run.run, run.name, run.note, run.engine) == ("one", "nightly", "a new disk", "firebird 5.0.4")
    assert run.ratios[0].effect == analysis.variants[1].effect
    assert run.baseline == analysis.baseline.response


@pytest.mark.parametrize("variant", ["baseline", VARIANT])
def test_what_broke_has_no_ratio(variant: str) -> None:
    run = run_of_trend(analysed(change=broken("account 118, history 117"), variant=variant))
    assert [one.effect for one in run.ratios] == [None]


def _calibrated(**settings: Level) -> Calibrated:
    return Calibrated(made_unix_s=1.0, settings=settings)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, []),
        ({"host": {"name": "other"}}, [Circumstance.HOST]),
        ({"host": {"name": "bench-1", "kernel": "6.12"}}, [Circumstance.HOST]),
        ({"installation": {"digest": "0123456789"}}, [Circumstance.ENGINE]),
        ({"calibrated": _calibrated(**{"cpu.server": "0"})}, [Circumstance.CALIBRATION]),
        ({"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.5}, [Circumstance.ARRANGEMENT]),
        ({"duration_s": 1.5}, [Circumstance.DURATION]),
        ({"dyno_version": "0.3.0"}, [Circumstance.DYNO]),
    ],
    ids=str,
)
def test_runs_are_set_apart_by_what_is_known_of_them(
    changes: dict[str, Any], changed: list[Circumstance]
) -> None:
    host: dict[str, Any] = {"host": {"name": "bench-1"}}
    first = run_of_trend(analysed("first", **host))
    later = run_of_trend(analysed("later", **(host | changes), created_unix_s=2e9))
    assert list(trend(STUDY, [later, first], {}).runs[1].changed) == changed


def test_a_container_is_the_same_host_under_another_name() -> None:
    def inside(name: str) -> dict[str, object]:
        return {"name": name, "virtualisation": "container in a virtual machine (QEMU)", "kernel": "6.1"}

    one, two = (run_of_trend(analysed(name, host=inside(name))) for name in ("a1", "b2"))
    assert one.circumstances == two.circumstances and one.host != two.host


Draw = Callable[[np.random.Generator], list[float]]


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: np.exp(random.normal(0.4, 0.03, 7)).tolist(),
        lambda random: np.exp(random.normal(0.4, 0.03, 30)).tolist(),
        lambda random: np.exp(0.4 + 0.03 * random.standard_t(3, 7)).tolist(),
        lambda random: np.exp(0.4 + 0.03 * random.standard_t(3, 30)).tolist(),
    ],
    ids=["few runs", "many runs", "few runs with long tails", "many runs with long tails"],
)
def test_a_page_of_equal_runs_seldom_says_that_something_moved(draw: Draw) -> None:
    """In no more than one page of twenty, of its last run or of a shift."""
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(PAGES):
        found = followed(draw(random))
        moved = any(shift.movement is Movement.MOVED for shift in found.variants[0].shifts)
        against = of_last(found)
        alarms += moved or (against is not None and excludes_one(against))
    assert alarms <= 0.05 * PAGES + 3.0 * math.sqrt(0.05 * 0.95 * PAGES)


def test_who_reads_a_page_after_each_run_meets_alarms_as_often_as_is_told() -> None:
    """With normal noise, by the tenth and by the twentieth page."""
    random, rows, alarms = np.random.default_rng(11), 120, {10: 0, 20: 0}
    for _ in range(rows):
        ratios = np.exp(random.normal(0.4, 0.03, 20)).tolist()
        first = next((count for count in range(4, 21) if alarmed(followed(ratios[:count]))), 99)
        for count in alarms:
            alarms[count] += first <= count
    for count, seen in alarms.items():
        assert within_binomial_error(seen, rows, READ_AFTER_EACH[count])


def alarmed(found: Trend) -> bool:
    """Whether a page says of anything that it changed."""
    [variant], against = found.variants, of_last(found)
    moved = any(shift.movement is Movement.MOVED for shift in variant.shifts)
    return moved or bool(variant.change_points) or (against is not None and excludes_one(against))


def test_a_run_of_seven_spreads_stands_out() -> None:
    random = np.random.default_rng(6)
    told = 0
    for _ in range(200):
        steps = np.repeat([0.0, -7.0], [20, 1])
        against = of_last(followed(np.exp(0.4 + 0.03 * (steps + random.standard_normal(21))).tolist()))
        told += against is not None and excludes_one(against)
    assert told > 0.8 * 200


def test_a_step_of_three_spreads_has_moved_the_ratio_after_three_runs() -> None:
    random = np.random.default_rng(5)
    moved = 0
    for _ in range(PAGES):
        steps = np.repeat([0.0, -3.0], [12, 3])
        found = followed(np.exp(0.4 + 0.03 * (steps + random.standard_normal(15))).tolist())
        moved += any(shift.movement is Movement.MOVED for shift in found.variants[0].shifts)
    assert moved > 0.8 * PAGES


@pytest.mark.parametrize(("of_runs", "least", "most"), [(0.0, 0.0, 0.09), (0.02, 0.8, 1.0)])
def test_luck_of_a_run_is_told_from_the_spread_of_its_blocks(
    of_runs: float, least: float, most: float
) -> None:
    random, shown = np.random.default_rng(8), 0
    for _ in range(200):
        logs = random.normal(0.0, of_runs, (6, 1)) + random.normal(0.0, 0.02, (6, 12))
        effects = [ratio_of("throughput", row, 0.95) for row in logs.tolist()]
        found = beyond_blocks([one for one in effects if one is not None])
        assert found is not None and found.runs == 6
        shown += found.shown
    assert least <= shown / 200 <= most


def test_what_tells_no_spread_of_its_blocks_is_not_held_against_them() -> None:
    assert followed([1.5, 1.51, 1.49, 1.5]).variants[0].beyond_blocks is None


@given(st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=40))
def test_a_spread_that_grows_run_by_run_has_the_digits_of_one_that_is_made_anew(logs: list[float]) -> None:
    earlier = Earlier()
    for log in logs:
        earlier.add(log)
    assert earlier.spread == stdev(logs)
    assert earlier.mean == math.fsum(logs) / len(logs)


@pytest.mark.parametrize(
    ("carried", "step", "least", "most"), [(0.0, 0.0, 0.0, 0.07), (0.0, 0.1, 0.0, 0.07), (0.5, 0.0, 0.3, 1.0)]
)
def test_runs_that_resemble_their_neighbours_are_told(
    carried: float, step: float, least: float, most: float
) -> None:
    """A page takes runs for independent; where each carries half of its luck on to the next one, 55 of 100
    pages of 30 runs show a change that is none. A step is no resemblance."""
    random, told, pages = np.random.default_rng(7), 0, 60
    for _ in range(pages):
        logs = random.normal(0.0, 0.02, 50)
        for place in range(1, 50):
            logs[place] = carried * logs[place - 1] + math.sqrt(1.0 - carried**2) * logs[place]
        logs[35:] += step
        told += followed(np.exp(logs[20:]).tolist()).variants[0].alike is not None
    assert least <= told / pages <= most
