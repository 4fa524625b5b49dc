"""What other tools are given of a run: their forms, filled by the analysis and by a pipeline's variables."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dbdyno.analyse import Analysis
from dbdyno.prepare_run.stored_run import analysis_of
from dbdyno.records.metrics import METRICS
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.trend_cases import keep

FASTER = "config.synchronous=OFF"
PIPELINE = {
    "GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "we/db", "GITHUB_REF_NAME": "main",
    "GITHUB_SHA": "c0ffee",
}  # fmt: skip
OTHERS = ("CI_PROJECT_URL", "CI_COMMIT_REF_NAME", "CI_COMMIT_SHA")


@pytest.fixture
def analysis(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Analysis:
    """Of a run that lies in the store, in a pipeline of GitHub's."""
    for name in OTHERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in PIPELINE.items():
        monkeypatch.setenv(name, value)
    keep("first", days_ago=2.0)
    with Store(store_url()) as store:
        return analysis_of(store, store.run("first"))


def test_bencher_gets_each_metric_of_each_variant_with_its_interval(analysis: Analysis) -> None:
    found = json.loads(dyno("export", "first", "--for", "bencher").stdout)
    assert set(found) == {"baseline", FASTER}
    response = analysis.candidates[0].response
    assert response is not None
    assert found[FASTER]["throughput"] == {
        "value": response.mean, "lower_value": response.low, "upper_value": response.high,
    }  # fmt: skip
    assert found[FASTER]["p99_ms"]["value"] > 0.0


def test_an_action_gets_what_should_rise_apart_from_what_should_fall(analysis: Analysis) -> None:
    rising, falling = (
        json.loads(dyno("export", "first", "--for", form).stdout)
        for form in ("bigger-is-better", "smaller-is-better")
    )
    assert [one["name"] for one in rising] == [f"{name}: throughput" for name in ("baseline", FASTER)]
    assert rising[0]["range"].startswith("± ") and "run first" in rising[0]["extra"]
    assert not {one["name"] for one in rising} & {one["name"] for one in falling}
    assert all(isinstance(one["value"], float) and isinstance(one["unit"], str) for one in falling)


def test_a_point_in_time_names_what_a_pipeline_measured(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    [point] = json.loads(dyno("export", "first", "--for", "nyrkio").stdout)
    assert point["timestamp"] == int(analysis.run.created_unix_s)
    assert point["attributes"] == {
        "git_repo": "https://example.org/we/db", "branch": "main", "git_commit": "c0ffee",
    }  # fmt: skip
    units = {one["name"]: (one["unit"], one["direction"]) for one in point["metrics"]}
    assert units[f"{FASTER}: p99_ms"] == ("ms", "lower_is_better")
    for name in PIPELINE:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CI_COMMIT_SHA", "beef")
    [point] = json.loads(dyno("export", "first", "--for", "nyrkio").stdout)
    assert point["attributes"] == {"git_repo": "", "branch": "", "git_commit": "beef"}


def test_conbench_gets_each_trial_in_units_that_it_takes(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(dyno("export", "first", "--for", "conbench").stdout)
    by_tags = {(one["tags"]["variant"], one["tags"]["metric"]): one for one in found}
    stats = by_tags[FASTER, "throughput"]["stats"]
    records = [trial.record for trial in analysis.trials if trial.record.variant == FASTER]
    assert stats["data"] == [METRICS["throughput"].read(record) for record in records]
    assert (stats["unit"], stats["iterations"]) == ("i/s", len(records))
    p99_ms = METRICS["p99_ms"].read(records[0])
    late = by_tags[FASTER, "p99_ms"]["stats"]
    assert p99_ms is not None and late["unit"] == "s"
    assert late["data"][0] == pytest.approx(p99_ms / 1e3)
    assert {one["stats"]["unit"] for one in found} == {"i/s", "s"}
    assert found[0]["github"] == {"repository": "https://example.org/we/db", "commit": "c0ffee"}
    assert not any("machine_info" in one for one in found) and found[0]["cluster_info"]["name"]
    for name in PIPELINE:
        monkeypatch.delenv(name)
    assert "github" not in json.loads(dyno("export", "first", "--for", "conbench").stdout)[0]


def test_rows_of_a_series_are_added_to_its_file(analysis: Analysis, tmp_path: Path) -> None:
    keep("second")
    series = tmp_path / "series.csv"
    for run in ("first", "second"):
        assert dyno("export", run, "--for", "otava", "--output", str(series)).returncode == 0
    rows = list(csv.DictReader(series.open()))
    assert [row["run"] for row in rows] == ["first", "second"]
    assert float(rows[0]["time"]) < float(rows[1]["time"]) and rows[0]["commit"] == "c0ffee"
    response = analysis.baseline.response
    assert response is not None and float(rows[0]["baseline.throughput"]) == response.mean
    series.write_text("time,commit\n1,2\n")
    told = complaint("export", "second", "--for", "otava", "--output", str(series))
    assert "has other columns than this run" in told


def test_what_cannot_be_is_told(analysis: Analysis, tmp_path: Path) -> None:
    assert "--output is the file of a tool's form" in complaint("export", "first", "--output", "x.json")
    assert "is not one of" in complaint("export", "first", "--for", "spreadsheet")
    inside = tmp_path / "file"
    inside.write_text("")
    told = complaint("export", "first", "--for", "bencher", "--output", str(inside / "x.json"))
    assert "cannot write" in told
