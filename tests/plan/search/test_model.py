"""What all candidates together tell: luck from worth, and levels that were never together."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from dbdyno.analyse.elimination import Candidate, ranked_candidates
from dbdyno.frozen import Level
from dbdyno.plan.search.model import Model
from dbdyno.study import Study
from tests.searches import a_search, listed, ranged

STUDY, _ = a_search(ranged("config.pool", 16), *(listed(f"config.f{number}", 3) for number in range(6)))
NUMBERS = count(1)


def of(levels: dict[str, Level], study: Study = STUDY) -> dict[str, Level]:
    return {**study.baseline, **{f"config.{name}": level for name, level in levels.items()}}


def tried(
    levels: dict[str, Level], *ratios: float, blocks: tuple[int, ...] = (), cause: str = ""
) -> Candidate:
    """A candidate with these ratios, each in a block of its own where none are given."""
    number = next(NUMBERS)
    own = blocks or tuple(1000 * number + place for place in range(len(ratios)))
    return Candidate(
        name=f"candidate-{number}", levels=of(levels), changes=len(levels), log_ratios=ratios, blocks=own,
        cause=cause,
    )  # fmt: skip


def test_the_baseline_is_worth_nothing_and_its_ratio_is_known() -> None:
    model = Model(STUDY, [tried({"f0": 1}, 0.3), tried({"f1": 1}, 0.1)])
    assert model.expected([STUDY.baseline]) == pytest.approx([0.0], abs=1e-3)


def test_a_candidate_that_was_lucky_once_does_not_lead() -> None:
    good = tried({"f0": 1}, 0.17, 0.24, 0.16, 0.23)
    lucky = tried({"f1": 1}, 0.26)
    idle = [tried({"f1": 1, f"f{n}": 1}, 0.0) for n in range(2, 6)]
    idle += [tried({f"f{n}": 1}, 0.0) for n in range(2, 6)]
    candidates = [good, lucky, *idle]
    assert ranked_candidates(candidates)[0] == lucky
    assert Model(STUDY, candidates).ranked(candidates)[0] == good


def test_levels_that_were_never_together_are_expected_to_help_together() -> None:
    alone = [tried({"f0": 1}, 0.3), tried({"f1": 1}, 0.2), tried({"f2": 1}, 0.0), tried({"f3": 1}, -0.3)]
    model = Model(STUDY, alone)
    first, both, hurt = model.expected([of({"f0": 1}), of({"f0": 1, "f1": 1}), of({"f0": 1, "f3": 1})])
    assert both > first + 0.1
    assert hurt < first - 0.1


def test_a_range_tells_of_the_levels_between() -> None:
    model = Model(STUDY, [tried({"pool": 4}, 0.1), tried({"pool": 8}, 0.3), tried({"pool": 12}, 0.1)])
    low, high = model.expected([of({"pool": 2}), of({"pool": 7})])
    assert high > low + 0.1


def test_a_block_in_which_all_seemed_good_had_a_slow_baseline() -> None:
    known = [tried({"f0": 1}, *(0.3 + 0.02 * (-1) ** n for n in range(8)), 0.36, blocks=(*range(8), 9))]
    in_that_block = Model(STUDY, [*known, tried({"f0": 1, "f1": 1}, 0.36, blocks=(9,))])
    elsewhere = Model(STUDY, [*known, tried({"f0": 1, "f1": 1}, 0.36, blocks=(10,))])
    asked = [of({"f0": 1, "f1": 1})]
    assert in_that_block.expected(asked) < elsewhere.expected(asked)


def test_what_is_about_to_be_measured_is_hoped_for_no_more() -> None:
    model = Model(STUDY, [tried({"f0": 1}, 0.3), tried({"f1": 1}, -0.2)])
    new, other = of({"f0": 1, "f2": 1}), of({"f0": 1, "f3": 2})
    before = model.hopeful([new, other], 0.3)
    model.believe([new])
    after = model.hopeful([new, other], 0.3)
    assert after[0] < 0.5 * before[0]
    assert after[1] > 0.5 * before[1]


def test_one_that_failed_is_expected_to_be_slow_and_is_never_ranked() -> None:
    failed = [tried({"f0": 2, f"f{n}": 1}, cause="it died") for n in range(2, 6)]
    sound = [tried({"f1": 1}, 0.1), tried({"f4": 1}, -0.3)]
    model = Model(STUDY, [*sound, *failed])
    assert model.expected([of({"f0": 2, "f1": 1})])[0] < model.expected([of({"f1": 1})])[0] - 0.02
    assert model.ranked([sound[0], *failed]) == [sound[0]]


def test_of_two_that_are_as_good_the_simpler_one_leads() -> None:
    simple, rich = tried({"f0": 1}, 0.2, 0.2), tried({"f0": 1, "f1": 1, "f2": 1, "f3": 1}, 0.2, 0.2)
    model = Model(STUDY, [simple, rich])
    assert model.ranked([rich, simple])[0] == simple


def test_effects_are_told_better_by_many_candidates_than_by_each() -> None:
    random = np.random.default_rng(1)
    right = {f"f{n}": worth for n, worth in enumerate((0.4, 0.1, 0.0, 0.0, -0.2, -0.3))}
    candidates = []
    for _ in range(60):
        levels: dict[str, Level] = {name: 1 for name in right if random.random() < 0.4}
        true = sum(right[name] for name in levels)
        candidates.append(tried(levels, true + random.normal(0.0, 0.03)))
    model = Model(STUDY, candidates)
    [best] = model.expected([of({"f0": 1, "f1": 1})])
    assert best == pytest.approx(0.5 - 2 * 0.005, abs=0.03)
