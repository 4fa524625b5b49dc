"""`dyno museum`: what did not help in any run of the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.cli.calls import STUDY, complaint, dyno
from tests.cli.schemas import require_valid

SLOW = "config.page_size=16384"


@pytest.fixture
def stored(homes: Path) -> Path:
    """Two runs in which a page size was slower, one in which it failed, and one of a study that nobody can
    read any more."""
    with Store(store_url()) as store:
        for name, text in (("first", STUDY), ("second", STUDY), ("third", STUDY), ("lost", "engine = 5\n")):
            changed = {"run": name, "study_path": f"{name}.toml", "study_text": text, "blocks": 6, "seed": 1}
            run = a_run(a_study()).model_copy(update=changed)
            store.add_run(run)
            study = study_of(run) if text == STUDY else a_study()
            failed = {SLOW: ended(Outcome.FAILED, "the server died")} if name == "third" else None
            for record in records_of(study, {SLOW: 0.5}, failed):
                store.add_record(record.model_copy(update={"run": name}))
    return homes


def outcomes(*arguments: str) -> list[str]:
    found = json.loads(dyno("museum", *arguments, "--json").stdout)
    return [one["ending"] for piece in found["pieces"] for one in piece["occurrences"]]


def test_runs_of_one_level_stand_together(stored: Path) -> None:
    said = " ".join(dyno("museum").stdout.split())
    assert "firebird: config.page_size = 16384" in said and "against 8192" in said
    assert "slower in 2 of 3 runs" in said and "failed in 1 of 3 runs" in said
    assert "the server died" in said and "cannot read 1 further run: lost" in said


def test_the_museum_is_filtered(stored: Path) -> None:
    assert sorted(outcomes()) == ["failed", "slower", "slower"]
    assert outcomes("--outcome", "failed") == ["failed"]
    assert outcomes("--study", "first.toml") == ["slower"]
    assert len(outcomes("--engine", "firebird", "--layer", "config")) == 3
    assert outcomes("--layer", "storage") == outcomes("--engine", "sqlite") == []
    assert "there is no engine `firebrid`" in complaint("museum", "--engine", "firebrid")


def test_the_output_is_as_its_schema_says(stored: Path) -> None:
    require_valid("museum", dyno("museum", "--json").stdout)


@pytest.mark.parametrize(
    ("ending", "beginning"),
    [("html", "<!doctype html>"), ("md", "# The museum"), ("csv", "engine,level"), ("txt", "The museum")],
)
def test_the_museum_is_written_in_every_form(stored: Path, ending: str, beginning: str) -> None:
    path = stored / f"museum.{ending}"
    assert dyno("museum", "--output", str(path)).stdout.strip() == str(path)
    text = path.read_text()
    assert text.lstrip().startswith(beginning) and "the server died" in text


def test_a_form_that_is_not_offered_is_refused(stored: Path) -> None:
    said = complaint("museum", "--output", str(stored / "museum.xml"))
    assert "names no format" in said and "add --format terminal, html, markdown, json or csv" in said
    assert "names no format" in complaint("report", "first", "--output", str(stored / "report.csv"))


def test_an_empty_store_has_an_empty_museum(homes: Path) -> None:
    assert "Nothing stands in the museum." in dyno("museum").stdout
