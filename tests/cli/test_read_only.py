"""Verbs that only read need no right to write, and no folder of their own."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.host import paths
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.reports_cases import run
from tests.needs import IS_ROOT

__all__ = ["run"]
NOWHERE = "/proc/nowhere"


@pytest.fixture
def no_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that nobody can make, root included."""
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, NOWHERE)
    monkeypatch.setenv(paths.HOST_VARIABLE, f"{NOWHERE}/host")


@pytest.mark.usefixtures("no_home")
@pytest.mark.parametrize(
    "verb",
    [["runs"], ["cache", "list"], ["data", "list"], ["engines"], ["cleanup"], ["schema"], ["config"]],
    ids=str,
)
def test_a_verb_that_reads_works_without_a_home(verb: list[str]) -> None:
    said = dyno(*verb)
    assert said.returncode == 0, said.stderr


@pytest.mark.usefixtures("no_home")
def test_a_report_without_a_home_says_that_there_is_no_run() -> None:
    assert f"no run yet in {NOWHERE}/dyno/dyno.sqlite" in complaint("report")


@pytest.mark.usefixtures("no_home")
def test_a_verb_that_writes_names_the_variable() -> None:
    assert "XDG_CACHE_HOME" in complaint("cache", "data", "make", "--vectors", "10")


@pytest.mark.usefixtures("no_home")
def test_a_first_study_is_written_and_planned_without_a_home(tmp_path: Path) -> None:
    path = str(tmp_path / "first.toml")
    for verb in (["init", "sqlite", "--output", path], ["plan", path], ["plan", path, "--json"]):
        said = dyno(*verb)
        assert said.returncode == 0, said.stderr


def test_reading_makes_no_folder(homes: Path) -> None:
    dyno("cache", "list")
    dyno("engines")
    dyno("cleanup")
    assert list(homes.iterdir()) == []


@pytest.fixture
def read_only(homes: Path) -> Iterator[Path]:
    """A data folder on a file system that is mounted for reading, with the store that the test makes."""
    data = homes / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "tmpfs", data], check=True)
    try:
        yield data
    finally:
        subprocess.run(["umount", data], check=True)


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount a file system")
@pytest.mark.parametrize("older", [False, True])
def test_a_store_on_a_read_only_disk_is_read(
    read_only: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    made = request.getfixturevalue("run")
    if older:
        with sqlite3.connect(read_only / "dyno" / "dyno.sqlite") as database:
            database.execute("DROP TABLE dyno_names")
            database.execute("DROP TABLE dyno_notes")
        database.close()
    subprocess.run(["mount", "-o", "remount,ro", read_only], check=True)
    assert made.run in dyno("runs").stdout
    assert dyno("report").returncode == 0
    # No patience makes it writable.
    monkeypatch.setattr("dbdyno.records.store.time.sleep", pytest.fail)
    with Store(f"sqlite:///{read_only}/dyno/dyno.sqlite") as store:
        assert store.runs()
        with pytest.raises(Exception, match="readonly"):
            store.finish_run(made.run)
