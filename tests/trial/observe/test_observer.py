"""What samples tell of the measured part: exact arithmetic over running totals and gauges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.trial.observe.observer import (
    Totals,
    Windows,
    differences,
    gained_in,
    gauge,
    on_steady_time,
    per_second,
)

STEADY = [
    Totals(float(second), {"cpu_user_s": second * 0.5, "resident_bytes": 100.0}) for second in range(11)
]
"""Half a CPU from second 0 to 10."""


def test_the_start_is_interpolated() -> None:
    assert differences(STEADY, 2.5, 10.0)["cpu_user_s"] == pytest.approx(3.75)


def test_at_the_end_the_next_sample_counts_in_full() -> None:
    # Load until 3.4, nothing after: what the sample at 4 shows was all gained before 3.4.
    samples = [*STEADY[:4], Totals(4.0, {"cpu_user_s": 1.7}), Totals(5.0, {"cpu_user_s": 1.7})]
    assert differences(samples, 1.0, 3.4)["cpu_user_s"] == pytest.approx(1.2)


def test_a_window_beyond_the_samples_uses_the_nearest() -> None:
    assert differences(STEADY, -5.0, 99.0)["cpu_user_s"] == pytest.approx(5.0)


def test_a_counter_that_begins_within_the_window_counts_from_zero() -> None:
    samples = [Totals(0.0, {}), Totals(1.0, {"read_bytes": 50.0})]
    assert differences(samples, 0.0, 1.0) == {"read_bytes": 50.0}


def test_series_have_one_value_per_whole_second() -> None:
    series = per_second(STEADY, ["cpu_user_s", "resident_bytes"], [(1.0, 5.7)])
    assert series == {"cpu_user_s": [0.5] * 4, "resident_bytes": [100.0] * 4}


def test_what_lies_between_two_windows_is_no_part_of_any_second() -> None:
    windows = [(1.0, 1.5), (4.0, 4.5), (6.0, 7.0)]
    series = per_second(STEADY, ["cpu_user_s", "resident_bytes"], windows)
    assert series == {"cpu_user_s": [0.5, 0.5], "resident_bytes": [100.0] * 2}
    burst = [Totals(float(n), {"cpu_user_s": 9.0 * (n > 4)}) for n in range(11)]
    assert per_second(burst, ["cpu_user_s"], [(1.0, 2.0), (6.0, 7.0)]) == {"cpu_user_s": [0.0, 0.0]}


def test_windows_are_added_up() -> None:
    assert gained_in(STEADY, [(1.0, 2.0), (4.0, 6.0)])["cpu_user_s"] == pytest.approx(1.5)


def test_a_gauge_is_seen_from_before_the_start_to_after_the_end() -> None:
    samples = [Totals(float(n), {"resident_bytes": float(n)}) for n in range(5)]
    assert gauge(samples, "resident_bytes", 1.5, 2.5) == [1.0, 2.0, 3.0]


MS = 1000
"""The fake clock below counts in milliseconds, so that where a second ends is known exactly."""

clocks = some.lists(some.integers(1, 400), min_size=1, max_size=40).map(lambda steps: list(accumulate(steps)))
"""When samples were taken."""
stretches = some.lists(some.tuples(some.integers(0, 900), some.integers(1, 1500)), max_size=12)
"""Windows: how long the load waited before each, and how long it then was measured."""


@given(clocks, stretches, some.data())
def test_each_second_holds_what_its_plain_definition_says(
    clock: list[int], stretches: list[tuple[int, int]], data: some.DataObject
) -> None:
    values = data.draw(
        some.lists(some.integers(0, 1000), min_size=len(clock), max_size=len(clock)), label="gained"
    )
    samples = [
        Totals(moment / MS, {"cpu_user_s": float(total), "resident_bytes": float(value)})
        for moment, total, value in zip(clock, accumulate(values), values, strict=True)
    ]
    edges = list(accumulate(length for pair in stretches for length in pair))
    windows = list(zip(edges[::2], edges[1::2], strict=True))
    seconds = range(sum(end - start for start, end in windows) // MS + 1)
    found = per_second(
        samples, ["cpu_user_s", "resident_bytes"], [(start / MS, end / MS) for start, end in windows]
    )
    gained = [
        sum(plain(samples, "cpu_user_s", end) - plain(samples, "cpu_user_s", start) for start, end in parts)
        for parts in (until(windows, second * MS) for second in seconds)
    ]
    ends = [until(windows, second * MS)[-1][1] for second in seconds[1:]]
    assert found["cpu_user_s"] == pytest.approx([b - a for a, b in pairwise(gained)], abs=1e-5)
    assert found["resident_bytes"] == pytest.approx(
        [plain(samples, "resident_bytes", end) for end in ends], abs=1e-5
    )


def until(windows: Sequence[tuple[int, int]], measured_ms: int) -> list[tuple[int, int]]:
    """The windows up to the moment at which so much had been measured."""
    found = []
    for start, end in windows:
        if measured_ms <= 0:
            break
        found.append((start, min(end, start + measured_ms)))
        measured_ms -= end - start
    return found


def plain(samples: list[Totals], name: str, moment_ms: int) -> float:
    """A total or a gauge at a moment, on the straight line between the samples around it."""
    before = [sample for sample in samples if sample.unix_s <= moment_ms / MS]
    after = [sample for sample in samples if sample.unix_s > moment_ms / MS]
    low, high = (before or after)[-1 if before else 0], (after or before)[0 if after else -1]
    share = (moment_ms / MS - low.unix_s) / (high.unix_s - low.unix_s) if before and after else 0.0
    return low.counters[name] + share * (high.counters[name] - low.counters[name])


@pytest.mark.parametrize("slices", [10, 400])
def test_slices_of_unix_times_lose_no_second_by_rounding(slices: int) -> None:
    # So late a clock reads in steps of a quarter of a microsecond.
    began = [1_760_000_000.0 + 0.7 * number for number in range(slices)]
    windows: Windows = [(start_s, start_s + 0.1) for start_s in began]
    assert len(
        per_second([Totals(began[0], {"cpu_user_s": 0.0})], ["cpu_user_s"], windows)["cpu_user_s"]
    ) == (slices // 10)


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_in_the_midst_moves_no_window(set_by_s: float) -> None:
    ahead = [(1000.0, 0.0), (1010.0, set_by_s)]
    by_wall = ((1002.0, 1004.0), (1008.5, 1011.5), (1012.0 + set_by_s, 1014.0 + set_by_s))
    steady = ((1002.0, 1004.0), (1008.5, 1011.5), (1012.0, 1014.0))
    assert on_steady_time(by_wall, ahead) == steady
    seen_late = ((1009.5 + set_by_s, 1010.5 + set_by_s),)
    assert on_steady_time(seen_late, ahead) == ((1009.5, 1010.5),)
