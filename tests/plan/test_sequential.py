"""A run that stops by itself: what is decided is left out, and the run ends when nothing is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dbdyno.analyse.model import Verdict
from dbdyno.findings import analyse
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.plan.sequential import SequentialMemory, ask, decided
from dbdyno.records import metrics
from dbdyno.records.metrics import Metric
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.report.words.verdicts import settled
from dbdyno.study import Goal, Guard, Study
from tests.analyse.builds import builds
from tests.analyse.factory import a_run, a_study, ended, every_verdict, records_of


def a_sequential(ratios: dict[str, float], blocks: int = 8) -> tuple[Study, Run, list[Record]]:
    study = a_study({"config.cache": ["16M", "64M", "4G"]}, blocks=blocks)
    run = a_run(study).but(sequential=True, mirrored=True)
    return study, run, records_of(study, ratios, trial_sd=0.02, order=Order.of(run))


def test_the_clear_ones_are_decided_and_the_doubtful_one_is_not() -> None:
    study, run, records = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    assert decided(study, run, records).keys() == {"config.cache=4G"}
    verdicts = {variant.name: variant.verdict for variant in analyse(study, run, records).variants}
    assert verdicts["config.cache=64M"] is Verdict.INCONCLUSIVE


GUARDS = (Guard(text="p99_ms <= 0.83x", metric="p99_ms", bound=0.83, relative=True),)
"""A variant that is 1.2 times as fast lies near it, so that its speed is decided before its guard."""


def studies() -> Iterator[tuple[Study, list[Record]]]:
    """Studies with every verdict, with guards, with several baselines, and with builds beside placebos."""
    yield every_verdict()
    yield builds({"build.layout=2": 0.95})
    for baselines in (1, 3):
        study = a_study({"config.cache": ["16M", "64M", "4G"]}, blocks=16, goal=Goal(guards=GUARDS))
        study = study.but(baselines=baselines)
        ratios = {"config.cache=64M": 1.2, "config.cache=4G": 0.8}
        yield study, records_of(study, ratios, {"config.cache=4G": in_the_first_block}, trial_sd=0.02)


def in_the_first_block(record: Record) -> Record:
    return record if record.block else ended(Outcome.FAILED, "the server died")(record)


@pytest.mark.parametrize(("sequential", "looks_planned"), [(True, True), (True, False), (False, False)])
def test_what_is_decided_is_what_the_whole_analysis_calls_so(sequential: bool, looks_planned: bool) -> None:
    seen = set[frozenset[str]]()
    for study, records in studies():
        run = a_run(study).but(sequential=sequential, looks_planned=looks_planned)
        for blocks in range(1, 1 + max(record.block for record in records)):
            some = [record for record in records if record.block < blocks]
            found = frozenset(decided(study, run, some))
            assert found == {one.name for one in analyse(study, run, some).candidates if one.decided}
            seen.add(found)
    assert len(seen) > 4


def test_each_look_after_others_says_what_a_first_one_would() -> None:
    for study, records in studies():
        run, memory = a_run(study).but(sequential=True), SequentialMemory()
        blocks = range(1, 2 + max(record.block for record in records))
        looks = [[record for record in records if record.block < count] for count in blocks]
        # A record that takes the place of an earlier one, and a look that goes back.
        looks += [
            [*records, records[0].but(finished_unix_s=2e9, outcome=Outcome.BROKEN)],
            looks[2],
            looks[-1],
        ]
        for some in looks:
            assert decided(study, run, some, memory) == decided(study, run, some)


def test_a_look_reads_no_record_of_the_looks_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    study, run, records = a_sequential({"config.cache=4G": 1.1}, blocks=12)
    metric, read = metrics.find(study.goal.response), list[int]()

    def reading(record: Record) -> float | None:
        read.append(record.block)
        return metric.read(record)

    monkeypatch.setitem(metrics.METRICS, metric.name, replace(metric, read=reading))
    memory = SequentialMemory()
    for blocks in range(1, 13):
        read.clear()
        decided(study, run, [record for record in records if record.block < blocks], memory)
        assert set(read) <= {blocks - 1}
    assert read


def test_to_tell_what_is_decided_no_metric_is_read_that_no_verdict_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = set[str]()

    def noted(metric: Metric) -> Metric:
        def reading(record: Record) -> float | None:
            read.add(metric.name)
            return metric.read(record)

        return replace(metric, read=reading)

    for name, metric in metrics.METRICS.items():
        monkeypatch.setitem(metrics.METRICS, name, noted(metric))
    *_, (study, records) = studies()
    assert decided(study, a_run(study).but(sequential=True), records)
    # A variant that fails more is never faster.
    assert read == {"throughput", "p99_ms", "failed_share"}


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


def test_each_verdict_is_told_once_when_it_stands() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    run = run.but(given_up={"config.cache=4G": ("durability",)})
    told: list[str] = []
    memory = SequentialMemory(tell=lambda result, blocks: told.append(settled(result, blocks)))
    for blocks in range(1, 1 + study.blocks):
        ask(study, run, [record for record in possible if record.block < blocks], memory)
    (line,) = told
    pattern = r"after [246] blocks: config.cache=4G ▲ faster, gives up durability, .* times the baseline"
    assert re.fullmatch(pattern, line)


def test_the_run_ends_when_all_are_decided() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 4.0, "config.cache=4G": 5.0})
    records = carried_out(study, run, possible)
    assert max(record.block for record in records) < study.blocks - 1
    assert decided(study, run, records).keys() == {"config.cache=64M", "config.cache=4G"}


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
    run = run.but(mirrored=mirrored)
    before = [record for record in possible if record.block < 9]
    assert decided(study, run, before).keys() == {"config.cache=4G"}
    both = {"baseline", "config.cache=64M"}
    expected = both | {"config.cache=4G"} if mirrored else both
    assert {trial.variant.name for trial in ask(study, run, before)} == expected


def test_the_variants_that_are_left_keep_to_the_mirror() -> None:
    study, run, possible = a_sequential({"config.cache=64M": 1.03, "config.cache=4G": 5.0})
    records = carried_out(study, run, possible)
    blocks = [[record.variant for record in records if record.block == block] for block in range(8)]
    assert blocks[1::2] == [block[::-1] for block in blocks[::2]]
    assert len(blocks[0]) == 3 and len(blocks[7]) == 2
