"""What is tried next: sparse at first, then around the best; the same again from the same records."""

from __future__ import annotations

from dbdyno.analyse.candidates import Candidate
from dbdyno.plan.search.sampler import propose, settled
from dbdyno.study import Study
from dbdyno.study.space import Condition
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
        )
        for number in range(1, count + 1)
    ]


def test_the_same_records_and_seed_give_the_same_levels() -> None:
    study, _ = a_search()
    known = candidates(study, 8)
    assert propose(study, known, [], "1", anything) == propose(study, known, [], "1", anything)
    others = [propose(study, known, [], str(seed), anything) for seed in range(20)]
    assert len({str(levels) for levels in others}) > 5


def test_the_first_candidates_change_few_factors() -> None:
    factors = [listed(f"config.f{number}", 4) for number in range(20)]
    study, _ = a_search(*factors)
    changed = []
    for seed in range(200):
        levels = propose(study, [], [], str(seed), anything)
        assert levels is not None
        changed.append(sum(levels[name] != level for name, level in study.baseline.items()))
    assert 4 < sum(changed) / len(changed) < 8
    assert min(changed) >= 1


def test_later_ones_stay_near_the_best_and_learn_from_the_rest() -> None:
    factors = [ranged("config.pool", 16), *(listed(f"config.f{number}", 4) for number in range(19))]
    study, _ = a_search(*factors)
    known = candidates(study, 10)
    found = [propose(study, known, [study.baseline], str(seed), anything) for seed in range(60)]
    near = [levels for levels in found if levels is not None]
    assert len(near) == 60
    assert all(sum(levels[name] != known[-1].levels[name] for name in levels) <= 8 for levels in near)
    pools = [step(levels, "config.pool") for levels in near]
    assert sum(pools) / len(pools) > 7.5, "the half in which it never was better is tried less"


def test_the_first_of_a_block_is_the_best_with_fewer_changes() -> None:
    factors = [listed(f"config.f{number}", 4) for number in range(8)]
    study, _ = a_search(*factors)
    worse = [
        Candidate(name=f"candidate-{n}", levels={**study.baseline, "config.f0": 1}, log_ratios=(0.0,))
        for n in range(8)
    ]
    best = Candidate(name="best", levels={**dict.fromkeys(study.baseline, 2)}, log_ratios=(0.9,), changes=8)
    for seed in range(20):
        levels = propose(study, [*worse, best], [], str(seed), anything)
        assert levels is not None
        assert set(levels.values()) <= {0, 2} and 0 in levels.values()


def test_nothing_is_proposed_twice_nor_what_is_not_allowed() -> None:
    study, _ = a_search(listed("config.a", 3))
    first = propose(study, [], [], "1", anything)
    assert first is not None
    second = propose(study, [], [first], "1", anything)
    assert second is not None and second != first
    assert propose(study, [], [first, second], "1", anything) is None
    assert propose(study, [], [], "1", lambda levels: False) is None


def test_a_failure_is_learned_from() -> None:
    study, _ = a_search(ranged("config.pool", 30))
    sound = [
        Candidate(name=f"candidate-{n}", levels={"config.pool": n}, log_ratios=(0.1,)) for n in range(1, 6)
    ]
    failed = [
        Candidate(name=f"candidate-{n}", levels={"config.pool": n}, cause="it died", worst=-10.0)
        for n in range(16, 30, 2)
    ]
    found = [propose(study, [*sound, *failed], [], str(seed), anything) for seed in range(40)]
    pools = [step(levels, "config.pool") for levels in found if levels is not None]
    assert sum(pool < 15 for pool in pools) > 25


def test_a_factor_whose_condition_does_not_hold_has_the_baselines_level() -> None:
    log = listed("config.log", 2)
    io = ranged("config.io", 8).model_copy(update={"only_if": (Condition(factor="config.log", levels=(1,)),)})
    study, _ = a_search(log, io)
    assert settled(study, {"config.log": 0, "config.io": 5}) == {"config.log": 0, "config.io": 0}
    assert settled(study, {"config.log": 1, "config.io": 5}) == {"config.log": 1, "config.io": 5}
