"""How long the rest of a run takes, by a clock that stands still until it is moved."""

from __future__ import annotations

import pytest

from dbdyno.cli.time_left import TimeLeft
from dbdyno.study.phases import COUNTED, Phase
from dbdyno.study.trials import Trial, Variant

SLICED = Phase(name="load", warmup_s=2.0, duration_s=6.0, slices=10)
"""A load of 9 s, because each slice settles for a tenth of a second."""
WHOLE = Phase(name="load", warmup_s=2.0, duration_s=7.0)


class Clock:
    """Seconds that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def trial_of(variant: str, phase: Phase) -> Trial:
    return Trial(index=0, block=0, position=0, variant=Variant(name=variant, levels={}), phases=(phase,))


def test_before_a_trial_has_ended_the_rest_is_what_was_expected_without_what_is_done() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.seconds(8) == 80.0
    clock.now_s += 1000.0
    trials = [trial_of(name, SLICED) for name in ("a", "b")]
    assert [left.stretch_began(trial) for trial in trials] == [0, 0]
    assert left.seconds(8) == pytest.approx(80.0 - 2 * 1.0), "both have started"
    left.stretch_began(trials[0])
    assert left.seconds(8) == pytest.approx(78.0 - 2.0), "one has warmed up as well"
    assert left.stretch_began(trials[0]) == 2
    assert left.seconds(8) == pytest.approx(76.0 - 0.7), "and has had a slice"


def test_trials_that_end_together_are_not_taken_for_one() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    trials = [trial_of(name, SLICED) for name in ("a", "b", "c", "d")]
    for _ in range(11):
        for trial in trials:
            left.stretch_began(trial)
    clock.now_s += 80.0
    left.trial_ended("a")
    # Of the others the last slice, 0.7 of their 10 s, is not known to be over.
    assert left.begun == pytest.approx(3 * 0.93)
    assert left.seconds(7) == pytest.approx(80.0 / 3.79 * 4.21)
    for name in ("b", "c", "d"):
        left.trial_ended(name)
    assert left.seconds(4) == pytest.approx(80.0)
    assert left.seconds(0) == 0.0


def test_a_load_in_one_piece_counts_when_its_trial_has_ended() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.stretch_began(trial_of("a", WHOLE)) == 0
    assert left.seconds(2) == pytest.approx(20.0 - 1.0)
    clock.now_s += 12.0
    left.trial_ended("a")
    assert left.seconds(1) == pytest.approx(12.0)
    assert left.stretch_began(trial_of("a", WHOLE)) == 0, "the next block begins anew"


def test_work_that_is_counted_is_over_when_its_trial_has_ended() -> None:
    left = TimeLeft(10.0, Clock())
    assert left.stretch_began(trial_of("a", *COUNTED)) == 0
    assert left.seconds(1) == 10.0
