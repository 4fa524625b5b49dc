"""What verbs print with `--json` is as their schema says, and every schema is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dbdyno.cli.schema import OUTPUTS, schema_of
from dbdyno.findings import analyse, as_json
from dbdyno.findings import profile as profile_part
from tests.analyse.factory import a_run, every_verdict
from tests.cli.calls import dyno
from tests.cli.explain_cases import stored
from tests.cli.runs_cases import runs
from tests.cli.schemas import require_valid
from tests.cli.trend_cases import keep
from tests.report.figures.flame_cases import FAST, SLOW
from tests.report.forms import ANALYSES
from tests.study_texts import STUDY

__all__ = ["runs", "stored"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_schema_is_one_and_forbids_no_further_field(output: str) -> None:
    schema = json.loads(dyno("schema", output).stdout)
    Draft202012Validator.check_schema(schema)
    assert '"additionalProperties": false' not in json.dumps(schema)


@pytest.mark.parametrize("case", ANALYSES)
def test_a_report_is_as_its_schema_says(case: str) -> None:
    require_valid("report", as_json.render(ANALYSES[case]()))


def test_a_report_that_lacks_a_field_is_not() -> None:
    study, records = every_verdict()
    document = json.loads(as_json.render(analyse(study, a_run(study), records)))
    del document["trials"][0]["outcome"]
    assert not Draft202012Validator(schema_of("report")).is_valid(document)


@pytest.mark.parametrize(
    ("output", "verb"),
    [
        ("runs", ["runs"]),
        ("baseline-list", ["baseline", "list"]),
        ("show", ["show", "first"]),
        ("show-trial", ["show", "first", "0"]),
        ("compare", ["compare", "first", "second"]),
        ("matrix", ["matrix", "first", "second"]),
        ("gate", ["gate", "first", "--against", "second"]),
        ("engines", ["engines"]),
    ],
    ids=str,
)
def test_a_verb_prints_what_its_schema_says(runs: Path, output: str, verb: list[str]) -> None:
    assert dyno("baseline", "set", "main", "second").returncode == 0
    require_valid(output, dyno(*verb, "--json").stdout)


@pytest.mark.parametrize(
    ("output", "verb"),
    [("plan", ["plan", "study.toml"]), ("trend", ["trend", "study.toml"]), ("config", ["config"])],
    ids=str,
)
def test_what_needs_no_run_of_its_own_is_as_its_schema_says(
    homes: Path, monkeypatch: pytest.MonkeyPatch, output: str, verb: list[str]
) -> None:
    (homes / "study.toml").write_text(STUDY)
    monkeypatch.chdir(homes)
    keep("one")
    require_valid(output, dyno(*verb, "--json").stdout)


def test_a_probe_is_as_its_schema_says(homes: Path) -> None:
    require_valid("probe", dyno("probe", "--json").stdout)


def test_a_profile_is_as_its_schema_says() -> None:
    for profiles in ([SLOW], [SLOW, FAST]):
        require_valid("profile", profile_part.model(profiles).model_dump_json())


def test_a_gap_is_as_its_schema_says(stored: Any) -> None:
    stored("factorial", 2)
    require_valid("explain", dyno("explain", "gap", "--json").stdout)


def test_the_driver_prints_what_its_schemas_say(homes: Path) -> None:
    url = f"sqlite:///{homes}/data.sqlite"
    require_valid("load-prepare", dyno("load", "prepare", "tpcb", "--url", url, "--json").stdout)
    seconds = ["--warmup", "0", "--time", "1"]
    require_valid("load-run", dyno("load", "run", "tpcb", "--url", url, *seconds, "--json").stdout)
    require_valid("load-check", dyno("load", "check", "tpcb", "--url", url, "--json").stdout)
