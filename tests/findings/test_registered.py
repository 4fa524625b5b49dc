"""What a run did otherwise than it was registered."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.findings.registered import departures, plan_of
from dbdyno.frozen import Frozen
from dbdyno.prepare_run.stored_study import asked_by
from dbdyno.records.chain import Registered
from dbdyno.study import Interval, Study
from tests.analyse.factory import a_run
from tests.study_texts import STUDY


@pytest.fixture
def study(tmp_path: Any) -> Study:
    return asked_by(STUDY, "study.toml", tmp_path, None)


def registered(study: Study, **plan: object) -> Registered:
    return Registered(number=1, digest="d", registered_unix_s=1.0, plan=plan_of(study).but(**plan))


def test_a_run_that_keeps_to_its_plan_departs_from_nothing(study: Study) -> None:
    assert departures(study, a_run(study).but(registered=registered(study))) == ()


def test_a_run_that_was_not_registered_departs_from_nothing(study: Study) -> None:
    assert departures(study.but(blocks=9), a_run(study)) == ()


@pytest.mark.parametrize(
    ("study_changes", "run_changes", "told"),
    [
        ({"blocks": 9}, {}, ("blocks", "2", "9")),
        ({}, {"sequential": True}, ("sequential", "no", "yes")),
        ({}, {"budget_s": 60.0}, ("budget_s", "none", "60.0")),
    ],
    ids=str,
)
def test_what_was_done_otherwise_is_named_with_both_values(
    study: Study, study_changes: dict[str, Any], run_changes: dict[str, Any], told: tuple[str, str, str]
) -> None:
    run = a_run(study).but(registered=registered(study), **run_changes)
    [found] = departures(study.but(**study_changes), run)
    assert (found.name, found.registered, found.carried_out) == told


def test_what_a_study_left_open_is_no_departure(study: Study) -> None:
    run = a_run(study).but(registered=registered(study))
    goal: Frozen = study.goal.but(interval=Interval.SIGNED_RANK)
    assert departures(study.but(seed=7, goal=goal), run) == ()


def test_a_seed_that_was_registered_counts(study: Study) -> None:
    run = a_run(study).but(registered=registered(study.but(seed=1)))
    [found] = departures(study.but(seed=7), run)
    assert (found.name, found.registered, found.carried_out) == ("seed", "1", "7")
