"""Variants over the hosts of a fleet, and on each of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse.found import OnHosts, RatioPosition
from dbdyno.analyse.model import Analysis, Verdict
from dbdyno.findings import analyse
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Goal, Study
from tests.analyse.factory import a_run, records_of
from tests.analyse.hosts_cases import AT_64K, AT_256K, FLEET, drawn, faster, on_fleet, study_of
from tests.analyse.noises import false_alarms_of_hosts
from tests.report.cases import fleet


def analysed(study: Study, records: list[Record]) -> Analysis:
    return analyse(study, a_run(study), records)


def on_hosts(analysis: Analysis, variant: str) -> OnHosts:
    assert analysis.hosts is not None
    return next(one for one in analysis.hosts.variants if one.variant == variant)


def logs_by_host(records: list[Record], variant: str) -> dict[str, list[float]]:
    """Log ratios of a variant to the baseline, read from the records by hand."""
    read = metrics.find("throughput").read
    found: dict[str, dict[int, dict[str, float]]] = {}
    for record in records:
        value = read(record)
        assert value is not None
        found.setdefault(record.fleet_host, {}).setdefault(record.block, {})[record.variant] = value
    return {
        host: [math.log(values[variant] / values["baseline"]) for values in blocks.values()]
        for host, blocks in found.items()
    }


def test_the_interval_of_a_variant_is_over_the_means_of_hosts() -> None:
    study = study_of(FLEET)
    records = on_fleet(study, {AT_64K: (1.5, 1.3, 1.4), AT_256K: (1.1, 1.0, 0.9)})
    analysis = analysed(study, records)
    effect = next(one.effect for one in analysis.variants if one.name == AT_64K)
    assert effect is not None and effect.hosts == 3 and effect.pairs == 24
    means = [float(np.mean(logs)) for logs in logs_by_host(records, AT_64K).values()]
    low, high = stats.t.interval(analysis.method.confidence_each, 2, np.mean(means), stats.sem(means))
    assert effect.low is not None and effect.high is not None
    found = [math.log(one) for one in (effect.ratio, effect.low, effect.high)]
    assert found == pytest.approx([np.mean(means), low, high])


def test_each_host_has_its_own_interval_and_all_hold_together() -> None:
    study = study_of(FLEET)
    records = on_fleet(study, {AT_64K: (1.5, 1.3, 0.8)})
    analysis = analysed(study, records)
    found = on_hosts(analysis, AT_64K)
    assert analysis.hosts is not None
    assert analysis.hosts.confidence_each == pytest.approx(analysis.method.confidence_each ** (1 / 3))
    by_host = logs_by_host(records, AT_64K)
    for one in found.each:
        logs = by_host[one.host]
        interval = stats.t.interval(
            analysis.hosts.confidence_each, len(logs) - 1, np.mean(logs), stats.sem(logs)
        )
        assert one.low is not None and one.high is not None
        assert [math.log(one.low), math.log(one.high)] == pytest.approx(list(interval))
    assert [one.told for one in found.each] == [RatioPosition.ABOVE, RatioPosition.ABOVE, RatioPosition.BELOW]


def test_a_winner_that_loses_on_a_host_is_said_so() -> None:
    analysis = fleet()
    winner = next(one for one in analysis.variants if one.name == AT_64K)
    assert winner.verdict is Verdict.FASTER
    assert on_hosts(analysis, AT_64K).contrary == ("fir",)


def test_hosts_that_differ_widen_the_interval_and_what_a_further_host_would_show() -> None:
    study = study_of(FLEET)
    alike, apart = (
        on_hosts(analysed(study, on_fleet(study, {AT_64K: ratios})), AT_64K)
        for ratios in ((1.2, 1.2, 1.2), (1.0, 1.2, 1.4))
    )
    assert alike.between_log_sd is not None and apart.between_log_sd is not None
    assert alike.between_log_sd < 0.02 < 0.1 < apart.between_log_sd < 0.25
    for one in (alike, apart):
        assert one.further_low is not None and one.further_high is not None
    assert apart.further_high / apart.further_low > alike.further_high / alike.further_low  # type: ignore[operator]


def test_two_hosts_give_no_interval_over_hosts() -> None:
    hosts = FLEET[:2]
    study = study_of(hosts)
    records = on_fleet(study, {AT_64K: (1.5, 1.3)}, hosts)
    analysis = analysed(study, records)
    effect = next(one.effect for one in analysis.variants if one.name == AT_64K)
    assert effect is not None and effect.hosts is None and effect.pairs == 16
    assert analysis.hosts is not None and not analysis.hosts.over_hosts
    assert on_hosts(analysis, AT_64K).further_low is None


def test_a_run_of_one_host_knows_nothing_of_hosts() -> None:
    study = study_of(FLEET)
    of_one = [one.but(fleet_host=FLEET[0]) for one in records_of(study)]
    assert analysed(study, of_one).hosts is None and analysed(study, of_one).floor is not None
    analysis = analysed(study, records_of(study))
    assert analysis.hosts is None
    assert all(one.effect is None or one.effect.hosts is None for one in analysis.variants)


def test_no_more_blocks_are_promised_where_hosts_differ() -> None:
    study = study_of(FLEET)
    analysis = analysed(study, on_fleet(study, {AT_64K: (0.7, 1.0, 1.6)}))
    found = next(one for one in analysis.variants if one.name == AT_64K)
    assert found.verdict is Verdict.INCONCLUSIVE and found.blocks_more is None


def test_a_verdict_must_outlive_the_blocks_that_failures_took() -> None:
    """Over hosts a lost block counts as a host, the worst of all."""
    study = study_of(FLEET)
    records = on_fleet(study, {AT_64K: (1.2, 1.22, 1.18)})
    whole = next(one for one in analysed(study, records).variants if one.name == AT_64K)
    assert whole.verdict is Verdict.FASTER
    lost = next(index for index, one in enumerate(records) if one.variant == AT_64K)
    records[lost] = records[lost].but(outcome=Outcome.FAILED, phases=(), cause="it fell")
    found = next(one for one in analysed(study, records).variants if one.name == AT_64K)
    assert found.verdict in (Verdict.FASTER, Verdict.INCONCLUSIVE) and found.dropped


@pytest.mark.parametrize(("hosts", "least", "most"), [(2, 0.2, 0.6), (4, 0.02, 0.09)])
def test_luck_of_hosts_is_in_the_interval_over_hosts_alone(hosts: int, least: float, most: float) -> None:
    """Of two hosts nothing can be told of others, and the report says so."""
    called = false_alarms_of_hosts(np.random.default_rng(20), hosts, blocks=8, luck=1.0, runs=400)
    assert least <= called / 400 <= most


@pytest.mark.parametrize("hosts", [3, 5])
def test_equal_variants_are_seldom_told_apart_where_hosts_favour_them(hosts: int) -> None:
    """Over blocks alone such hosts make an equal variant look different in most runs."""
    names = [f"host-{index}" for index in range(hosts)]
    study = study_of(names, blocks=6, goal=Goal(margin=0.0))
    runs, called = 120, 0
    blocks = records_of(study, seed=7)
    for run in range(runs):
        ratios = drawn(hosts, 0.1, run)
        records = [
            faster(one, ratios[one.block // 2 % hosts] if one.variant == AT_64K else 1.0).but(
                fleet_host=names[one.block // 2 % hosts]
            )
            for one in blocks
            if one.variant in ("baseline", AT_64K)
        ]
        effect = next(one.effect for one in analysed(study, records).variants if one.name == AT_64K)
        assert effect is not None and effect.low is not None and effect.high is not None
        called += not effect.low <= 1.0 <= effect.high
    assert stats.binomtest(called, runs, 0.05, alternative="greater").pvalue > 0.001
