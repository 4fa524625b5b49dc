"""A run that stops by itself: what is decided is left out, and the run ends when nothing is left."""

from __future__ import annotations

import pytest

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Verdict
from dbdyno.plan.blocks import make_plan
from dbdyno.plan.order import Order
from dbdyno.plan.sequential import ask, decided
from dbdyno.records.record import Record, Run
from dbdyno.study import Study
from tests.analyse.factory import a_run, a_study, records_of


def a_sequential(ratios: dict[str, float], blocks: int = 8) -> tuple[Study, Run, list[Record]]:
    study = a_study({"config.cache": ["16M", "64M", "4G"]}, blocks=blocks)
    run = a_run(study).model_copy(update={"sequential": True, "mirrored": True})
    return study, run, records_of(study, ratios, trial_sd=0.02, order=Order.of(run))


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
    by_trial = {trial.index: trial for trial in make_plan(study, Order.of(run)).trials}
    while trials := ask(study, run, kept):
        assert [by_trial[trial.index] for trial in trials] == list(trials)
        kept += [record for record in possible if record.trial in {trial.index for trial in trials}]
    assert kept == whole


@pytest.mark.parametrize("mirrored", [True, False])
def test_both_blocks_of_a_pair_hold_the_same_variants(mirrored: bool) -> None:
    """Half of a pair would favour whoever came first. A run that knows no mirror decides after each block."""
    ratios = {"config.cache=64M": 1.06, "config.cache=4G": 1.06}
    study, run, possible = a_sequential(ratios, blocks=14)
    run = run.model_copy(update={"mirrored": mirrored})
    before = [record for record in possible if record.block < 9]
    assert decided(study, run, before) == {"config.cache=4G"}
    both = {"baseline", "config.cache=64M"}
    expected = both | {"config.cache=4G"} if mirrored else both
    assert {trial.variant.name for trial in ask(study, run, before)} == expected


def test_the_variants_that_are_left_keep_to_the_mirror() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    records = carried_out(study, run, possible)
    blocks = [[record.variant for record in records if record.block == block] for block in range(8)]
    assert blocks[1::2] == [block[::-1] for block in blocks[::2]]
    assert len(blocks[0]) == 3 and len(blocks[7]) == 2
