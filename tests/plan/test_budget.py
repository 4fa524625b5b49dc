"""The budget: as many blocks as pay, durations that fit, and never more time than was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from dbdyno.analyse.quantiles import BLOCKS_LEAST, SHORTEST_S
from dbdyno.errors import UserError
from dbdyno.findings import analyse
from dbdyno.host.journal import open_journal
from dbdyno.plan.blocks import Order, expected_duration_s, make_plan
from dbdyno.plan.budget import (
    Replan,
    ask,
    baselines_worth,
    costs_of,
    fitted_to_budget,
    guessed,
    precision,
    replanned,
)
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Arrangement, Design, Interval, Study
from dbdyno.study.designs import trial_count, variants_of
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Clock
from tests.fakes import FakeEngine, carried_out, make_bench, make_run, make_study, make_tally

OVERHEAD_S = 3.0


def study_of(levels: int, warmup_s: float = 2.0, duration_s: float = 20.0) -> Study:
    study = make_study(*range(levels))
    timed = study.workload.but(warmup_s=warmup_s, duration_s=duration_s)
    return study.but(workload=timed)


@given(
    levels=some.integers(2, 30),
    warmup_s=some.floats(0, 10),
    duration_s=some.floats(0.5, 60),
    budget_s=some.floats(10, 20_000),
)
def test_a_budget_is_never_exceeded_and_well_used(
    levels: int, warmup_s: float, duration_s: float, budget_s: float
) -> None:
    study = study_of(levels, warmup_s, duration_s)
    assume(budget_s >= levels * BLOCKS_LEAST * (warmup_s + OVERHEAD_S + SHORTEST_S))
    fit = fitted_to_budget(study, budget_s, OVERHEAD_S)
    takes_s = expected_duration_s(trial_count(fit), fit, OVERHEAD_S)
    assert takes_s <= budget_s * (1 + 1e-9)
    assert fit.blocks >= BLOCKS_LEAST
    assert min(SHORTEST_S, duration_s) <= fit.workload.duration_s <= duration_s
    assert fit.workload.warmup_s == warmup_s
    # One more block would not have fitted, or the time went into longer trials.
    one_block_s = levels * (warmup_s + OVERHEAD_S + fit.workload.duration_s)
    assert takes_s + one_block_s + levels * fit.blocks * 0.1 > budget_s


def test_more_time_gives_more_precision() -> None:
    widths = [
        precision(fitted_to_budget(study_of(4), budget_s, OVERHEAD_S), 0.05).half_width
        for budget_s in (160.0, 400.0, 900.0, 3600.0)
    ]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4


def test_too_small_a_budget_says_what_is_needed() -> None:
    with pytest.raises(UserError, match="5 s are too few for 6 blocks of 4 variants") as caught:
        fitted_to_budget(study_of(4), 5.0, OVERHEAD_S)
    assert caught.value.hint == "give at least 156 s, or leave out some levels"
    fitted_to_budget(study_of(4), 156.0, OVERHEAD_S)


def test_what_slices_settle_counts_where_a_budget_is_small() -> None:
    """A trial of 1.5 s has four slices here, and settles for 0.1 s before each of them."""
    beside = {"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.5}
    study = study_of(4, duration_s=1.5).but(**beside)
    with pytest.raises(UserError, match="4 variants, 7 s each") as caught:
        fitted_to_budget(study, 160.0, OVERHEAD_S)
    assert caught.value.hint == "give at least 166 s, or leave out some levels"
    fit = fitted_to_budget(study, 166.0, OVERHEAD_S)
    assert expected_duration_s(trial_count(fit), fit, OVERHEAD_S) <= 166.0


@pytest.mark.parametrize("levels", [2, 4, 8])
def test_the_least_budget_gives_the_fewest_blocks(levels: int) -> None:
    least_s = levels * BLOCKS_LEAST * (1.1 + OVERHEAD_S + SHORTEST_S)
    assert fitted_to_budget(study_of(levels, warmup_s=1.1), least_s, OVERHEAD_S).blocks == BLOCKS_LEAST


@pytest.mark.parametrize(
    ("candidates", "baselines", "saved"), [(1, 1, 0.0), (4, 2, 0.1), (9, 3, 0.2), (16, 3, 0.25)]
)
def test_a_budget_has_as_many_baselines_as_narrow_intervals_most(
    candidates: int, baselines: int, saved: float
) -> None:
    """In a long run an interval goes with the root of the time. The fourth of sixteen would gain 0.7 %."""
    study, budget_s = study_of(candidates + 1), 40_000.0
    one = fitted_to_budget(study, budget_s, OVERHEAD_S)
    fit = fitted_to_budget(study, budget_s, OVERHEAD_S, baselines_most=baselines_worth(study))
    assert (one.baselines, fit.baselines_each) == (None, baselines)
    assert expected_duration_s(trial_count(fit), fit, OVERHEAD_S) <= budget_s
    wide, narrow = (
        costs_of(each, OVERHEAD_S).half_width(each.blocks, each.workload.duration_s, guessed(each))
        for each in (one, fit)
    )
    assert 1.0 - (narrow / wide) ** 2 == pytest.approx(saved, abs=0.03)


def test_a_budget_keeps_the_baselines_that_a_study_names_and_those_of_ranks() -> None:
    study = study_of(10)
    assert fitted_to_budget(study.but(baselines=1), 4000.0, OVERHEAD_S, baselines_most=3).baselines == 1
    assert baselines_worth(study) == 3
    ranks = study.but(goal=study.goal.but(interval=Interval.SIGNED_RANK))
    crossed = study.but(design=Design.FACTORIAL)
    assert [baselines_worth(one) for one in (study.but(baselines=2), ranks, crossed)] == [2, 1, 1]


def test_one_block_has_no_precision() -> None:
    assert math.isfinite(precision(make_study(1, 2, blocks=2), 0.05).half_width)
    assert precision(make_study(1, 2, blocks=1), 0.05).half_width > 1e300


def first_block(
    study: Study, overhead_s: Mapping[str, float], blocked: frozenset[str] = frozenset()
) -> list[Record]:
    """A record per variant that took so long beside its load; a blocked one had no load."""
    load_s = study.workload.warmup_s + study.workload.duration_s
    records = []
    for trial in make_plan(study.but(blocks=1), Order(seed=1)).trials:
        name = trial.variant.name
        measured = name not in blocked
        tally = make_tally(warmup_s=study.workload.warmup_s, duration_s=study.workload.duration_s)
        records.append(
            Record(
                run="first", trial=trial.index, block=0, position=trial.position, variant=name,
                levels=trial.variant.levels, host="here", started_unix_s=100.0,
                finished_unix_s=100.0 + overhead_s.get(name, 1.0) + (load_s if measured else 0.0),
                outcome=Outcome.MEASURED if measured else Outcome.BLOCKED,
                phases=(PhaseRecord(name="load", tally=tally if measured else None),),
            )
        )  # fmt: skip
    return records


def of_budget(study: Study, budget_s: float) -> Run:
    return make_run(study).but(budget_s=budget_s)


def replan_of(study: Study, budget_s: float, first: list[Record]) -> Replan:
    found = replanned(study, of_budget(study, budget_s), first)
    assert found is not None
    return found


def later_trials(study: Study, budget_s: float, first: list[Record]) -> list[Trial]:
    """What the budget asks for after its first block, if later trials give what the first one gave."""
    records, later = list(first), list[Trial]()
    while trials := ask(study, of_budget(study, budget_s), records):
        later += trials
        changes = [{"trial": trial.index, "block": trial.block} for trial in trials]
        records += [first[0].but(**change) for change in changes]
    return later


def test_the_first_block_decides_how_many_follow() -> None:
    # 4 variants of 2 + 20 s, 1 s beside it: a block takes 92 s, so ten fit into 920 s.
    study = study_of(4)
    found = replan_of(study, 920.0, first_block(study, {}))
    assert (found.blocks, found.left_out, found.overhead_s) == (10, frozenset(), 1.0)
    assert replan_of(study, 919.0, first_block(study, {})).blocks == 9
    assert found.trials(study) == 40 == 4 + len(later_trials(study, 920.0, first_block(study, {})))
    assert replanned(study, of_budget(study, 920.0), first_block(study, {})[:3]) is None


def test_the_trial_that_made_the_data_does_not_speak_for_all() -> None:
    study = study_of(4)
    slow = first_block(study, {"baseline": 101.0})
    # It took 100 s more, once: what is left of 1,020 s gives as many blocks as 920 s would have.
    assert replan_of(study, 1020.0, slow).blocks == 10
    assert replan_of(study, 1020.0, slow).overhead_s == 1.0


def test_blocked_variants_give_their_time_to_the_others() -> None:
    study = study_of(4)
    blocked = frozenset({"config.speed=2", "config.speed=3"})
    found = replan_of(study, 230.0, first_block(study, {}, blocked))
    # 48 s went into the first block; a block of the two that go on takes 46 s.
    assert (found.blocks, found.left_out) == (4, blocked)
    later = later_trials(study, 230.0, first_block(study, {}, blocked))
    assert {trial.variant.name for trial in later} == {"baseline", "config.speed=1"}
    assert found.trials(study) == 4 + len(later)
    blocks = [[trial.variant.name for trial in later if trial.block == block] for block in (1, 2, 3)]
    assert blocks[1] == blocks[2][::-1], "a pair without the blocked ones is still mirrored"


@given(
    levels=some.integers(2, 12),
    overhead_s=some.floats(0, 30),
    budget_s=some.floats(10, 20_000),
    blocked_count=some.integers(0, 11),
)
def test_what_is_planned_anew_keeps_within_the_budget(
    levels: int, overhead_s: float, budget_s: float, blocked_count: int
) -> None:
    study = study_of(levels)
    names = [variant.name for variant in variants_of(study)]
    blocked = frozenset(names[1 : 1 + blocked_count])
    first = first_block(study, dict.fromkeys(names, overhead_s), blocked)
    found = replan_of(study, budget_s, first)
    used_s = sum(record.finished_unix_s - record.started_unix_s for record in first)
    later = found.trials(study) - levels
    each_s = overhead_s + study.workload.warmup_s + study.workload.duration_s
    assert not later or used_s + later * each_s <= budget_s * (1 + 1e-9) + 1e-6
    assert later == (found.blocks - 1) * (levels - len(blocked))


def test_nothing_left_to_compare_ends_the_run() -> None:
    study = study_of(3)
    others = frozenset({"config.speed=1", "config.speed=2"})
    assert replan_of(study, 9000.0, first_block(study, {}, others)).blocks == 1
    assert replan_of(study, 9000.0, first_block(study, {}, frozenset({"baseline"}))).blocks == 1


def ticking() -> Callable[[], float]:
    """A clock that is a second on each time it is read."""
    seconds = count(1_000)
    return lambda: float(next(seconds))


def test_a_run_goes_by_what_its_own_trials_took(homes: Path) -> None:
    """Real trials of the fake engine, which takes no more than 2 of 3 speeds; each reading of a clock takes a
    second, so that a trial takes three for each of its stages."""
    study = make_study(1, 2, 3, blocks=3)
    run = make_run(study).but(budget_s=120.0)

    def carry_out() -> list[Record]:
        with Store(store_url()) as store, open_journal() as journal:
            store.add_run(run)
            seconds = ticking()
            clock = Clock(unix_s=seconds, monotonic_s=seconds)
            bench = replace(make_bench(study, run, journal, FakeEngine(cap=2)), clock=clock)
            return carried_out(bench, store)

    records = carry_out()
    found = replan_of(study, 120.0, records)
    assert found.left_out == {"config.speed=3"}
    outcomes = [(record.block, record.variant, record.outcome) for record in records]
    assert len([one for one in outcomes if one[0] == 0]) == 3
    assert {one[1] for one in outcomes if one[0] > 0} == {"baseline", "config.speed=2"}
    assert {one[2] for one in outcomes if one[0] > 0} == {Outcome.MEASURED}
    assert max(one[0] for one in outcomes) == found.blocks - 1 > 1
    assert sum(record.finished_unix_s - record.started_unix_s for record in records) <= 120.0
    # Gone on with, it comes to the same and has nothing left to do.
    assert carry_out() == records
    assert found.trials(study) == len(records)
    refitted = run.but(blocks=found.blocks)
    again = study.but(blocks=found.blocks)
    analysis = analyse(again, refitted, records)
    assert analysis.trials_planned == len(records) == len(analysis.trials)
