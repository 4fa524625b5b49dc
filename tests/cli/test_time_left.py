"""How much of a run is still to come, while its trials go on."""

from __future__ import annotations

import pytest

from dbdyno.cli.time_left import TimeLeft
from dbdyno.study.trials import COUNTED, NO_BLOCK, Phase
from tests.fakes import Clock, make_trial

SLICED = Phase(name="load", warmup_s=2.0, duration_s=6.0, slices=10)
"""A load of 9 s, because each slice settles for a tenth of a second."""
WHOLE = Phase(name="load", warmup_s=2.0, duration_s=7.0)


def test_before_a_trial_has_ended_the_rest_is_what_was_expected_without_what_is_done() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.seconds(8) == 80.0
    clock.now_s += 1000.0
    trials = [make_trial(name, SLICED) for name in ("a", "b")]
    assert [left.stretch_began(trial) for trial in trials] == [0, 0]
    assert left.seconds(8) == pytest.approx(80.0 - 2 * 1.0), "both have started"
    left.stretch_began(trials[0])
    assert left.seconds(8) == pytest.approx(78.0 - 2.0), "one has warmed up as well"
    assert left.stretch_began(trials[0]) == 2
    assert left.seconds(8) == pytest.approx(76.0 - 0.7), "and has had a slice"


def test_trials_that_end_together_are_not_taken_for_one() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    trials = [make_trial(name, SLICED) for name in ("a", "b", "c", "d")]
    for _ in range(11):
        for trial in trials:
            left.stretch_began(trial)
    clock.now_s += 80.0
    left.trial_ended("a")
    # The last of them had its load all the time. Of two the last slice, 0.7 of their 10 s, had none.
    assert left.begun == pytest.approx(2 * 0.93 + 1.0)
    assert left.seconds(7) == pytest.approx(80.0 / 3.86 * 4.14)
    for name in ("b", "c", "d"):
        left.trial_ended(name)
    assert left.seconds(4) == pytest.approx(80.0)
    assert left.seconds(0) == 0.0


def test_a_load_counts_while_it_goes_on() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    left.stretch_began(make_trial("a", WHOLE))
    clock.now_s += 4.5
    assert left.seconds(2) == pytest.approx(20.0 - 1.0 - 4.5)
    clock.now_s += 1000.0
    assert left.begun == 1.0, "and no longer than it is to take"
    left.trial_ended("a")
    assert left.begun == 0.0


def test_a_load_is_over_where_another_server_has_it() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    trials = [make_trial(name, SLICED) for name in ("a", "b")]
    left.stretch_began(trials[0])
    clock.now_s += 2.0
    left.stretch_began(trials[1])
    clock.now_s += 0.5
    assert left.begun == pytest.approx((1.0 + 2.0 + 1.0 + 0.5) / 10.0)
    clock.now_s += 1000.0
    assert left.begun == pytest.approx(2 * (1.0 + 2.0) / 10.0), "both have warmed up, and had no slice"


def test_a_load_in_one_piece_counts_whole_when_its_trial_has_ended() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.stretch_began(make_trial("a", WHOLE)) == 0
    assert left.seconds(2) == pytest.approx(20.0 - 1.0)
    clock.now_s += 12.0
    left.trial_ended("a")
    assert left.seconds(1) == pytest.approx(12.0)
    assert left.stretch_began(make_trial("a", WHOLE)) == 0, "the next block begins anew"


def test_work_that_is_counted_is_over_when_its_trial_has_ended() -> None:
    left = TimeLeft(10.0, Clock())
    assert left.stretch_began(make_trial("a", *COUNTED)) == 0
    assert left.seconds(1) == 10.0


def test_trials_beside_the_blocks_have_a_time_of_their_own() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock, beside=2, beside_s=60.0)
    assert left.seconds(6) == 4 * 10.0 + 2 * 60.0
    for _ in range(4):
        clock.now_s += 5.0
        left.trial_ended("a")
    assert left.seconds(2) == 2 * 60.0, "what blocks took says nothing of the others"
    left.stretch_began(make_trial("a", *COUNTED, block=NO_BLOCK))
    clock.now_s += 50.0
    left.trial_ended("a", of_no_block=True)
    assert left.seconds(1) == 50.0
    assert left.seconds(0) == 0.0


def test_a_trial_that_begins_anew_has_nothing_over() -> None:
    left, trial = TimeLeft(10.0, Clock()), make_trial("a", SLICED)
    assert [left.stretch_began(trial) for _ in range(2)] == [0, 1]
    left.trial_began("a")
    assert left.stretch_began(trial) == 0
