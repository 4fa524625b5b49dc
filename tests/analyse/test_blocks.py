"""The trials of a block: several baselines count as their mean."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.blocks import mean_of, mixed_resets
from dbdyno.analyse.columns import OfRecords
from dbdyno.analyse.model import Ratio, Role, Verdict
from dbdyno.findings import analyse
from dbdyno.findings.gap import explain_gap
from dbdyno.frozen import Level
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.study import Design
from dbdyno.study.designs import variants_of
from tests.analyse.factory import a_run, a_study, counted, ended, records_of
from tests.analyse.frontier_cases import found as frontier_found

LEVELS = {"config.page_cache": ["2k", "4k", "8k", "64k"]}
FASTER = "config.page_cache=64k"


def analysed(baselines: int, blocks: int = 12, **changed: object) -> Analysis:
    study = a_study(LEVELS, blocks=blocks).but(baselines=baselines)
    records = records_of(study, {FASTER: 1.1}, trial_sd=0.02, **changed)  # type: ignore[arg-type]
    return analyse(study, a_run(study), records)


def effect_sd(found: Analysis) -> float:
    return float(np.mean([one.effect.log_sd for one in found.candidates if one.effect and one.effect.log_sd]))


def test_more_baselines_take_noise_out_of_every_comparison() -> None:
    one, three = (effect_sd(analysed(count, blocks=150)) for count in (1, 3))
    assert three / one == pytest.approx(math.sqrt((1 + 1 / 3) / 2), rel=0.1)


def test_further_baselines_are_no_candidates_and_check_the_instrument() -> None:
    found = analysed(3)
    assert [one.name for one in found.variants if one.role is Role.TWIN] == ["baseline-2", "baseline-3"]
    assert found.method.comparisons == 3
    assert found.aa is not None and found.aa.pairs == 24
    [faster] = found.answer.faster
    assert faster == FASTER


def test_a_block_has_a_pair_while_any_of_its_baselines_has_a_speed() -> None:
    failed = ended(Outcome.FAILED, "the server did not start")
    found = analysed(2, changes={"baseline": lambda record: record if record.block else failed(record)})
    assert all(one.effect is not None and one.effect.pairs == 12 for one in found.candidates)


def test_a_broken_baseline_breaks_them_all() -> None:
    broken = ended(Outcome.BROKEN, "balances differ")
    found = analysed(2, changes={"baseline-2": broken})
    assert {one.verdict for one in found.candidates} == {Verdict.INCONCLUSIVE}
    assert found.answer.baseline_broken


def test_a_metric_is_read_of_each_record_once_however_many_are_compared_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metric, read = metrics.find("p99_ms"), list[int]()

    def noted(record: Record) -> float | None:
        read.append(record.trial)
        return metric.read(record)

    monkeypatch.setitem(metrics.METRICS, metric.name, replace(metric, read=noted))
    found = analysed(3)
    assert len(found.trials) == 72
    assert sorted(read) == [trial.record.trial for trial in found.trials]


def four_times_as_fast(record: Record) -> Record:
    assert record.tally is not None
    return counted(record, operations=4 * record.tally.operations)


def ratio(found: Ratio | None) -> float:
    assert found is not None
    return found.ratio


@pytest.mark.parametrize(
    ("design", "factors"), [(Design.FACTORIAL, 2), (Design.FRACTIONAL, 5)], ids=["all variants", "a fraction"]
)
def test_what_factors_do_is_told_from_all_baselines(design: Design, factors: int) -> None:
    levels = {f"config.{letter}": ["slow", "fast"] for letter in "abcde"[:factors]}
    study = a_study(levels, design=design).but(baselines=2)
    slow, fast = (
        next(one for one in variants_of(study) if set(one.levels.values()) == {level})
        for level in ("slow", "fast")
    )
    alike, apart = (
        records_of(study, changes=changes, block_sd=0.0, trial_sd=0.0)
        for changes in ({}, {"baseline-2": four_times_as_fast})
    )
    # The mean of the two baselines is twice the first.
    for records, share in ((alike, 1.0), (apart, 0.5)):
        found = analyse(study, a_run(study), records)
        assert found.gap is not None
        assert ratio(found.gap.total) == pytest.approx(share, rel=1e-3)
        assert ratio(explain_gap(study, a_run(study), records, slow, fast).total) == pytest.approx(
            share, rel=1e-3
        )
        if found.factorial is not None:
            # Each main effect is the mean over both levels of the other factor; one of them has the baseline.
            assert [ratio(one.effect) for one in found.factorial.main] == pytest.approx(
                [share**0.5] * 2, rel=1e-3
            )


def test_the_frontier_is_told_from_all_baselines() -> None:
    plain, faster = (
        frontier_found(
            change=lambda record, times=times: counted_as(record, times),
            baselines=2,
            design=Design.ONE_AT_A_TIME,
        )
        for times in (1, 4)
    )
    assert plain is not None and faster is not None
    [before], [after] = plain.curves, faster.curves
    gained = [
        new.queries_per_s.mean / old.queries_per_s.mean
        for old, new in zip(before.points, after.points, strict=True)
    ]
    # The baseline has the least effort, and comes first.
    assert gained == pytest.approx([2.0, 1.0, 1.0, 1.0])


def counted_as(record: Record, times: int) -> Record:
    """The second baseline with so many times as many searches."""
    if record.variant != "baseline-2":
        return record
    assert record.tally is not None
    kinds = {
        name: kind.but(throughput_per_s=times * kind.throughput_per_s)
        for name, kind in record.tally.by_transaction.items()
    }
    return counted(record, by_transaction=kinds)


def test_a_mean_is_geometric_where_it_can_be() -> None:
    assert mean_of([1.0, 4.0]) == pytest.approx(2.0)
    assert mean_of([0.0, 4.0]) == pytest.approx(2.0)


def came_by(record: Record, way: str) -> Record:
    reset: dict[str, Level] = {"way": way, "seconds": 0.1}
    return record.but(reset=reset)


def test_one_copy_among_reflinks_is_told() -> None:
    study = a_study()
    records = [came_by(record, "reflink") for record in records_of(study)]
    assert mixed_resets(OfRecords(records)) == {}
    records[3] = came_by(records[3], "copy")
    assert mixed_resets(OfRecords(records)) == {records[3].trial: "by copy, where most came by reflink"}
    analysis = analyse(study, a_run(study), records)
    warned = [trial.record.trial for trial in analysis.trials if Doubt.MIXED_RESETS in trial.warnings]
    assert warned == [records[3].trial]


def test_other_storage_may_come_by_another_way() -> None:
    study = a_study({"storage.filesystem": ["host", "xfs"], "config.a": [1, 2]}, Design.FACTORIAL)
    ways = {"host": "copy", "xfs": "image copy"}
    records = [came_by(one, ways[str(one.levels["storage.filesystem"])]) for one in records_of(study)]
    assert mixed_resets(OfRecords(records)) == {}
