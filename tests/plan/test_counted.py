"""Counted trials come when the timed blocks are over, once for each variant that has a speed."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.kinds.registry import ask_for
from dbdyno.plan.restarts import counted_trials
from dbdyno.records.record import Outcome, Record
from dbdyno.study import TRIALS_MAX, Goal, Study
from dbdyno.study.designs import trial_count, trials_in_all
from dbdyno.study.trials import NO_BLOCK, Trial
from tests.analyse.factory import a_run, a_study, ended, records_of

LEVELS = {"config.page_cache": ["2k", "64k", "4k"]}
STUDY = a_study(LEVELS, blocks=2, aa=True, goal=Goal(counted=True))


def next_trials(study: Study, records: Sequence[Record]) -> Sequence[Trial]:
    return ask_for(a_run(study))(study, a_run(study), records)


def counted_record(trial: Trial, timed: Record) -> Record:
    where = {"trial": trial.index, "block": trial.block, "variant": trial.variant.name}
    return timed.but(**where)


def test_work_is_counted_when_the_last_block_is_over() -> None:
    records = records_of(STUDY)
    for done in range(len(records)):
        assert not any(trial.counts_instructions for trial in next_trials(STUDY, records[:done]))
    trials = next_trials(STUDY, records)
    assert all(trial.counts_instructions and trial.block == NO_BLOCK for trial in trials)
    # The twin is the baseline once more.
    assert [trial.variant.name for trial in trials] == [
        "baseline",
        "config.page_cache=64k",
        "config.page_cache=4k",
    ]
    assert trials_in_all(STUDY) == trial_count(STUDY) + len(trials)


def test_a_run_that_was_cut_short_goes_on_with_what_is_not_counted() -> None:
    records = records_of(STUDY)
    first, *rest = next_trials(STUDY, records)
    done = counted_record(first, records[0])
    assert next_trials(STUDY, [*records, done]) == tuple(rest)
    cut = done.but(whole=False)
    assert next_trials(STUDY, [*records, cut]) == (first, *rest)
    everything = [*records, done, *(counted_record(trial, records[0]) for trial in rest)]
    assert next_trials(STUDY, everything) == ()


def test_a_run_with_more_blocks_times_them_and_counts_nothing_twice() -> None:
    records = records_of(STUDY)
    counted = [counted_record(trial, records[0]) for trial in next_trials(STUDY, records)]
    longer = STUDY.but(blocks=3)
    more = next_trials(longer, [*records, *counted])
    assert {trial.block for trial in more} == {2}
    assert not {trial.index for trial in more} & {record.trial for record in counted}
    assert min(record.trial for record in counted) >= TRIALS_MAX
    assert next_trials(longer, [*records_of(longer), *counted]) == ()


def test_a_variant_without_a_speed_is_not_counted() -> None:
    records = records_of(STUDY, changes={"config.page_cache=4k": ended(Outcome.BLOCKED, "capped")})
    assert "config.page_cache=4k" not in {trial.variant.name for trial in counted_trials(STUDY, records)}


def test_a_study_that_does_not_ask_for_it_counts_nothing() -> None:
    plain = a_study(LEVELS, blocks=2)
    assert next_trials(plain, records_of(plain)) == ()
