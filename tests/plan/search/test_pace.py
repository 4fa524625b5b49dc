"""How long a search looks on."""

from __future__ import annotations

import pytest

from dbdyno.plan.search.pace import least_s, looks_on, making_s, spent_s, trial_s, trials_after
from dbdyno.records.record import Outcome, Record
from dbdyno.study import BASELINE, ListedVariant
from tests.searches import TRIAL_S, a_search, carried_out


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
