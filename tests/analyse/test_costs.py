"""What is beaten in two things at once."""

from __future__ import annotations

import pytest

from dbdyno.analyse.costs import is_beaten


@pytest.mark.parametrize(
    ("own", "other", "beaten"),
    [
        ((1.0, -2.0), (1.0, -1.0), True),
        ((1.0, -2.0), (2.0, -2.0), True),
        ((1.0, -2.0), (2.0, -3.0), False),
        ((1.0, -2.0), (1.0, -2.0), False),
    ],
)
def test_only_what_is_as_good_in_both_and_better_in_one_beats(
    own: tuple[float, float], other: tuple[float, float], beaten: bool
) -> None:
    assert is_beaten(own, [own, other]) is beaten


def test_the_first_part_of_a_loss_comes_before_the_second() -> None:
    damaged, lossy = (1.0, (-1, 0)), (1.0, (0, -900))
    assert is_beaten(damaged, [lossy]) and not is_beaten(lossy, [damaged])
