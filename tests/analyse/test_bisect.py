"""What a bisection names is what changed, or a range that holds it, or none."""

from __future__ import annotations

import pytest

from dbdyno.analyse.bisect import Bisection, BisectionAnswer, By, Look, Side, bisected
from dbdyno.records.record import Outcome
from dbdyno.study.trials import Along
from tests.bisections import World, carried_out


def found_in(world: World, seed: int = 1) -> Bisection:
    run, records = carried_out(world, seed)
    return bisected(world.study, run, records)


@pytest.mark.parametrize("slow", [1, 2, 31, 40, 63, 64])
def test_the_first_slow_point_is_named(slow: int) -> None:
    found = found_in(World(slow=slow))
    assert (found.answer, found.bad, found.by) == (BisectionAnswer.FOUND, slow, By.TIME)
    assert found.confirmed is Look.WORSE and [point.name for point in found.suspects] == [f"c{slow}"]
    assert found.step is not None and found.step.high is not None and found.step.high < 1.0


def test_by_time_alone_few_are_wrong() -> None:
    """Of histories 5 % may end in another point, or in a range without it."""
    wrong = 0
    for seed in range(5):
        found = found_in(World(slow=1 + 13 * seed, trial_sd=0.015), seed)
        wrong += found.answer is BisectionAnswer.FOUND and found.bad != 1 + 13 * seed
        wrong += found.answer is BisectionAnswer.RANGE and not found.good < 1 + 13 * seed <= found.bad
    assert wrong <= 1


def test_without_a_change_none_is_named() -> None:
    answers = [found_in(World(), seed).answer for seed in range(10)]
    assert answers.count(BisectionAnswer.NONE) >= 9


@pytest.mark.parametrize("slow", [1, 33, 64])
def test_instructions_name_a_change_that_time_cannot_tell(slow: int) -> None:
    found = found_in(World(slow=slow, loss=0.02, executed=0.03, trial_sd=0.1))
    assert (found.answer, found.bad, found.by) == (BisectionAnswer.FOUND, slow, By.INSTRUCTIONS)
    assert found.ends_instructions == pytest.approx(1.03, abs=0.015)


def test_the_luck_of_layout_is_no_change() -> None:
    """All builds execute the same, and the bad end lies where it is slower."""
    found = found_in(World(slow=64, loss=0.03, executed=0.0))
    assert found.answer is BisectionAnswer.NONE and found.ends_look is Look.WORSE


def test_more_than_luck_is_a_change_without_more_instructions() -> None:
    found = found_in(World(slow=20, loss=0.15, executed=0.0))
    assert (found.answer, found.bad, found.by) == (BisectionAnswer.FOUND, 20, By.TIME)


def test_what_does_not_build_is_skipped() -> None:
    ends = dict.fromkeys((32, 33, 31, 16), Outcome.FAILED)
    found = found_in(World(slow=40, executed=0.05, ends=ends))
    assert (found.answer, found.bad) == (BisectionAnswer.FOUND, 40)
    skipped = [one for one in found.placed if one.side is Side.SKIPPED]
    assert [one.place for one in skipped] == [31, 32, 33] and skipped[0].cause == "the compiler refused it"


def test_what_could_not_be_measured_before_it_stays_a_suspect() -> None:
    found = found_in(World(slow=40, executed=0.05, ends={38: Outcome.BROKEN, 39: Outcome.FAILED}))
    assert (found.answer, found.good, found.bad) == (BisectionAnswer.RANGE, 37, 40)
    assert [point.name for point in found.suspects] == ["c38", "c39", "c40"]


def test_code_that_is_the_good_ends_is_good() -> None:
    ends = dict.fromkeys(range(1, 50), Outcome.INERT)
    found = found_in(World(slow=50, executed=0.05, ends=ends))
    assert (found.answer, found.bad) == (BisectionAnswer.FOUND, 50)
    assert {one.by for one in found.placed if one.place in ends} == {By.CODE}
    same = found_in(World(last=8, ends={8: Outcome.INERT}))
    assert same.answer is BisectionAnswer.NONE and same.same_code == "the compiler refused it"


def test_a_bad_end_that_is_faster_ends_in_none() -> None:
    found = found_in(World(slow=10, loss=-0.1))
    assert found.answer is BisectionAnswer.NONE and found.ends_look is Look.BETTER


def test_what_time_cannot_place_ends_in_a_range() -> None:
    world = World(slow=30, loss=0.04, trial_sd=0.035, blocks=16)
    for seed in range(20):
        found = found_in(world, seed)
        if found.answer is BisectionAnswer.RANGE:
            assert found.bad - found.good > 1
            return
    raise AssertionError("no history of 20 ended in a range")


def test_settings_that_are_slower_by_little_are_found_by_time() -> None:
    found = found_in(World(last=40, slow=17, along=Along.SETTINGS))
    assert (found.answer, found.bad) == (BisectionAnswer.FOUND, 17)


def test_the_first_slower_version_is_named_and_one_that_does_not_start_is_skipped() -> None:
    found = found_in(World(last=5, slow=3, along=Along.VERSIONS, ends={2: Outcome.FAILED}))
    assert (found.answer, found.good, found.bad) == (BisectionAnswer.RANGE, 1, 3)
    whole = found_in(World(last=5, slow=3, along=Along.VERSIONS))
    assert (whole.answer, whole.good, whole.bad, whole.by) == (BisectionAnswer.FOUND, 2, 3, By.TIME)
    assert whole.engines is not None
    asked = [f"postgresql@{one.place}" for one in whole.placed]
    assert [one.level for one in whole.engines.ran] == asked, "a version without a trial is not among them"


def test_two_points_are_one_question() -> None:
    found = found_in(World(last=1, slow=1))
    assert (found.answer, found.bad) == (BisectionAnswer.FOUND, 1)


def test_one_that_is_not_over_says_so() -> None:
    world = World(slow=40)
    run, records = carried_out(world)
    found = bisected(world.study, run, records[: len(records) // 2])
    assert found.answer is BisectionAnswer.UNFINISHED
