"""Reports of records that lack what a host, an engine or an older version did not tell."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.compare import compare
from dbdyno.findings import analyse, as_json
from dbdyno.findings import compare as compare_report
from dbdyno.records.record import Counted, Outcome, Record
from tests.analyse.factory import a_run, changed, counted
from tests.report.cases import CASES
from tests.report.forms import as_markdown, as_page, on_terminal, print_report
from tests.report.shown import printed

TOTALS = {
    "cycles": 2.0e9, "instructions": 3.0e9, "cache_misses": 1.0e6, "stalled_cycles_frontend": 1.0e8,
    "dtlb_load_misses": 1.0e5, "throttled_s": 0.1, "outer_throttled_s": 0.1, "other_cpu_s": 0.2,
    "beside_cpu_s": 0.1, "driver_run_queue_wait_s": 0.1,
}  # fmt: skip
"""What a host with counters tells beside what the factory's records hold."""

COUNTED = Counted(operations=1000, per_op={"Ir": 44_000.0}, repeats=(44_000.0, 44_001.0, 43_999.0))

Loss = Callable[[Record, random.Random], Record]


def without_some_totals(record: Record, draw: random.Random) -> Record:
    assert record.observation is not None
    there = record.observation.totals | TOTALS
    totals = {name: value for name, value in there.items() if draw.random() < 0.5}
    view = {"commits per operation": 1.0, "waits, us/op": 2.0}
    kept = {name: value for name, value in view.items() if draw.random() < 0.5}
    update = {"totals": totals, "missing": {}, "engine_view": kept}
    return changed(record, observation=record.observation.model_copy(update=update))


def without_observation(record: Record, draw: random.Random) -> Record:
    return changed(record, observation=None) if draw.random() < 0.5 else record


def without_what_a_tally_may_lack(record: Record, draw: random.Random) -> Record:
    given = {"engine_cpu_s": 3.0, "system_calls_per_op": 1.5, "gather": "off", "driver_run_wait_share": [0.1]}
    told = {name: value for name, value in given.items() if draw.random() < 0.5}
    return counted(record, **told, **({"series": []} if draw.random() < 0.5 else {}))


def without_a_tally(record: Record, draw: random.Random) -> Record:
    if draw.random() < 0.7:
        return record
    return changed(record, tally=None, observation=None, counted=COUNTED)


def without_stages(record: Record, draw: random.Random) -> Record:
    stages = {name: seconds for name, seconds in record.stages_s.items() if draw.random() < 0.5}
    reset = {} if draw.random() < 0.5 else dict(record.reset)
    return record.model_copy(update={"stages_s": stages, "reset": reset, "evidence": (), "host": ""})


LOSSES: tuple[Loss, ...] = (
    without_some_totals,
    without_what_a_tally_may_lack,
    without_stages,
    without_observation,
    without_a_tally,
)


def lacking(analysis: Analysis, losses: tuple[Loss, ...], seed: int) -> Analysis:
    """The analysis of the same records, each of which lost something by chance."""
    draw = random.Random(seed)
    records = []
    for trial in analysis.trials:
        record = trial.record
        for lose in losses:
            if record.outcome is Outcome.MEASURED and record.observation is not None:
                record = lose(record, draw)
        records.append(record)
    return analyse(analysis.study, a_run(analysis.study), records)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("case", ["two_factors", "guards", "all_verdicts"])
def test_every_form_is_drawn_from_records_that_lack_something(case: str, loss: Loss) -> None:
    analysis = lacking(CASES[case](), (loss,), seed=1)
    for width in (40, 100):
        shown = on_terminal(lambda console: print_report(analysis, console, details=True), width)
        assert shown.startswith(analysis.study.title[:10])
    assert "<main>" in as_page(analysis)
    assert as_markdown(analysis).startswith("# ")
    assert as_json.render(analysis).endswith("}\n")


@pytest.mark.parametrize("seed", range(6))
def test_losses_come_together(seed: int) -> None:
    analysis = lacking(CASES["two_factors"](), LOSSES, seed)
    assert on_terminal(lambda console: print_report(analysis, console, details=True))
    assert as_markdown(analysis).startswith("# ")
    found = compare([analysis], [lacking(CASES["two_factors"](), LOSSES, seed + 100)])
    assert printed(compare_report.document(found))


def test_a_split_names_what_no_clock_saw() -> None:
    """One variant lacks the driver's wait: the columns are those that any variant has."""
    analysis = lacking(CASES["two_factors"](), (without_some_totals,), seed=3)
    rows = [split.missing for split in analysis.splits]
    assert any(rows) and len({tuple(missing) for missing in rows}) > 1
