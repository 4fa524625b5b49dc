"""The report of a capacity: a row for each variant, the figure of all, and what a price makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse, as_json
from dbdyno.findings.capacity import sections
from dbdyno.plan.capacity import tried_rate
from dbdyno.records.capacity import Capacity
from dbdyno.records.record import PhaseRecord, Record
from dbdyno.report.document import Figure
from dbdyno.report.renderers import html
from dbdyno.study import Goal
from dbdyno.study.values import promise
from tests.analyse.factory import a_run, a_study, records_of
from tests.fakes import make_tally
from tests.report.forms import as_markdown

GOAL = Goal(response="capacity", promise=promise("p99_ms <= 20"))
FASTER = "config.page_cache=64k"


def searched(record: Record) -> Record:
    """The record with a search that ended at a quarter of its throughput."""
    assert record.tally is not None
    per_s = record.tally.throughput_per_s / 4.0
    latency = make_tally().latency_us.model_dump()
    steps = list[PhaseRecord]()
    for share in (0.3, 0.5, 0.7, 0.85, 0.97, 1.05, 1.2, 1.6):
        slow = share > 1.0
        tally = make_tally(
            operations=20_000,
            latency_us={**latency, "count": 20_000, "p99": 90_000.0 * share if slow else 3_000.0},
        )
        tried = tried_rate(per_s * share, tally, GOAL.promise)
        steps.append(PhaseRecord(name=f"rate {len(steps) + 1}", tally=tally, tried=tried))
    found = Capacity(per_s=per_s, at_least=record.block == 5, why="all rates kept the promise")
    return record.but(phases=(*record.phases, *steps), capacity=found)


def found(price_per_hour: float | None = None) -> Analysis:
    study = a_study(goal=GOAL).but(price_per_hour=price_per_hour)
    changes = {"baseline": searched, FASTER: searched}
    return analyse(study, a_run(study), records_of(study, {FASTER: 2.0}, changes))


def test_each_variant_has_its_capacity_with_an_interval_and_what_broke_the_promise() -> None:
    told = found().capacities
    assert told is not None
    baseline, faster = told.variants
    assert faster.per_s / baseline.per_s == pytest.approx(2.0, rel=0.05)
    assert baseline.low < baseline.per_s < baseline.high
    assert (baseline.blocks, baseline.at_least) == (6, 1)
    assert baseline.broke == {"p99_ms": 18}
    assert baseline.per_money is None
    assert baseline.took_s > 0.0


def test_a_price_says_how_many_transactions_it_buys() -> None:
    told = found(price_per_hour=0.5).capacities
    assert told is not None
    assert told.variants[0].per_money == pytest.approx(told.variants[0].per_s * 7200.0)
    assert "transactions per unit of money" in as_markdown(found(0.5))
    assert "of money" not in as_markdown(found())


def test_the_report_says_it_in_words_and_in_json() -> None:
    page = as_markdown(found())
    assert "## Capacity" in page
    assert "baseline keeps that up to at least 1," in page
    assert "none is hidden by a client that waits" in page
    document = json.loads(as_json.render(found()))
    assert [one["variant"] for one in document["capacities"]["variants"]] == ["baseline", FASTER]
    assert document["trials"][0]["metrics"]["capacity"] == document["trials"][0]["capacity"]["per_s"]


def test_the_figure_has_all_variants_in_a_frame_for_each_percentile() -> None:
    [section] = sections(found())
    [figure] = [one for one in section.body if isinstance(one, Figure)]
    spec: Any = html.drawn(figure)
    frames = spec["vconcat"]
    assert [frame["title"] for frame in frames] == ["median", "99th percentile", "99.9th percentile"]
    shown = json.dumps(spec)
    assert "baseline" in shown
    assert FASTER in shown


def test_a_study_without_a_promise_has_none() -> None:
    study = a_study()
    assert analyse(study, a_run(study), records_of(study)).capacities is None


def test_what_a_trial_took_is_read_from_a_step_that_kept_the_promise() -> None:
    told = found()
    for trial in told.trials:
        phase = trial.record.measured_phase
        assert phase is not None and phase.tried is not None and phase.tried.kept
        assert phase is not trial.record.phases[-1], "the last one was an overload"
