"""The steady state is found where it is, on series made with a known one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.found import Steady
from dbdyno.analyse.steady import CELLS_TOGETHER, hampel, partitions, series_shown, steady_states
from tests.analyse.steady_cases import straight_steady_state
from tests.fakes import make_tally

WARMUP, MEASURED = 5, 20
SECONDS = list(range(-WARMUP, MEASURED))


def steady_state(seconds: Sequence[int], operations: Sequence[float]) -> Steady | None:
    [steady] = steady_states([(seconds, operations)])
    return steady


def a_series(levels: list[tuple[int, float]], noise: float = 0.03, seed: int = 1) -> list[float]:
    """Stretches of seconds at a level, with noise as a share of it."""
    random = np.random.default_rng(seed)
    return [float(level * (1 + random.normal(0, noise))) for length, level in levels for _ in range(length)]


@pytest.mark.parametrize("seed", range(10))
def test_a_warm_up_that_was_long_enough(seed: int) -> None:
    steady = steady_state(SECONDS, a_series([(3, 500), (22, 1000)], seed=seed))
    assert steady is not None
    assert steady.settled and steady.warmup_enough
    assert steady.settled_at == -2


@pytest.mark.parametrize("seed", range(10))
def test_a_warm_up_that_was_too_short_is_said_and_how_long_it_took(seed: int) -> None:
    steady = steady_state(SECONDS, a_series([(9, 500), (16, 1000)], seed=seed))
    assert steady is not None
    assert steady.settled and not steady.warmup_enough
    assert steady.settled_at == 4
    assert steady.share == pytest.approx(16 / 20)


def test_a_trial_that_slows_down_at_its_end_never_settled() -> None:
    steady = steady_state(SECONDS, a_series([(19, 1000), (6, 600)]))
    assert steady is not None
    assert not steady.settled
    assert steady.settled_at == 14


def test_a_trial_that_climbs_all_the_time_never_settled() -> None:
    climb = [(1, 300.0 + 60 * second) for second in range(25)]
    steady = steady_state(SECONDS, a_series(climb, noise=0.005))
    assert steady is not None and not steady.settled


def test_one_stalled_second_is_no_regime() -> None:
    values = a_series([(25, 1000)])
    values[15] = 0.0
    steady = steady_state(SECONDS, values)
    assert steady is not None
    assert steady.settled_at == -WARMUP and steady.warmup_enough


def test_a_dip_that_comes_back_belongs_to_the_steady_state() -> None:
    steady = steady_state(SECONDS, a_series([(12, 1000), (3, 700), (10, 1000)]))
    assert steady is not None
    assert steady.settled_at == -WARMUP


def test_flat_series_are_called_settled_as_a_rule() -> None:
    alarms = 0
    for seed in range(300):
        steady = steady_state(SECONDS, a_series([(25, 1000)], noise=0.04, seed=seed))
        assert steady is not None
        alarms += not steady.settled
    assert alarms <= 6, "at most 2 %"


def test_neighbouring_seconds_that_correlate_are_no_regimes() -> None:
    random = np.random.default_rng(9)
    alarms = 0
    for _ in range(300):
        values = [0.0]
        for shock in random.normal(0, 0.03 * np.sqrt(1 - 0.4**2), 24):
            values.append(0.4 * values[-1] + shock)
        steady = steady_state(SECONDS, [1000 * (1 + value) for value in values])
        assert steady is not None
        alarms += not steady.settled
    assert alarms <= 9, "at most 3 %"


def test_a_series_without_noise_is_one_segment() -> None:
    steady = steady_state(SECONDS, [1000.0] * 25)
    assert steady is not None and len(steady.segments) == 1
    quiet = steady_state(SECONDS, [0.0] * 25)
    assert quiet is not None and len(quiet.segments) == 1


def test_too_short_a_series_tells_nothing() -> None:
    assert steady_state([], []) is None
    assert steady_state([0, 1, 2], [1.0, 1.0, 1.0]) is None
    assert steady_state(list(range(-20, 1)), [1.0] * 21) is None


@given(st.lists(st.floats(0, 1e7), min_size=6, max_size=200), st.integers(0, 3))
def test_segments_cover_the_series_once_and_in_order(values: list[float], warmup: int) -> None:
    seconds = list(range(-warmup, len(values) - warmup))
    steady = steady_state(seconds, values)
    if steady is None:
        return
    assert steady.segments[0].start == seconds[0]
    assert steady.segments[-1].stop == seconds[-1] + 1
    for before, after in zip(steady.segments, steady.segments[1:], strict=False):
        assert before.stop == after.start
    assert 0.0 < steady.share <= 1.0


@given(st.lists(st.floats(1, 1e6), min_size=12, max_size=60), st.sampled_from([0.125, 8.0, 1024.0]))
def test_the_unit_of_the_series_does_not_matter(values: list[float], scale: float) -> None:
    seconds = list(range(len(values)))
    one, other = steady_state(seconds, values), steady_state(seconds, [value * scale for value in values])
    assert one is not None and other is not None
    assert one.settled_at == other.settled_at


def test_the_partition_is_the_cheapest_of_all() -> None:
    # Every way to cut ten points into segments of three or more, by brute force.
    random = np.random.default_rng(5)
    for _ in range(50):
        values = np.concatenate([random.normal(10, 1, 5), random.normal(random.choice([10.0, 16.0]), 1, 5)])
        [found] = partitions(values[np.newaxis], np.array([1.0]))
        assert _cost(values, found) == pytest.approx(min(_cost(values, cut) for cut in _cuts(10)))


def _cuts(count: int) -> list[list[tuple[int, int]]]:
    if count < 3:
        return []
    whole = [[(0, count)]]
    return whole + [[*head, (stop, count)] for stop in range(3, count - 2) for head in _cuts(stop)]


def _cost(values: np.ndarray, bounds: list[tuple[int, int]]) -> float:
    error = sum(float(((values[a:b] - values[a:b].mean()) ** 2).sum()) for a, b in bounds)
    return error + len(bounds) * 6.0 * float(np.log(len(values)))


def test_an_hour_is_looked_at_in_batches() -> None:
    seconds = list(range(-600, 3000))
    steady = steady_state(seconds, a_series([(900, 500), (2700, 1000)]))
    assert steady is not None
    assert steady.settled_at == pytest.approx(300, abs=3)
    points = [
        {"second": second, "phase": "measured", "operations": 500, "errors": 0,
         "p50_us": 1.0, "p99_us": 1.0, "max_us": 1.0}
        for second in seconds
    ]  # fmt: skip
    shown = series_shown(make_tally(series=points, warmup_s=600.0, duration_s=3000.0))
    assert shown is not None and len(shown.seconds) <= 150 and shown.width_s == 24
    assert set(shown.operations_per_s) == {500.0}
    assert series_shown(make_tally()) is None


def test_a_short_run_is_shown_by_tenths_of_a_second_in_operations_per_second() -> None:
    fine = {"interval_s": 0.1, "start_s": -0.5, "operations": [0, 1, 2, 3, 4, 50, 60]}
    shown = series_shown(make_tally(fine_series=fine))
    assert shown is not None and shown.width_s == 0.1
    assert shown.seconds == (-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1)
    assert shown.operations_per_s == pytest.approx((0, 10, 20, 30, 40, 500, 600))
    longer = series_shown(make_tally(fine_series={**fine, "operations": [7] * 250}))
    assert longer is not None and longer.width_s == 0.2 and set(longer.operations_per_s) == {70.0}


def test_the_filter_leaves_a_step_where_it_is() -> None:
    step = np.array([1.0, 1.1, 0.9, 1.0, 5.0, 5.1, 4.9, 5.0])
    assert hampel(step).tolist() == step.tolist()


def test_series_that_are_looked_at_together_have_the_figures_of_each_by_itself() -> None:
    random = np.random.default_rng(33)
    of_one_length = [(SECONDS, _wandering(random, 25).tolist()) for _ in range(CELLS_TOGETHER // 25 + 40)]
    others = [
        (list(range(-warmup, length - warmup)), _wandering(random, length).tolist())
        for length in (2, 6, 7, 8, 9, 60, 127, 500, 1200, 1201, 3000)
        for warmup in (0, 2)
    ]
    each = [*others, *of_one_length]
    assert steady_states(each) == [straight_steady_state(*one) for one in each]


@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=30), max_size=8), st.integers(0, 4))
def test_so_have_series_with_many_equal_values(rows: list[list[int]], warmup: int) -> None:
    each = [(list(range(-warmup, len(row) - warmup)), [float(value) for value in row]) for row in rows]
    assert steady_states(each) == [straight_steady_state(*one) for one in each]


def _wandering(random: np.random.Generator, length: int) -> np.ndarray:
    """A series with some steps, a stalled second now and then, and a dip that comes back."""
    levels = random.lognormal(8, 0.5) * np.exp(
        np.cumsum(random.normal(0, 0.3, length) * (random.random(length) < 0.1))
    )
    values = levels * (1 + random.normal(0, random.choice([0.0, 0.01, 0.1]), length))
    values[random.random(length) < 0.03] = 0.0
    return np.round(np.maximum(values, 0.0))
