"""The steady state is found where it is, on series made with a known one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analyse.found import Steady
from dbdyno.analyse.steady import (
    CELLS_TOGETHER,
    POINTS_LEAST,
    hampel,
    partitions,
    series_shown,
    slope_of,
    steady_states,
)
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


Values = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Values]
COUNT, SERIES, CONFIDENCE = 300, 40, 0.99
TIME = np.arange(COUNT) / COUNT


def alike(memory: float) -> Noise:
    """Noise whose neighbours correlate so."""

    def noise(random: np.random.Generator, count: int) -> Values:
        shocks, found = random.standard_normal(count + 200), 0.0
        values = np.empty(count + 200)
        for place, shock in enumerate(shocks):
            values[place] = found = memory * found + shock
        return values[200:]

    return noise


def walk(random: np.random.Generator, count: int) -> Values:
    return np.cumsum(random.standard_normal(count))


FLAT: dict[str, Noise] = {
    "white": alike(0.0), "alike": alike(0.9), "nearly a walk": alike(0.99), "a walk": walk
}  # fmt: skip


def rises(values: Values) -> bool:
    found = slope_of(values.tolist(), 1.0, CONFIDENCE)
    assert found is not None
    return found.low > 0.0 and not found.slowing


@pytest.mark.parametrize("name", FLAT)
def test_a_quantity_that_stays_is_rarely_called_rising(name: str) -> None:
    random = np.random.default_rng(1)
    alarms = sum(rises(FLAT[name](random, COUNT)) for _ in range(SERIES))
    # One in 200 is promised; three of 40 come by chance once in 5,000 times.
    assert alarms < 3


@pytest.mark.parametrize("noise", ["white", "alike"])
def test_a_slow_leak_is_found_with_its_slope(noise: str) -> None:
    random = np.random.default_rng(2)
    made = [60.0 * TIME + FLAT[noise](random, COUNT) for _ in range(SERIES)]
    assert sum(map(rises, made)) > 0.8 * SERIES
    slopes = [slope_of(values.tolist(), 1.0, CONFIDENCE) for values in made]
    held = sum(found.low <= 60.0 / COUNT <= found.high for found in slopes if found is not None)
    assert held > 0.9 * SERIES


@pytest.mark.parametrize("length", [0.05, 0.1, 0.2, 0.33])
def test_a_cache_that_fills_is_no_leak(length: float) -> None:
    """`length` of the series is the time in which all but a third of it fills."""
    random = np.random.default_rng(3)
    fills = 1000.0 * (1.0 - np.exp(-TIME / length))
    assert sum(rises(fills + alike(0.5)(random, COUNT)) for _ in range(SERIES)) <= SERIES // 8


@pytest.mark.parametrize("until", [0.2, 0.5, 0.7])
def test_a_pool_that_is_full_in_the_end_is_no_leak(until: float) -> None:
    random = np.random.default_rng(4)
    fills = 1000.0 * np.minimum(TIME / until, 1.0)
    assert sum(rises(fills + alike(0.5)(random, COUNT)) for _ in range(SERIES)) < 3


def test_a_leak_behind_a_cache_that_fills_is_found() -> None:
    random = np.random.default_rng(5)
    both = 100.0 * TIME + 1000.0 * (1.0 - np.exp(-TIME / 0.1))
    found = [rises(both + alike(0.5)(random, COUNT)) for _ in range(SERIES)]
    assert sum(found) > 0.9 * SERIES


def test_one_large_step_is_no_slope_and_many_are() -> None:
    one = np.where(TIME > 0.4, 1e6, 0.0)
    stairs = np.floor(TIME * 30) * 1e6
    assert not rises(one)
    assert rises(stairs)


def test_a_constant_has_a_slope_of_zero_without_doubt() -> None:
    found = slope_of([1_648_482_400.0] * COUNT, 1.0, CONFIDENCE)
    assert found is not None
    assert (found.per_s, found.low, found.high, found.slowing) == (0.0, 0.0, 0.0, False)
    assert found.last == 1_648_482_400.0


def test_a_series_that_is_too_short_has_none() -> None:
    assert slope_of([1.0] * (POINTS_LEAST - 1), 1.0, CONFIDENCE) is None


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(0.01, 1e6),
    shift=st.floats(-1e9, 1e9),
    interval_s=st.floats(0.1, 60.0),
)
def test_the_slope_goes_by_the_units_alone(seed: int, scale: float, shift: float, interval_s: float) -> None:
    values = 0.05 * np.arange(120) + alike(0.5)(np.random.default_rng(seed), 120)
    plain = slope_of(values.tolist(), 1.0, CONFIDENCE)
    moved = slope_of((scale * values + shift).tolist(), interval_s, CONFIDENCE)
    assert plain is not None and moved is not None
    near = max(abs(plain.low), abs(plain.high)) * scale / interval_s
    for end in ("per_s", "low", "high"):
        expected = getattr(plain, end) * scale / interval_s
        assert getattr(moved, end) == pytest.approx(expected, abs=1e-3 * near + 1e-3 * abs(shift) * 1e-9)


def late_of(values: Values) -> bool:
    found = slope_of(values.tolist(), 1.0, CONFIDENCE)
    assert found is not None
    return found.late


@pytest.mark.parametrize("name", ["white", "alike", "a walk"])
def test_the_last_fifth_of_a_quantity_that_goes_on_is_rarely_called_steeper(name: str) -> None:
    random = np.random.default_rng(7)
    count = 5 * POINTS_LEAST
    for grown in (0.0, 0.2):
        made = [grown * np.arange(count) + FLAT[name](random, count) for _ in range(SERIES)]
        assert sum(map(late_of, made)) < 3


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_a_leak_in_the_last_fifth_alone_has_its_own_slope(memory: float) -> None:
    """The median of all slopes passes over it: a soak was said to stand in 150 of 150 runs."""
    random, count = np.random.default_rng(7), 600
    leak = 0.25 * np.maximum(np.arange(count) - 0.8 * count, 0.0)
    made = [slope_of((leak + alike(memory)(random, count)).tolist(), 1.0, CONFIDENCE) for _ in range(SERIES)]
    late = [one for one in made if one is not None and one.late]
    assert len(late) > 0.9 * SERIES
    assert sum(one.low <= 0.25 <= one.high for one in late) > 0.85 * len(late)
    assert all(one.since_s == 480.0 and one.until_s == 600.0 for one in late)
