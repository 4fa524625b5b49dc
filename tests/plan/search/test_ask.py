"""A search from its first trial to its last: what comes next follows from the records, and ends in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby

import pytest

from dbdyno.analyse.elimination import candidates_of
from dbdyno.errors import BaselineFailed, UserError
from dbdyno.frozen import Level
from dbdyno.kinds.registry import ask_for
from dbdyno.plan.search.ask import (
    FINALISTS,
    NEW_EACH_BLOCK,
    ask,
    finalists,
    fits,
    least_s,
    looks_on,
    making_s,
    next_block,
    spent_s,
    trial_s,
    trials_after,
)
from dbdyno.records.record import Observation, Outcome, Record
from dbdyno.records.run import SearchRun
from dbdyno.study import BASELINE, Goal, Guard, ListedVariant, Study
from dbdyno.study.grammars import constraint
from dbdyno.study.nouns import Condition, Search
from dbdyno.study.trials import Purpose
from tests.searches import (
    TRIAL_S,
    a_larger_pool_helps,
    a_search,
    carried_out,
    listed,
    measured,
    nothing_helps,
    ranged,
    step,
    tried_in,
    two_changes_help,
)


@cache
def searched(budget_s: float) -> tuple[Study, SearchRun, tuple[Record, ...]]:
    """A whole search where two changes help: carried out once, because it takes long."""
    study, run = a_search(budget_s=budget_s)
    return study, run, tuple(carried_out(study, run, two_changes_help))


def no_memory(levels: Mapping[str, Level]) -> int:
    return 0


def purposes(records: Sequence[Record]) -> list[Purpose | None]:
    return [purpose for purpose, _ in groupby(record.purpose for record in records)]


def test_a_search_is_confirmed_and_its_changes_are_taken_back() -> None:
    study, _, records = searched(2000.0)
    assert purposes(records) == [Purpose.SEARCH, Purpose.CONFIRMATION, Purpose.ELIMINATION]
    assert tried_in(records)[0] == BASELINE
    confirming = [record for record in records if record.purpose is Purpose.CONFIRMATION]
    assert len(confirming) == study.blocks * (1 + FINALISTS)
    # Fresh blocks: none of the search's own, and whole pairs.
    assert min(record.block for record in confirming) % 2 == 0
    assert len({record.trial for record in records}) == len(records)


def test_each_block_holds_the_baseline_and_the_best_so_far() -> None:
    records = [one for one in searched(2000.0)[2] if one.purpose is Purpose.SEARCH]
    for block in range(1, 1 + max(record.block for record in records)):
        names = {record.variant for record in records if record.block == block}
        assert BASELINE in names
        assert len(names) <= 2 + NEW_EACH_BLOCK
        new = names - {record.variant for record in records if record.block < block}
        assert 1 <= len(new) <= NEW_EACH_BLOCK


def test_the_best_by_its_own_blocks_is_confirmed_even_where_the_model_expects_less() -> None:
    study, run = a_search()
    tried = candidates_of(study, carried_out(study, run, nothing_helps, blocks=8))
    lucky = tried[3].but(log_ratios=(0.9,), blocks=(3,))
    chosen = finalists(study, [*tried[:3], lucky, *tried[4:]])
    assert chosen[0].name == lucky.name
    assert len(chosen) == FINALISTS == len({one.name for one in chosen})


def test_a_candidate_is_never_tried_twice_under_two_names() -> None:
    study, run = a_search()
    levels = {
        record.variant: tuple(record.levels.items()) for record in carried_out(study, run, nothing_helps)
    }
    tried = [own for name, own in levels.items() if name.startswith("candidate-") and " " not in name]
    assert len(set(tried)) == len(tried) > 10


def test_the_search_keeps_to_its_time() -> None:
    for budget_s in (1000.0, 2000.0):
        study, _, records = searched(budget_s)
        # The first round of the elimination is always whole, however many changes the winner has.
        more_s = study.blocks * len(study.factors) * TRIAL_S
        assert spent_s(records) <= budget_s + more_s


def test_a_run_that_is_cut_short_anywhere_goes_on_as_if_nothing_had_happened() -> None:
    study, run, whole = searched(1500.0)
    by_trial = {record.trial: record for record in whole}
    for stop in range(0, len(whole), 7):
        trials = ask(no_memory, study, run, whole[:stop])
        assert trials, stop
        for trial in trials:
            record = by_trial[trial.index]
            assert (record.variant, record.block, record.levels) == (
                trial.variant.name, trial.block, trial.variant.levels,
            )  # fmt: skip
    assert ask(no_memory, study, run, whole) == ()


def test_what_comes_next_is_the_same_in_whatever_order_records_were_kept() -> None:
    """A block that was cut short and gone on with keeps its records in another order than the store has."""
    study, run, whole = searched(1500.0)
    first = next(one.trial for one in whole if one.purpose is Purpose.CONFIRMATION)
    for stop in (first + 1 + FINALISTS, len(whole) - 2):
        assert ask(no_memory, study, run, whole[:stop][::-1]) == ask(no_memory, study, run, whole[:stop])


def test_a_time_that_the_first_trial_shows_to_be_too_short_ends_the_search() -> None:
    study, run = a_search(budget_s=20 * TRIAL_S)
    with pytest.raises(UserError, match="and 200 s are given") as caught:
        carried_out(study, run, a_larger_pool_helps)
    assert "--budget" in caught.value.hint


def test_the_seed_decides_what_is_tried() -> None:
    study, run = a_search(budget_s=1500.0)
    first, again = (carried_out(study, run, nothing_helps) for _ in range(2))
    assert first == again
    other = carried_out(study, run.but(seed=2), nothing_helps)
    assert [one.levels for one in first] != [one.levels for one in other]


def test_where_nothing_seems_to_help_nothing_is_confirmed() -> None:
    study, run = a_search(budget_s=900.0)

    def everything_hurts(levels: Mapping[str, Level]) -> float:
        return 0.0 if dict(levels) == study.baseline else -0.5

    assert purposes(carried_out(study, run, everything_hurts)) == [Purpose.SEARCH]


def test_a_candidate_that_fails_is_not_tried_again_and_others_are() -> None:
    study, run = a_search(budget_s=2000.0)

    def fails_beyond(levels: Mapping[str, Level]) -> float | None:
        return None if step(levels, "config.pool") > 8 else a_larger_pool_helps(levels)

    records = carried_out(study, run, fails_beyond)
    failed = [record.variant for record in records if record.outcome is Outcome.FAILED]
    assert failed and len(set(failed)) == len(failed)
    assert Purpose.CONFIRMATION in purposes(records)


def test_a_search_of_which_every_candidate_fails_ends() -> None:
    study, run = a_search()

    def only_the_baseline(levels: Mapping[str, Level]) -> float | None:
        return 0.0 if dict(levels) == study.baseline else None

    records = carried_out(study, run, only_the_baseline)
    assert purposes(records) == [Purpose.SEARCH]
    assert spent_s(records) < 300.0


def test_a_baseline_that_fails_ends_the_search_at_once() -> None:
    study, run = a_search()
    [first] = ask(no_memory, study, run, [])
    assert first.variant.name == BASELINE
    with pytest.raises(BaselineFailed, match="did not start"):
        ask(no_memory, study, run, [measured(first, run, lambda levels: None)])


def test_a_baseline_that_breaks_its_own_guard_ends_the_search_at_once() -> None:
    guard = Guard(text="p99_ms <= 1", metric="p99_ms", bound=1.0)
    study, run = a_search(goal=Goal(guards=(guard,)))
    with pytest.raises(BaselineFailed, match="the baseline itself breaks the guard p99_ms <= 1"):
        carried_out(study, run, nothing_helps)


def test_servers_that_do_not_fit_into_memory_are_never_started() -> None:
    study, run = a_search(budget_s=1200.0)
    run = run.but(room_bytes=30)

    def memory(levels: Mapping[str, Level]) -> int:
        return step(levels, "config.pool")

    records = carried_out(study, run, a_larger_pool_helps, memory)
    searched = {record.block for record in records if record.purpose is Purpose.SEARCH}
    assert searched
    for block in searched:
        own = [record.levels for record in records if record.block == block]
        assert fits(memory, study, run.room_bytes, own)


def test_a_confirmation_that_does_not_fit_into_memory_runs_in_parts() -> None:
    study, run, whole = searched(2000.0)
    records = [one for one in whole if one.purpose is Purpose.SEARCH]
    narrow = run.but(room_bytes=1)
    over = run.but(budget_s=0.0, room_bytes=1)
    assert len(ask(lambda levels: 1, study, over, records)) == 1
    assert next_block(lambda levels: 1, study, narrow, []) is not None


def test_a_cache_that_data_did_not_fill_counts_as_what_it_held() -> None:
    """Servers that are declared too large to be up together are, once it is seen how little they hold."""
    study, run, whole = searched(2000.0)
    records = [one for one in whole if one.purpose is Purpose.SEARCH]
    run = run.but(budget_s=0.0, room_bytes=60)
    first: list[Record] = []
    while len(first) < 1 + FINALISTS:
        [trial] = ask(lambda levels: 50, study, run, [*records, *first])
        first.append(holding(measured(trial, run, two_changes_help), 10.0))
    together = ask(lambda levels: 50, study, run, [*records, *first])
    assert len(together) == 1 + FINALISTS
    larger = [holding(record, 20.0) for record in first]
    assert len(ask(lambda levels: 50, study, run, [*records, *larger])) == 2


def holding(record: Record, held_bytes: float) -> Record:
    """The record of a server that held so much memory at most."""
    [phase] = record.phases
    seen = phase.observation or Observation(duration_s=1.0)
    seen = seen.but(totals={**seen.totals, "resident_bytes_max": held_bytes})
    return record.but(phases=(phase.but(observation=seen),))


def test_constraints_and_conditions_hold_in_every_candidate() -> None:
    log = listed("config.log", 2)
    only_with_log = ranged("config.io", 8).but(only_if=(Condition(factor="config.log", levels=(1,)),))
    bound = constraint("config.pool + config.io <= 12")
    study, run = a_search(ranged("config.pool", 16), log, only_with_log, search=Search(constraints=(bound,)))
    levels = [record.levels for record in carried_out(study, run, nothing_helps)]
    assert all(step(one, "config.pool") + step(one, "config.io") <= 12 for one in levels)
    assert all(step(one, "config.io") == 0 for one in levels if step(one, "config.log") == 0)
    assert any(step(one, "config.io") for one in levels)


def test_a_small_space_ends_when_all_of_it_was_tried() -> None:
    study, run = a_search(listed("config.a", 2), listed("config.b", 2), budget_s=80_000.0)
    records = carried_out(study, run, nothing_helps)
    searched = {record.variant for record in records if record.purpose is Purpose.SEARCH}
    assert searched == {BASELINE, "candidate-1", "candidate-2", "candidate-3"}


def test_variants_that_the_study_names_are_confirmed_beside_the_best() -> None:
    study, run = a_search(budget_s=2500.0)
    manual = ListedVariant(name="the manual", levels={**study.baseline, "config.pool": 5})
    study = study.but(variants=(manual,))
    records = carried_out(study, run, a_larger_pool_helps)
    names = {record.variant for record in records if record.purpose is Purpose.CONFIRMATION}
    assert "the manual" in names and BASELINE in names and len(names) == 2 + FINALISTS


def test_a_run_of_another_design_is_asked_as_ever() -> None:
    study, run = a_search()
    assert [trial.purpose for trial in ask_for(run)(study, run, [])] == [Purpose.SEARCH]


def test_what_making_the_data_took_is_set_aside_once_more() -> None:
    study, run = a_search()
    records = carried_out(study, run, lambda levels: 0.0, blocks=2)
    slow = [records[0].but(started_unix_s=-100.0), *records[1:]]
    assert trial_s(slow) == TRIAL_S
    assert making_s(slow) == pytest.approx(100.0)
    assert spent_s(slow) == pytest.approx(100.0 + TRIAL_S * len(records))


def test_candidates_that_are_dropped_make_no_trial_look_short() -> None:
    study, run = a_search()
    records = carried_out(study, run, lambda levels: 0.0, blocks=3)

    def dropped(one: Record) -> Record:
        return one.but(finished_unix_s=one.started_unix_s + 2.0)

    short = [one if one.variant == BASELINE else dropped(one) for one in records]
    assert spent_s(short) < spent_s(records)
    assert trial_s(short) == TRIAL_S


def test_a_candidate_that_fails_beside_others_takes_no_time_of_theirs() -> None:
    """Its record is over when the block is: the host is restored then."""
    study, run = a_search()
    records = carried_out(study, run, lambda levels: None, blocks=1)
    failed = records[-1].but(stages_s={"prepare": 1.5, "restore": 0.5})
    assert failed.outcome is Outcome.FAILED and failed.finished_unix_s - failed.started_unix_s == TRIAL_S
    assert spent_s([failed]) == 2.0


def test_variants_that_the_study_names_take_their_time() -> None:
    study, _ = a_search()
    known = study.but(variants=(ListedVariant(name="the manual", levels={}),))
    assert trials_after(known, 0) - trials_after(study, 0) == study.blocks
    assert least_s(known, 10.0) - least_s(study, 10.0) == 10.0 * study.blocks


def test_the_search_stops_while_the_confirmation_still_has_its_time() -> None:
    study, run = a_search()
    records = carried_out(study, run, lambda levels: 0.0, blocks=3)
    needed_s = trial_s(records) * (6 + trials_after(study, 0))
    enough = run.but(budget_s=spent_s(records) + needed_s + 1.0)
    short = run.but(budget_s=spent_s(records) + needed_s - 1.0)
    assert looks_on(study, enough, records, ())
    assert not looks_on(study, short, records, ())
