"""From a range to its levels: between the ends, rising, in the unit that was written, and easy to read."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from dbdyno.frozen import Level
from dbdyno.study.nouns import amount
from dbdyno.study.ranges import LEVELS_MAX, Scale, rising_levels, with_level
from dbdyno.study.values import ValueFault

SIZES = some.builds(lambda number, unit: f"{number}{unit}", some.integers(1, 4096), some.sampled_from("KMG"))
NUMBERS = some.one_of(some.integers(1, 10**9), some.floats(1e-6, 1e9))
ENDS = some.one_of(some.tuples(SIZES, SIZES), some.tuples(NUMBERS, NUMBERS))


@given(ends=ENDS, scale=some.sampled_from(list(Scale)))
def test_levels_rise_from_one_end_to_the_other(ends: tuple[Level, Level], scale: Scale) -> None:
    low, high = sorted(ends, key=amount)
    assume(amount(low) < amount(high))
    try:
        levels = rising_levels(low, high, scale)
    except ValueFault as fault:
        assert "levels" in fault.message
        return
    amounts = [amount(level) for level in levels]
    assert (levels[0], levels[-1]) == (low, high)
    assert amounts == sorted(set(amounts))
    assert len(levels) <= LEVELS_MAX
    assert {type(level) for level in levels} <= {type(low), type(high), float}


@pytest.mark.parametrize(
    ("low", "high", "scale", "levels"),
    [
        ("1G", "2G", "log", ("1G", "2G")),
        ("512M", "2G", "log", ("512M", "640M", "768M", "896M", "1G", "1280M", "1536M", "1792M", "2G")),
        ("512kB", "1MB", "log", ("512kB", "640kB", "768kB", "896kB", "1MB")),
        ("64m", "128m", "log", ("64m", "80m", "96m", "112m", "128m")),
        (200, 1000, "log", (200, 250, 300, 400, 500, 600, 800, 1000)),
        (1, 10, "log", (1, 2, 3, 4, 5, 6, 8, 10)),
        (1, 4, "linear", (1, 2, 3, 4)),
        (0.1, 0.2, "log", (0.1, 0.12, 0.15, 0.2)),
        ("5min", "15min", "log", ("5min", "6min", "8min", "10min", "12min", "15min")),
    ],
)
def test_steps_are_what_a_person_would_write(
    low: Level, high: Level, scale: str, levels: tuple[Level, ...]
) -> None:
    assert rising_levels(low, high, Scale(scale)) == levels


def test_a_step_is_kept() -> None:
    assert rising_levels(10, 50, Scale.LINEAR, 20) == (10, 30, 50)
    assert rising_levels("64M", "256M", Scale.LINEAR, "64M") == ("64M", "128M", "192M", "256M")


@pytest.mark.parametrize(
    ("low", "high", "scale", "step", "message"),
    [
        ("8G", "64M", "linear", None, "goes from"),
        (4, 4, "linear", None, "goes from"),
        (0, 4, "log", None, "log scale"),
        (1, 4, "log", 1, "a step and a log scale"),
        ("64M", 4, "linear", None, "as its ends"),
        ("ON", "OFF", "linear", None, 'cannot hold "ON"'),
        (True, 4, "linear", None, "cannot hold true"),
        (1, 4, "linear", 0.5, "has the step"),
        (1, 4, "linear", "1M", "in another unit"),
        (1, 10**9, "linear", 1, "levels"),
    ],
)
def test_what_makes_no_range_is_refused(
    low: Level, high: Level, scale: str, step: Level | None, message: str
) -> None:
    with pytest.raises(ValueFault, match=message):
        rising_levels(low, high, Scale(scale), step)


def test_a_baseline_takes_its_place_among_the_levels() -> None:
    rising = rising_levels("64M", "256M", Scale.LINEAR, "64M")
    assert with_level(rising, "100M") == ("64M", "100M", "128M", "192M", "256M")
    # As the study spells it, so that it is found again.
    assert with_level(rising, "131072K") == ("64M", "131072K", "192M", "256M")
    with pytest.raises(ValueFault, match="beyond"):
        with_level(rising, "1G")
