"""`dyno config`: each key, its value, and where that comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.cli.preferences import KEYS, config_file
from tests.cli.calls import complaint, dyno


@pytest.fixture
def file(homes: Path) -> Path:
    path = config_file()
    path.parent.mkdir(parents=True)
    path.write_text('wait = "10m"\nstore = "postgresql://me:secret@localhost/runs"\n')
    return path


def test_each_value_is_shown_with_its_origin(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_FORMAT", "json")
    rows = {row["key"]: row for row in json.loads(dyno("config", "--json").stdout)}
    assert rows.keys() == KEYS.keys()
    assert (rows["wait"]["value"], rows["wait"]["origin"]) == ("10m", "file")
    assert rows["wait"]["place"] == f"{file}:1"
    assert (rows["format"]["value"], rows["format"]["place"]) == ("json", "DYNO_FORMAT")
    assert (rows["quiet"]["value"], rows["quiet"]["origin"]) == (False, "default")


def test_without_a_file_what_is_used_is_shown(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{homes / 'data' / 'dyno' / 'dyno.sqlite'}"
    rows = {row["key"]: row for row in json.loads(dyno("config", "--json").stdout)}
    assert (rows["store"]["value"], rows["store"]["origin"]) == (store, "default")
    assert rows["mirror"]["value"] is None
    monkeypatch.setenv("COLUMNS", "400")
    shown = dyno("config").stdout
    assert store in shown and "the machine's mirror" in shown


def test_a_password_is_not_shown(file: Path) -> None:
    for arguments in (["config"], ["config", "--json"]):
        said = dyno(*arguments).stdout
        assert "secret" not in said and "postgresql" in said


def test_the_path_is_told_whether_the_file_is_there_or_not(homes: Path) -> None:
    assert dyno("config", "path").stdout.strip() == str(config_file())
    assert list(homes.iterdir()) == [], "and no folder is made"


def test_a_mistake_is_told_with_its_line(file: Path) -> None:
    file.write_text("\nwiat = '1m'\n")
    said = complaint("config")
    assert "line 2" in said and "did you mean `wait`?" in said
    assert dyno("config", "path").returncode == 0, "whoever mends it wants to know where it is"
