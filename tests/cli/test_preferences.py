"""What is set once: an option wins over its variable, the variable over the file, and so on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dbdyno.cli.exit_codes import FAIL_ON
from dbdyno.cli.options import NONE
from dbdyno.cli.preferences import (
    KEYS,
    NO_VERDICT,
    VERDICTS,
    Origin,
    Value,
    config_file,
    of_file,
    preferred,
    settings,
)
from dbdyno.cli.verbs.ask import demo
from dbdyno.cli.verbs.read import report
from dbdyno.errors import StudyError, UserError
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.trend_cases import keep
from tests.study_texts import STUDY

ALL = """
store   = "sqlite:////nowhere/runs.sqlite"
format  = "markdown"
fail-on = ["slower", "broken"]
quiet   = true
wait    = "10m"
mirror  = "http://localhost:1/debian"
"""


@pytest.fixture
def file(homes: Path) -> Path:
    path = config_file()
    assert path == homes / "config" / "dyno" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_without_a_file_each_key_has_its_default(homes: Path) -> None:
    assert [(setting.value, setting.origin) for setting in settings()] == [
        (key.default, Origin.DEFAULT) for key in KEYS.values()
    ]


def test_a_file_sets_every_key(file: Path) -> None:
    file.write_text(ALL)
    found = {setting.key.name: setting for setting in settings()}
    assert {setting.origin for setting in found.values()} == {Origin.FILE}
    assert found["fail-on"].value == ("slower", "broken") and found["quiet"].value is True
    assert found["wait"].place == f"{file}:6"


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("DYNO_STORE", "sqlite:////tmp/dyno-x.sqlite", "store", "sqlite:////tmp/dyno-x.sqlite"),
        ("DYNO_FAIL_ON", "inconclusive, failed", "fail-on", ("inconclusive", "failed")),
        ("DYNO_FAIL_ON", "none", "fail-on", ()),
        ("DYNO_QUIET", "false", "quiet", False),
        ("DYNO_WAIT", "forever", "wait", "forever"),
    ],
)
def test_a_variable_wins_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, name: str, value: object
) -> None:
    file.write_text(ALL)
    monkeypatch.setenv(variable, text)
    assert preferred(name) == value
    monkeypatch.setenv(variable, "")
    assert preferred(name) != value, "an empty variable is none"


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('sotre = "sqlite:///x"', 1, "`sotre`: is no key", "did you mean `store`?"),
        ('\nstore = "mysql://x"', 2, "`store`: must be the URL of a store", "sqlite:///PATH"),
        ("quiet = 1", 1, "`quiet`: must be true or false", "without quotes"),
        ("wait = 10", 1, "`wait`: a duration needs its unit", '"10s"'),
        ('fail-on = "slower"', 1, "`fail-on`: must be a list", '["slower", "broken"]'),
        ('fail-on = ["slowr"]', 1, '`fail-on`: cannot be "slowr"', "did you mean `slower`?"),
        ('format = "html"', 1, '`format`: cannot be "html"', "markdown"),
        ("[run]\nblocks = 3", 1, "`run`: is no key", "there are"),
        ('wait = "1m"\nwait = "2m"', 2, "given twice", "keep one"),
        ("wait = ", 1, "not valid TOML", "toml.io"),
    ],
)
def test_a_mistake_has_its_line_and_what_is_allowed(
    file: Path, text: str, line: int, message: str, hint: str
) -> None:
    file.write_text(text)
    with pytest.raises(StudyError) as refused:
        settings()
    [mistake] = refused.value.mistakes
    assert (refused.value.path, mistake.line) == (str(file), line)
    assert message in mistake.message and hint in mistake.hint


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    file.write_text("quiet = 1\nwait = 2\ncalibration = false\n")
    said = complaint("runs")
    assert "3 mistakes" in said and all(f"line {line}" in said for line in (1, 2, 3))


def test_a_variable_that_is_wrong_is_named(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_QUIET", "perhaps")
    with pytest.raises(UserError, match="DYNO_QUIET: must be true or false"):
        preferred("quiet")


def test_every_key_can_be_read_and_verdicts_are_those_of_the_option() -> None:
    assert tuple(FAIL_ON) == VERDICTS and NONE == NO_VERDICT


def names(*arguments: str) -> list[str]:
    return [run["run"] for run in json.loads(dyno("runs", *arguments, "--json").stdout)]


def test_a_store_of_the_file_is_used_by_every_verb_that_names_none(file: Path) -> None:
    keep("at-home")
    elsewhere = f"sqlite:///{file.parent}/elsewhere.sqlite"
    Store(elsewhere)
    file.write_text(f'store = "{elsewhere}"\n')
    assert names() == []
    home = f"sqlite:///{file.parents[2] / 'data' / 'dyno' / 'dyno.sqlite'}"
    assert names("--store", home) == ["at-home"]
    assert dyno("runs", "--store", home, "note", "at-home", "kept").returncode == 0


def test_a_report_is_printed_and_ends_as_preferred(file: Path) -> None:
    keep("one")
    file.write_text('format = "markdown"\nfail-on = ["inconclusive", "slower"]\n')
    assert dyno("report").stdout.startswith("# ")
    assert dyno("report", "--format", "terminal").stdout.startswith("Which")
    assert dyno("report", "--json").stdout.startswith("{")
    keep("slow", ratio=0.5)
    assert dyno("report", "slow").returncode == 6
    assert dyno("report", "slow", "--fail-on", "none").returncode == 0


def test_a_file_changes_nothing_of_what_a_trial_measures(file: Path) -> None:
    study = file.parents[2] / "study.toml"
    study.write_text(STUDY)
    without = planned(study)
    file.write_text(ALL)
    with_file = planned(study)
    assert [name for name in without if without[name] != with_file[name]] == ["writes"]
    store = [write["place"] for write in with_file["writes"] if write["what"].startswith("the store")]
    assert store == ["/nowhere/runs.sqlite"]


def planned(study: Path) -> dict[str, Any]:
    said = dyno("plan", str(study), "--seed", "7", "--json")
    assert said.returncode == 0, said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_help_names_no_preference(file: Path) -> None:
    file.write_text('wait = "17m"\n')
    said = dyno("run", "--help")
    assert said.returncode == 0 and "17m" not in said.stdout


def test_a_command_reads_the_file_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of its options have a preference."""
    file.write_text('format = "markdown"\nfail-on = ["slower"]\n')
    read: list[Path] = []

    def counting(path: Path) -> dict[str, tuple[Value, int]]:
        read.append(path)
        return of_file(path)

    monkeypatch.setattr("dbdyno.cli.preferences.of_file", counting)
    said = CliRunner().invoke(report, ["--store", "sqlite:///:memory:"])
    assert said.exception is not None and read == [file]


def test_the_demo_waits_as_its_run_does(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr("dbdyno.cli.verbs.measure.run.main", lambda given, **_: called.append(given[3:]))
    monkeypatch.setattr("dbdyno.engines.firebird.server.fetch", lambda *_: None)
    for given in ([], ["--wait"], ["--wait", "90s"]):
        demo.main(given, standalone_mode=False)
    assert called == [["--wait=0s"], ["--wait=forever"], ["--wait=90s"]]


def test_the_demo_takes_its_engine_from_the_machines_mirror_or_a_preferred_one(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo.make_context("demo", []).params["mirror"] == ""
    monkeypatch.setenv("DYNO_MIRROR", "http://localhost:1/debian")
    assert demo.make_context("demo", []).params["mirror"] == "http://localhost:1/debian"
