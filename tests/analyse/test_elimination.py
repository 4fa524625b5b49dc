"""Changes of a winner that are taken back: what is left is enough, and as small as it can be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from statistics import fmean

import pytest

from dbdyno.analyse.model import SearchResult
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.plan.search.ask import Block, trials_of
from dbdyno.records.record import Record
from dbdyno.study import BASELINE
from dbdyno.study.trials import Purpose, Variant
from tests.searches import a_search, carried_out, listed, measured

GAINS = {"config.much": 0.4, **{f"config.little{n}": 0.012 for n in range(4)}, "config.idle": 0.0}
"""What each change of the winner is worth. The small ones together are worth more than the margin."""
SEEDS = range(1, 13)


def worth(levels: Mapping[str, Level]) -> float:
    return sum(gain for name, gain in GAINS.items() if levels[name])


@cache
def taken_apart(seed: int, budget_s: float = 1e9) -> SearchResult:
    """The elimination of a winner that has every change."""
    study, run = a_search(*(listed(name, 2) for name in GAINS), seed=seed, budget_s=budget_s)
    levels: dict[str, Level] = dict.fromkeys(GAINS, 1)
    variants = Variant(name=BASELINE, levels=study.baseline), Variant(name="candidate-1", levels=levels)
    confirmed: list[Record] = []
    for number in range(study.blocks):
        trials = trials_of(study, run, Block(number, Purpose.CONFIRMATION, variants), len(confirmed))
        confirmed += [measured(trial, run, worth) for trial in trials]
    found = analyse(study, run, carried_out(study, run, worth, begun=confirmed)).search
    assert found is not None and found.winner is not None
    return found


def kept_in(found: SearchResult) -> set[str]:
    return {change.factor for change in found.changes}


def test_what_is_taken_away_together_is_seldom_worth_more_than_the_margin() -> None:
    lost = [sum(GAINS[name] for name in GAINS.keys() - kept_in(taken_apart(seed))) for seed in SEEDS]
    assert fmean(lost) < 0.02
    assert max(lost) < 0.04


def test_where_too_much_went_the_strongest_comes_back() -> None:
    seen = 0
    for seed in SEEDS:
        rounds = taken_apart(seed).rounds
        for before, last, after in zip(rounds, rounds[1:], rounds[2:], strict=False):
            if before.too_few or not last.too_few:
                continue
            gone = {
                one.factor: one.share.ratio
                for one in before.changes
                if one.factor in before.removed and one.share is not None
            }
            [back] = {one.factor for one in after.changes} - {one.factor for one in last.changes}
            assert gone[back] == max(gone.values())
            seen += 1
    assert seen, "no round of these seeds took too much away"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_round_measures_the_same_changes_again(seed: int) -> None:
    rounds = taken_apart(seed).rounds
    assert len({tuple(one.levels.items()) for one in rounds}) == len(rounds)
    assert len({one.reference for one in rounds}) == len(rounds)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_change_is_either_kept_or_told_to_be_gone(seed: int) -> None:
    found = taken_apart(seed)
    gone = [change.factor for change in found.removed]
    assert sorted([*kept_in(found), *gone]) == sorted(GAINS)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_first_round_leaves_is_measured_even_where_the_time_is_over(seed: int) -> None:
    rounds = taken_apart(seed, budget_s=1.0).rounds
    assert rounds[0].removed
    assert len(rounds) == 2
