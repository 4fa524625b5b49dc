"""A variant whose code is the baseline's has one trial, which says so, and none after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.kinds.registry import ask_for
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial
from tests.analyse.builds import INERT, builds, inert
from tests.analyse.factory import a_run, a_study, ended, records_of

STUDY, RECORDS = builds(blocks=3)
KINDS: dict[str, dict[str, object]] = {
    "fixed": {},
    "sequential": {"sequential": True},
    "budget": {"budget_s": 10_000.0},
}


def carried_out(study: Study, run: Run, records: Sequence[Record], whole: Sequence[Record]) -> list[Record]:
    """The records of a run that goes on after these, each trial as `whole` has it."""
    by_trial = {record.trial: record for record in whole}
    done = list(records)
    while trials := ask_for(run)(study, run, done):
        done += [by_trial[trial.index] for trial in trials]
    return done


def names(trials: Sequence[Trial]) -> set[str]:
    return {trial.variant.name for trial in trials}


@pytest.mark.parametrize("kind", ["fixed", "sequential"])
def test_an_inert_variant_has_a_trial_in_the_first_block_alone(kind: str) -> None:
    run = a_run(STUDY).but(**KINDS[kind])
    done = carried_out(STUDY, run, [], RECORDS)
    assert [record.block for record in done if record.variant == INERT] == [0]
    assert max(record.block for record in done) == 2


def test_a_budget_leaves_it_out_as_well() -> None:
    run = a_run(STUDY).but(**KINDS["budget"])
    first = [record for record in RECORDS if record.block == 0]
    following = ask_for(run)(STUDY, run, first)
    assert following and INERT not in names(following)


@pytest.mark.parametrize("cut", range(len(RECORDS)))
def test_a_run_that_was_cut_short_comes_to_the_same_trials(cut: int) -> None:
    run = a_run(STUDY)
    whole = carried_out(STUDY, run, [], RECORDS)
    assert carried_out(STUDY, run, whole[:cut], RECORDS) == whole


def test_a_run_with_nothing_but_inert_levels_ends_after_a_block() -> None:
    study = a_study({"build.flags": ["none", "-Wall"]}, blocks=6)
    records = records_of(study, changes={INERT: inert})
    run = a_run(study)
    done = carried_out(study, run, [], records)
    assert {record.block for record in done} == {0} and len(done) == 2
    assert analyse(study, run, done).trials_planned == 2


PLACEBO: dict[str, Sequence[Level]] = {"build.flags": ["none", "-Wall"], "build.layout": ["none", 1]}


@pytest.mark.parametrize(
    ("levels", "aa"), [(PLACEBO, False), ({"build.flags": ["none", "-Wall"]}, True)], ids=["placebo", "twin"]
)
def test_placebos_and_a_twin_are_measured_beside_inert_levels(
    levels: dict[str, Sequence[Level]], aa: bool
) -> None:
    study = a_study(levels, blocks=3, aa=aa)
    records = records_of(study, changes={INERT: inert})
    done = carried_out(study, a_run(study), [], records)
    assert len(done) == 3 * 2 + 1 and max(record.block for record in done) == 2
    assert analyse(study, a_run(study), done).trials_planned == len(done)


def test_a_placebo_that_is_blocked_keeps_no_run_going() -> None:
    study = a_study(PLACEBO, blocks=3)
    blocked = ended(Outcome.BLOCKED, "it is no placebo", "")
    records = records_of(study, changes={INERT: inert, "build.layout=1": blocked})
    assert {record.block for record in carried_out(study, a_run(study), [], records)} == {0}


def test_a_trial_that_was_inert_has_no_speed_and_its_cause() -> None:
    analysis = analyse(STUDY, a_run(STUDY), RECORDS)
    [found] = [one for one in analysis.variants if one.name == INERT]
    assert found.outcomes == {Outcome.INERT: 1} and found.effect is None
    assert analysis.answer.inert == (INERT,)
    [exhibit] = [one for one in analysis.museum if one.variant == INERT]
    assert exhibit.cause.startswith("12,431 functions") and exhibit.verdict == "inert"
    assert analysis.trials_planned == len(RECORDS)
