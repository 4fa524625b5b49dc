"""`dyno trend`: which runs are of a study, which are left out and why, and every form of the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.records.run import Brought, ImportedRun
from tests.cli.calls import complaint, dyno
from tests.cli.trend_cases import keep
from tests.study_texts import STUDY


@pytest.fixture
def days(homes: Path) -> Path:
    """Four runs of one study, one of them with another spelling; and runs that do not belong to it."""
    for days_ago in (4, 3, 2):
        keep(f"day-{days_ago}", days_ago=days_ago)
    keep("respelled", f"# Again.\n{STUDY}", days_ago=1, reference="reference-respelled")
    keep("reference-respelled", days_ago=1)
    keep("cut-short", finished=False)
    keep("changed", STUDY.replace('"FULL", "OFF"', '"OFF", "FULL"'))
    keep("other", STUDY.replace("tpcb", "point_select"), path="other.toml")
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


def document(*arguments: str) -> dict:  # type: ignore[type-arg]
    found = dyno("trend", *arguments, "--json")
    assert found.returncode == 0, found.stderr
    made = json.loads(found.stdout)
    assert isinstance(made, dict)
    return made


def names(*arguments: str) -> list[str]:
    return [run["run"] for run in document(*arguments)["runs"]]


def test_runs_of_one_meaning_belong_together_and_the_others_are_counted(days: Path) -> None:
    found = document(str(days))
    assert [run["run"] for run in found["runs"]] == ["day-4", "day-3", "day-2", "respelled"]
    assert found["left_out"] == {"changed": 1, "reference": 1, "unfinished": 1}
    [variant] = found["variants"]
    assert variant["variant"] == "config.synchronous=OFF"
    assert variant["mean"]["ratio"] == pytest.approx(1.5, rel=0.02)
    assert found["runs"][-1]["ratios"][0]["against_earlier"]["pairs"] == 3


def test_a_run_stands_for_its_study_and_several_for_themselves(days: Path) -> None:
    assert names("respelled") == names(str(days))
    assert names("day-2", "day-4") == ["day-4", "day-2"]
    assert "different studies" in complaint("trend", "day-2", "other")
    assert "give one study" in complaint("trend", str(days), "day-2")
    assert "no run 'nothing'" in complaint("trend", "nothing")


def test_a_run_that_was_made_of_logs_has_no_trend(homes: Path) -> None:
    logs = Brought(tool="sysbench", title="Logs", variants=("a", "b"), response="throughput", margin=0.02)
    for name in ("logs-1", "logs-2"):
        keep(name, brought=logs, kind=ImportedRun)
    keep("measured")
    for named in (["logs-1"], ["logs-1", "logs-2"], ["measured", "logs-1"]):
        assert "was made of logs of sysbench" in complaint("trend", *named)


def test_runs_are_limited_by_age_and_number(days: Path) -> None:
    found = document(str(days), "--since", "60h", "--limit", "1")
    assert [run["run"] for run in found["runs"]] == ["respelled"]
    assert (found["left_out"]["older"], found["left_out"]["beyond limit"]) == (2, 1)


def test_a_name_and_a_note_stand_beside_the_run(days: Path) -> None:
    assert dyno("runs", "name", "day-3", "before").returncode == 0
    assert dyno("runs", "note", "day-3", "the old disk").returncode == 0
    shown = " ".join(dyno("trend", str(days)).stdout.split())
    assert "day-3; before; the old disk" in shown
    assert "Left out: " in shown and "1 run not finished" in shown


@pytest.mark.parametrize(
    ("ending", "beginning"), [("html", "<!doctype html>"), ("md", "# "), ("json", "{"), ("txt", "Which")]
)
def test_a_trend_is_written_in_every_form(days: Path, tmp_path: Path, ending: str, beginning: str) -> None:
    path = tmp_path / f"trend.{ending}"
    said = dyno("trend", str(days), "--output", str(path))
    assert said.stdout.strip() == str(path), said.stderr
    assert path.read_text().lstrip().startswith(beginning)


def test_a_study_without_a_run_is_told_so(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY)
    assert "no finished run of" in complaint("trend", str(path))
    keep("cut-short", finished=False)
    assert "left out: 1 run not finished" in complaint("trend", str(path))
