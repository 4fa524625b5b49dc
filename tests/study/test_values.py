"""Sweeps of clients: which numbers a text stands for, and which texts are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.study.values import SWEEP_MOST, ValueFault, numbers_of_sweep


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("1..256 x2", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("3..20x2", [3, 6, 12]),
        ("8..64 +8", [8, 16, 24, 32, 40, 48, 56, 64]),
        ("1..10 +4", [1, 5, 9]),
    ],
)
def test_a_sweep_stands_for_its_numbers(text: str, levels: list[int]) -> None:
    assert numbers_of_sweep(text) == levels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1..8", "is no sweep"),
        ("1.. x2", "is no sweep"),
        ("0..8 x2", "does not rise"),
        ("1..8 x1", "does not rise"),
        ("1..8 +0", "does not rise"),
        ("8..1 x2", "has one level"),
        ("1..1000 +1", "has more than 64 levels"),
    ],
)
def test_what_is_no_sweep_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueFault) as fault:
        numbers_of_sweep(text)
    assert said in fault.value.message


@given(
    first=some.integers(1, 5000),
    last=some.integers(1, 5000),
    step=some.integers(1, 300),
    sign=some.sampled_from("x+"),
)
def test_levels_rise_within_their_ends(first: int, last: int, step: int, sign: str) -> None:
    try:
        levels = numbers_of_sweep(f"{first}..{last} {sign}{step}")
    except ValueFault:
        return
    assert levels == sorted(set(levels)) and 2 <= len(levels) <= SWEEP_MOST
    assert levels[0] == first and levels[-1] <= last
    # Another step would leave the range.
    assert (levels[-1] * step if sign == "x" else levels[-1] + step) > last
