"""A leak is found and a cache that fills is not, on series made with a known slope."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analyse.drift import POINTS_LEAST, slope_of

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
