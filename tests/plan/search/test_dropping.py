"""Candidates that are far behind are dropped after few slices; nothing else is."""

from __future__ import annotations

from itertools import accumulate

import pytest

from dbdyno.plan.search.dropping import SLICES_LEAST, can_drop, hopeless
from dbdyno.study import Goal, Guard
from tests.searches import a_search


def told(*slices: int) -> list[int]:
    """What clients had been told of, after a warm-up of 500 transactions and after each slice."""
    return list(accumulate(slices, initial=500))


BEST = told(100, 104, 98, 101, 103)


def test_a_candidate_that_is_far_behind_in_every_slice_is_dropped() -> None:
    counts = {
        "baseline": told(80, 82, 81, 79, 80),
        "candidate-1": BEST,
        "candidate-2": told(50, 51, 49, 50, 52),
    }
    assert hopeless(counts) == {"candidate-2"}


def test_the_baseline_and_the_best_go_on() -> None:
    assert hopeless({"baseline": told(10, 11, 9, 10, 12), "candidate-1": BEST}) == frozenset()


def test_what_is_close_to_the_best_goes_on() -> None:
    near = [count - 500 for count in BEST]
    assert (
        hopeless({"candidate-1": BEST, "candidate-2": [500 + int(0.95 * one) for one in near]}) == frozenset()
    )


def test_few_slices_tell_nothing() -> None:
    few = {"candidate-1": BEST[:SLICES_LEAST], "candidate-2": told(1, 1, 1)}
    assert hopeless(few) == frozenset()
    assert hopeless({}) == hopeless({"candidate-1": []}) == frozenset()


def test_slices_that_contradict_each_other_drop_nothing() -> None:
    assert hopeless({"candidate-1": BEST, "candidate-2": told(190, 20, 120, 10, 90)}) == frozenset()


@pytest.mark.parametrize(
    ("goal", "can"),
    [
        (Goal(), True),
        (Goal(response="queries_per_s"), True),
        (Goal(response="p99_ms"), False),
        (Goal(guards=(Guard(text="p99_ms <= 9", metric="p99_ms", bound=9.0),)), False),
    ],
)
def test_only_a_rate_without_a_bounded_guard_shows_in_what_clients_were_told(goal: Goal, can: bool) -> None:
    study, _ = a_search(goal=goal)
    assert can_drop(study) is can
