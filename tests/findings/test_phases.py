"""Phases of a load: each has a figure and a verdict of its own, in one family of comparisons."""

from __future__ import annotations

import json

import pytest

from dbdyno.analyse.found import RatioPosition
from dbdyno.analyse.model import Analysis, Verdict
from dbdyno.analyse.phases import PhasesCompared
from dbdyno.findings import analyse, as_json
from dbdyno.findings.phases import verdict_of
from dbdyno.records import metrics
from dbdyno.records.record import Guested, Record
from dbdyno.study.phases import LoadPhase
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.forms import as_markdown, on_terminal, print_report

FASTER = "config.page_cache=64k"
PHASES = (
    LoadPhase(name="load", file="load.toml", operations=10),
    LoadPhase(name="read", beside="writes.toml", beside_rate_per_s=100.0),
)


def in_phases(record: Record, beside_share: float = 1.0) -> Record:
    """The record with its load as the second phase; in the first, all variants are as fast as blocks are."""
    phase = record.phases[0]
    assert phase.tally is not None
    alike = 1_000.0 * (1.0 + 0.02 * record.block)
    first = phase.but(name="load", tally=phase.tally.but(throughput_per_s=alike))
    done = round(100.0 * beside_share * phase.tally.duration_s)
    guest = Guested(name="writes.toml", clients=1, rounds=1, operations=done)
    return record.but(phases=(first, phase.but(name="read", guests=(guest,))))


def analysis(beside_share: float = 1.0) -> Analysis:
    study = a_study().but(phases=PHASES)
    changes = dict.fromkeys(("baseline", FASTER), lambda record: in_phases(record, beside_share))
    return analyse(study, a_run(study), records_of(study, {FASTER: 2.0}, changes))


def compared(found: Analysis) -> PhasesCompared:
    assert found.phases is not None
    return found.phases


def test_each_phase_has_a_verdict_of_its_own() -> None:
    found = compared(analysis())
    assert [(one.phase, one.variant) for one in found.phases] == [
        ("load", "baseline"),
        ("load", FASTER),
        ("read", "baseline"),
        ("read", FASTER),
    ]
    assert found.comparisons == 2 and found.behind == ()
    _, load, baseline, read = found.phases
    assert load.ratio == pytest.approx(1.0) and load.position is RatioPosition.LEVEL
    assert read.ratio == pytest.approx(2.0, rel=0.05)
    assert read.position is RatioPosition.ABOVE and read.value > 1.9 * baseline.value
    assert baseline.ratio is None and baseline.blocks == 6


def test_a_rate_beside_a_phase_that_was_not_kept_is_told() -> None:
    [first, *_] = compared(analysis(beside_share=0.5)).behind
    assert first == "baseline, read: of 100 transactions per second beside it 50.00 were done in some trial"


def test_the_report_says_it_in_words_and_in_json() -> None:
    found = analysis()
    page = as_markdown(found)
    assert "## Phases" in page
    assert "All other figures of this page are of the last phase, read." in page
    document = json.loads(as_json.render(found))
    assert [one["phase"] for one in document["phases"]["phases"]] == ["load", "load", "read", "read"]


def test_a_screen_has_a_row_for_each_phase() -> None:
    shown = on_terminal(lambda console: print_report(analysis(), console))
    assert "The answer is of the last phase, read" in shown
    assert shown.count("load") >= 2


def test_what_is_better_follows_from_the_metric() -> None:
    throughput, latency = metrics.find("throughput"), metrics.find("p99_ms")
    assert verdict_of(RatioPosition.ABOVE, throughput) is Verdict.FASTER
    assert verdict_of(RatioPosition.ABOVE, latency) is Verdict.SLOWER
    assert verdict_of(RatioPosition.BELOW, latency) is Verdict.FASTER
    assert verdict_of(RatioPosition.LEVEL, latency) is Verdict.NO_EFFECT
    assert verdict_of(RatioPosition.OPEN, latency) is verdict_of(None, latency) is Verdict.INCONCLUSIVE
