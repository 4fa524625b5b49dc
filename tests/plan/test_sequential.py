"""A run that stops by itself: what is decided is left out, and the run ends when nothing is left."""

from __future__ import annotations

import pytest

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Verdict
from dbdyno.plan.blocks import make_plan
from dbdyno.plan.sequential import ask, decided
from dbdyno.records.record import Record, Run
from dbdyno.study import Study
from tests.analyse.factory import a_run, a_study, records_of


def a_sequential(ratios: dict[str, float], blocks: int = 8) -> tuple[Study, Run, list[Record]]:
    study = a_study({"config.cache": ["16M", "64M", "4G"]}, blocks=blocks)
    run = a_run(study).model_copy(update={"sequential": True})
    return study, run, records_of(study, ratios, trial_sd=0.02)


def test_the_clear_ones_are_decided_and_the_doubtful_one_is_not() -> None:
    study, run, records = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    assert decided(study, run, records) == {"config.cache=4G"}
    verdicts = {variant.name: variant.verdict for variant in analyse(study, run, records).variants}
    assert verdicts["config.cache=64M"] is Verdict.INCONCLUSIVE


def carried_out(study: Study, run: Run, possible: list[Record], stop: int = 10**6) -> list[Record]:
    """The records that a run comes to, one trial after the other, cut short after so many."""
    by_trial = {record.trial: record for record in possible}
    records: list[Record] = []
    while len(records) < stop and (trials := ask(study, run, records)):
        records += [by_trial[trial.index] for trial in trials[: stop - len(records)]]
    return records


def test_a_decided_variant_has_no_further_trial() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    records = carried_out(study, run, possible)
    blocks = {name: [r.block for r in records if r.variant == name] for name in {r.variant for r in records}}
    assert len(blocks["config.cache=4G"]) < study.blocks
    assert blocks["config.cache=64M"] == blocks["baseline"] == list(range(study.blocks))


def test_the_run_ends_when_all_are_decided() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 4.0, "config.cache=4G": 5.0})
    records = carried_out(study, run, possible)
    assert max(record.block for record in records) < study.blocks - 1
    assert decided(study, run, records) == {"config.cache=64M", "config.cache=4G"}


@pytest.mark.parametrize("cut", range(0, 24, 5))
def test_a_run_that_was_cut_short_comes_to_the_same(cut: int) -> None:
    study, run, possible = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    whole = carried_out(study, run, possible)
    kept = carried_out(study, run, possible, stop=cut)
    by_trial = {trial.index: trial for trial in make_plan(study).trials}
    while trials := ask(study, run, kept):
        assert [by_trial[trial.index] for trial in trials] == list(trials)
        kept += [record for record in possible if record.trial in {trial.index for trial in trials}]
    assert kept == whole
