"""What the command line shows of a run that is over: from the store alone, in every form."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.reports_cases import NAME
from tests.cli.reports_cases import run as run


def test_a_run_is_listed(run: Run) -> None:
    assert NAME in dyno("runs").stdout
    [listed] = json.loads(dyno("runs", "--json").stdout)
    assert (listed["run"], listed["outcomes"], listed["finished"]) == (NAME, {"measured": 4}, True)


@pytest.mark.parametrize("columns", [20, 40, 80, 120])
def test_the_name_of_a_run_is_never_cut(run: Run, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "a-name-that-" + "is-long-" * (columns // 10) + "and-whole"
    with Store(store_url()) as store:
        store.add_run(run.model_copy(update={"run": name, "study_path": "/a/rather/long/path/" * 3}))
    listed = dyno("runs").stdout
    assert name in listed and NAME in listed
    assert "4 measured" in " ".join(listed.split())


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "html"])
def test_a_report_in_every_form(run: Run, form: str, tmp_path: Path) -> None:
    printed = dyno("report", "261121", "--format", form)
    assert printed.returncode == 0, printed.stderr
    assert "page_size" in printed.stdout
    path = tmp_path / "out" / "report"
    written = dyno("report", "--format", form, "--output", str(path))
    assert written.stdout == f"{path}\n"
    assert "page_size" in path.read_text()


def test_the_json_report_is_json(run: Run) -> None:
    assert json.loads(dyno("report", "--format", "json").stdout)


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("x.html", "<!doctype html>"), ("x.md", "# "), ("x.json", "{"), ("x.TXT", "Which")],
)
def test_the_ending_of_the_output_says_its_format(
    run: Run, tmp_path: Path, name: str, beginning: str
) -> None:
    path = tmp_path / name
    assert dyno("report", "--output", str(path)).returncode == 0
    assert path.read_text().startswith(beginning)


def test_an_ending_that_says_no_format_is_refused(run: Run, tmp_path: Path) -> None:
    said = complaint("report", "--output", str(tmp_path / "x.pdf"))
    assert "x.pdf names no format" in said and "--format terminal, html, markdown, json or junit" in said
    assert not (tmp_path / "x.pdf").exists()


def test_json_is_spelled_alike(run: Run) -> None:
    assert dyno("report", "--json").stdout == dyno("report", "--format", "json").stdout
    assert "exclude each other" in complaint("report", "--json", "--format", "html")


def test_an_output_that_cannot_be_written(run: Run) -> None:
    assert "cannot write /proc/report.txt" in complaint("report", "--output", "/proc/report.txt")


def test_an_export_has_a_row_per_trial_and_per_second(run: Run, tmp_path: Path) -> None:
    assert dyno("export", "--csv", str(tmp_path), "--parquet", str(tmp_path)).returncode == 0
    for trials, series in (
        (polars.read_csv(tmp_path / "trials.csv"), polars.read_csv(tmp_path / "series.csv")),
        (polars.read_parquet(tmp_path / "trials.parquet"), polars.read_parquet(tmp_path / "series.parquet")),
    ):
        assert (trials.height, series.height) == (4, 4)
        assert set(trials["throughput"]) == {1000.0, 1001.0, 1100.0, 1101.0}
        assert set(map(str, trials["level.config.page_size"])) == {"8192", "16384"}
