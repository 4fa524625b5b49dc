"""Change points of a row: found where they are, and no more often than promised where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.analyse.change_points import SIDE_LEAST, WINDOW, cuts
from tests.analyse.change_points_cases import CONFIDENCE, LAWS, false_alarms, found
from tests.analyse.intervals_cases import within_binomial_error

ROWS = 300


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [8, 30])
def test_a_row_without_a_change_has_one_no_more_often_than_promised(law: str, count: int) -> None:
    alarms = false_alarms(law, count, ROWS)
    assert alarms <= 0.05 * ROWS or within_binomial_error(alarms, ROWS, 0.05)


def test_a_step_of_three_spreads_is_found_where_it_is() -> None:
    assert found([0.0, 3.0], [10, 10], 60) >= 45


def test_a_change_that_was_undone_is_found_with_its_end() -> None:
    assert found([0.0, 3.0, 0.0], [12, 12, 12], 60) >= 42


def test_a_small_step_is_mostly_missed_and_a_large_one_is_not() -> None:
    small, large = (found([0.0, step], [8, 8], 60) for step in (0.5, 4.0))
    assert small < 15 and large > 50


def test_a_change_is_told_with_how_rare_it_is_by_chance() -> None:
    [cut] = cuts([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 3.0, 3.1, 2.9, 3.05, 2.95, 3.02], CONFIDENCE)
    assert cut.place == 6 and 0.0 < cut.p <= 0.05


@pytest.mark.parametrize("law", LAWS)
def test_the_place_of_a_change_is_mostly_within_those_that_are_told(law: str) -> None:
    random, told, held = np.random.default_rng(11), 0, 0
    for _ in range(ROWS // 3):
        row = LAWS[law](random, 20)
        row[12:] += 3.0 * row.std()
        for cut in cuts(row.tolist(), CONFIDENCE)[:1]:
            assert cut.earliest <= cut.place <= cut.latest
            told, held = told + 1, held + (cut.earliest <= 12 <= cut.latest)
    # The law of a skewed row is farther from a normal one than logs of ratios are.
    assert told > 60 and held >= (0.8 if law == "skewed" else 0.9) * told


def test_a_change_without_noise_has_one_place() -> None:
    [cut] = cuts([1.0] * 6 + [2.0] * 6, CONFIDENCE)
    assert (cut.earliest, cut.place, cut.latest) == (6, 6, 6)


def test_one_value_that_stands_out_is_no_change() -> None:
    row = np.random.default_rng(5).normal(size=20)
    row[-1] = 40.0
    assert cuts(row.tolist(), CONFIDENCE) == []


@pytest.mark.parametrize("count", [0, 1, 2 * SIDE_LEAST - 1])
def test_a_row_too_short_for_two_sides_tells_nothing(count: int) -> None:
    assert cuts([float(place > 2) for place in range(count)], CONFIDENCE) == []


def test_equal_values_have_no_change() -> None:
    assert cuts([1.5] * 30, CONFIDENCE) == []


def test_windows_of_a_long_row_tell_each_change_once() -> None:
    row = np.random.default_rng(2).normal(size=3 * WINDOW)
    row[WINDOW + 20 :] += 4.0
    [cut] = cuts(row.tolist(), CONFIDENCE)
    assert abs(cut.place - (WINDOW + 20)) <= 1


def test_the_same_row_gives_the_same_answer_at_any_level_and_scale() -> None:
    row = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 2.0, 2.1, 1.9, 2.05, 1.95, 2.0]
    assert cuts(row, CONFIDENCE) == cuts([8.0 * value + 16.0 for value in row], CONFIDENCE)
