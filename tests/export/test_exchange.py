"""A run as OpenMetrics, read back by the format's own parser."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dbdyno.export.exchange import exposed
from dbdyno.findings import analyse
from dbdyno.records.metrics import METRICS
from dbdyno.records.record import Outcome, Record
from tests.analyse.factory import a_run, a_study, records_of
from tests.export.exposed import Samples, samples

CANDIDATE = "config.page_cache=64k"
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "run.json"


def exposed_of(records: list[Record]) -> Samples:
    study = a_study()
    return samples(exposed(analyse(study, a_run(study), records)))


def test_each_variant_has_its_ratio_and_the_metrics_of_its_last_measured_trial() -> None:
    records = records_of(a_study(), {CANDIDATE: 1.05})
    found = exposed_of(records)
    low, ratio, high = (found["dyno_ratio", bound, CANDIDATE] for bound in ("low", "ratio", "high"))
    assert low < ratio < high and 1.0 < ratio < 1.1
    for variant in ("baseline", CANDIDATE):
        last = [record for record in records if record.variant == variant][-1]
        for name in ("throughput", "p99_ms", "steal_s"):
            assert found[f"dyno_{name}", variant] == METRICS[name].read(last), (name, variant)
    assert found["dyno_trials", "measured", CANDIDATE] == 6
    assert found["dyno_trials_planned",] == 12


def test_a_run_that_has_just_begun_has_no_ratio_and_a_failed_trial_no_metric() -> None:
    first, second, *_ = records_of(a_study())
    failed = second.but(outcome=Outcome.FAILED, cause="it died")
    found = exposed_of([first, failed])
    assert found["dyno_trials", "failed", failed.variant] == 1
    assert ("dyno_throughput", first.variant) in found and ("dyno_throughput", failed.variant) not in found
    assert not any(name == "dyno_ratio" for name, *_ in found)


def test_the_dashboard_asks_for_families_that_there_are() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"dyno_\w+", target["expr"])
    }
    there = {name for name, *_ in exposed_of(records_of(a_study(), {CANDIDATE: 1.05}))}
    # What a trial does not have, such as another process's CPU time here, has no family.
    assert len(asked) > 5 and asked <= there | {f"dyno_{name}" for name in METRICS}
