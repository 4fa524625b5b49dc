"""Records of every format that was ever written stay readable, and say what they said.

`format-1.json` is a real run of two blocks on MariaDB 11.8.6, its counters thinned out, and a blocked trial;
`format-2.json` is the same as format 2 has it, with its phases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.analyse.model import Reason, Verdict
from dbdyno.findings import analyse
from dbdyno.records import metrics
from dbdyno.records.record import FORMAT, Outcome, Record
from dbdyno.records.run import Run, run_of_document
from tests.analyse.factory import a_study

HERE = Path(__file__).parent


def golden(format_number: int) -> tuple[Run, list[Record]]:
    document: dict[str, Any] = json.loads((HERE / f"format-{format_number}.json").read_text(encoding="utf-8"))
    return run_of_document(json.dumps(document["run"])), [
        Record.model_validate(each) for each in document["records"]
    ]


@pytest.mark.parametrize("format_number", range(1, FORMAT + 1))
def test_every_format_is_still_read(format_number: int) -> None:
    run, records = golden(format_number)
    assert run.format <= FORMAT
    assert records and all(record.run == run.run for record in records)


def test_format_1_reads_as_format_2() -> None:
    assert golden(1)[1] == golden(2)[1]


@pytest.mark.parametrize("format_number", [1, 2])
def test_every_format_says_what_it_said(format_number: int) -> None:
    run, records = golden(format_number)
    study = a_study(
        {"config.innodb_buffer_pool_size": ["128M", "16M"], "config.innodb_flush_log_at_trx_commit": [1, 2]},
        blocks=2,
    )
    analysis = analyse(study, run, records)
    assert len(analysis.trials) == 6, "the blocked trial is of a variant that this study has not"
    baseline = analysis.baseline
    assert baseline.response is not None and baseline.response.mean == pytest.approx(950.5, abs=0.1)
    pool = next(variant for variant in analysis.variants if variant.name.endswith("=16M"))
    assert pool.effect is not None and pool.effect.ratio == pytest.approx(0.4561, abs=1e-4)
    assert (pool.verdict, pool.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)


def test_the_drivers_percentiles_are_those_of_its_histogram() -> None:
    run, records = golden(1)
    study = a_study({"config.innodb_buffer_pool_size": ["128M", "16M"]}, blocks=2)
    measured = [record for record in records if record.outcome is Outcome.MEASURED and record.block == 0]
    baselines = [record for record in measured if record.variant == "baseline"]
    assert baselines
    for record in baselines:
        curve = analyse(study, run, [record]).baseline.latency
        for metric, above in (("p50_ms", 0.5), ("p90_ms", 0.1), ("p99_ms", 0.01)):
            told = metrics.find(metric).read(record)
            near = min(curve, key=lambda point: abs(point.above - above))
            assert near.latency_ms == pytest.approx(told, rel=0.05)
