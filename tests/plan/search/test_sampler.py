"""What is tried next: sparse at first, then around the best; the same again from the same records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest

from dbdyno.analyse.elimination import Candidate
from dbdyno.plan.search.model import Model
from dbdyno.plan.search.sampler import SLICES_LEAST, Allowed, Levels, can_drop, hopeless, propose, settled
from dbdyno.study import Goal, Guard, Study
from dbdyno.study.nouns import Condition
from tests.searches import a_search, listed, ranged, step


def anything(levels: object) -> bool:
    return True


def candidates(study: Study, count: int) -> list[Candidate]:
    """So many, better the larger the pool is."""
    return [
        Candidate(
            name=f"candidate-{number}",
            levels={**study.baseline, "config.pool": number},
            log_ratios=(number / 10,),
            blocks=(number,),
        )
        for number in range(1, count + 1)
    ]


def proposed(
    study: Study,
    known: Sequence[Candidate],
    beside: Sequence[Levels],
    seed: object,
    allowed: Allowed = anything,
) -> Levels | None:
    model = Model(study, known)
    model.believe(beside)
    return propose(study, known, model, beside, str(seed), allowed)


def test_the_same_records_and_seed_give_the_same_levels() -> None:
    study, _ = a_search()
    known = candidates(study, 8)
    for beside in ([], [{**study.baseline, "config.io": 1}]):
        assert proposed(study, known, beside, 1) == proposed(study, known, beside, 1)
    others = [proposed(study, known, [{**study.baseline, "config.io": 1}], seed) for seed in range(20)]
    assert len({str(levels) for levels in others}) > 3


def test_the_first_candidates_change_few_factors() -> None:
    factors = [listed(f"config.f{number}", 4) for number in range(20)]
    study, _ = a_search(*factors)
    changed = []
    for seed in range(200):
        levels = proposed(study, [], [], seed)
        assert levels is not None
        changed.append(sum(levels[name] != level for name, level in study.baseline.items()))
    assert 4 < sum(changed) / len(changed) < 8
    assert min(changed) >= 1


@pytest.mark.parametrize("beside", [1, 3])
def test_later_ones_stay_near_the_best_and_learn_from_the_rest(beside: int) -> None:
    """Those that the model hopes for, and those of the estimator."""
    factors = [ranged("config.pool", 16), *(listed(f"config.f{number}", 4) for number in range(19))]
    study, _ = a_search(*factors)
    known = candidates(study, 10)
    there = [{**study.baseline, "config.f0": number} for number in range(1, 1 + beside)]
    found = [proposed(study, known, there, seed) for seed in range(30)]
    near = [levels for levels in found if levels is not None]
    assert len(near) == 30
    assert all(sum(levels[name] != known[-1].levels[name] for name in levels) <= 8 for levels in near)
    pools = [step(levels, "config.pool") for levels in near]
    assert sum(pools) / len(pools) > 7.5, "the half in which it never was better is tried less"


def test_the_first_of_a_block_has_all_that_is_expected_to_help_and_nothing_else() -> None:
    study, _ = a_search(*(listed(f"config.f{number}", 3) for number in range(6)))
    worths = {"f0": 0.3, "f1": 0.2, "f2": 0.0, "f3": -0.2}
    tried: list[tuple[str, ...]] = [(name,) for name in worths]
    tried += [("f0", "f2"), ("f1", "f2"), ("f2", "f3")]
    known = [
        Candidate(
            name=f"candidate-{number}",
            levels={**study.baseline, **{f"config.{name}": 1 for name in changed}},
            changes=len(changed),
            log_ratios=(sum(worths[name] for name in changed),),
            blocks=(number,),
        )
        for number, changed in enumerate(tried)
    ]
    levels = proposed(study, known, [], 1)
    assert levels == {**study.baseline, "config.f0": 1, "config.f1": 1}


def test_nothing_is_proposed_twice_nor_what_is_not_allowed() -> None:
    study, _ = a_search(listed("config.a", 3))
    first = proposed(study, [], [], 1)
    assert first is not None
    second = proposed(study, [], [first], 1)
    assert second is not None and second != first
    assert proposed(study, [], [first, second], 1) is None
    assert proposed(study, [], [], 1, lambda levels: False) is None


def test_a_failure_is_learned_from() -> None:
    study, _ = a_search(ranged("config.pool", 30))
    sound = [
        Candidate(name=f"candidate-{n}", levels={"config.pool": n}, log_ratios=(0.1,), blocks=(n,))
        for n in range(1, 6)
    ]
    failed = [
        Candidate(name=f"candidate-{n}", levels={"config.pool": n}, cause="it died", worst=-10.0)
        for n in range(16, 30, 2)
    ]
    found = [proposed(study, [*sound, *failed], [{"config.pool": 6}], seed) for seed in range(40)]
    pools = [step(levels, "config.pool") for levels in found if levels is not None]
    assert sum(pool < 15 for pool in pools) > 25


def test_a_factor_whose_condition_does_not_hold_has_the_baselines_level() -> None:
    log = listed("config.log", 2)
    io = ranged("config.io", 8).but(only_if=(Condition(factor="config.log", levels=(1,)),))
    study, _ = a_search(log, io)
    assert settled(study, {"config.log": 0, "config.io": 5}) == {"config.log": 0, "config.io": 0}
    assert settled(study, {"config.log": 1, "config.io": 5}) == {"config.log": 1, "config.io": 5}


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
