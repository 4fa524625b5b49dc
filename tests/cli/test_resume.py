"""`dyno run --resume`: the run that is meant, and no other; and blocks that are added to it."""

from __future__ import annotations

import os
import platform
import pty
import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from dbdyno.cli.resume import interrupted
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests import warm
from tests.cli.calls import complaint, dyno
from tests.study_texts import STUDY


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def unfinished(study: Path) -> str:
    """The name of a run of which one block was measured and another is left."""
    ran = dyno("run", str(study), "--blocks", "1", "--quiet")
    assert ran.returncode == 0, ran.stderr
    with Store(store_url()) as store:
        run = store.run("last")
        store.reopen_run(run.model_copy(update={"blocks": 2}))
    return run.run


def test_a_run_that_nobody_named_is_not_gone_on_with(unfinished: str) -> None:
    said = complaint("run", "--resume")
    assert f'the latest unfinished one is {unfinished}, "Which synchronous?"' in said
    assert "2 of 4 trials" in said and f"dyno run --resume {unfinished}" in said


@pytest.mark.parametrize(("answer", "code"), [("n", 130), ("y", 0)])
def test_on_a_terminal_the_user_is_asked(unfinished: str, answer: str, code: int) -> None:
    leader, follower = pty.openpty()
    os.write(leader, f"{answer}\n".encode())
    child = warm.run("run", "--resume", "--quiet", stdin=follower)
    os.close(leader)
    os.close(follower)
    assert child.returncode == code, child.stderr
    assert "2 of 4 trials" in child.stderr and "Go on with it?" in child.stderr
    assert ("4 trials" in child.stdout) == (answer == "y")


@pytest.mark.parametrize(
    "other",
    [
        {"dyno_version": "0.1.9"},
        {"dyno_code": "0123456789abcdef"},
        {"dyno_driver": f"{platform.machine()}:0123456789abcdef"},
    ],
)
def test_a_run_goes_on_with_the_dyno_that_began_it_alone(unfinished: str, other: dict[str, str]) -> None:
    with Store(store_url()) as store:
        run = store.run("last")
        store.reopen_run(run.model_copy(update=other))
    said = complaint("run", "--resume", unfinished, "--quiet")
    assert f"run {unfinished} began with Dyno " in said and ", and here is Dyno " in said
    assert f"or begin a new run with this one: dyno run --again {unfinished}" in said
    with Store(store_url()) as store:
        assert len(store.records(unfinished)) == 2
        # One that kept no digest, and one of another architecture.
        store.reopen_run(run.model_copy(update={"dyno_code": "", "dyno_driver": "vax:0123456789abcdef"}))
    assert dyno("run", "--resume", unfinished, "--quiet").returncode == 0


def test_a_study_that_is_only_spelled_otherwise_is_the_same(unfinished: str, study: Path) -> None:
    study.write_text("# Asked again.\n" + STUDY.replace('"0.5s"', '"500ms"').replace("  ", " "))
    assert dyno("run", str(study), "--resume", "--quiet").returncode == 0
    with Store(store_url()) as store:
        assert [summary.finished for summary in store.runs()] == [True]
    assert dyno("run", str(study), "--resume", unfinished, "--quiet").returncode == 0


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["kinds.comparison.run_estimate", "cli.measuring.alone"])
def test_ctrl_c_before_the_run_begins_is_told_as_that(
    study: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"dbdyno.{where}", interrupt)
    said = complaint("run", str(study), "--quiet", code=130)
    assert said == "interrupted before the run began: nothing was measured\n"
    with Store(store_url()) as store:
        assert store.runs() == []


def test_ctrl_c_before_blocks_are_added_names_the_command_that_adds_them(
    unfinished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.cli.measuring.alone", interrupt)
    said = complaint("run", "--resume", unfinished, "--add-blocks", "3", "--quiet", code=130)
    assert "interrupted: 2 of 4 trials are kept" in said
    assert f"go on with: dyno run --resume {unfinished} --add-blocks 3\n" in said


def test_one_trial_is_kept_and_two_are(unfinished: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(store_url()) as store:
        run = store.run(unfinished)
        assert interrupted(store, run, NOTHING_ALLOWED) == 130
        assert capsys.readouterr().err.startswith("interrupted: 2 of 4 trials are kept\n")
    with sqlite3.connect(store_url().removeprefix("sqlite:///")) as raw:
        raw.execute("DELETE FROM dyno_records WHERE rowid = (SELECT max(rowid) FROM dyno_records)")
    with Store(store_url()) as store:
        interrupted(store, run, NOTHING_ALLOWED)
    assert capsys.readouterr().err.startswith("interrupted: 1 of 4 trials is kept\n")


def test_a_study_names_its_own_run(unfinished: str, study: Path) -> None:
    other = study.with_name("other.toml")
    other.write_text(STUDY.replace("Which", "What"))
    assert "no unfinished run is of" in complaint("run", str(other), "--resume")
    assert f"run {unfinished} is not of {other}" in complaint("run", str(other), "--resume", unfinished)
    assert dyno("run", str(study), "--resume", "--quiet").returncode == 0


def test_blocks_are_added_to_a_run_that_is_over(study: Path) -> None:
    assert dyno("run", str(study), "--quiet").returncode == 0
    said = dyno("run", "--resume", "last", "--add-blocks", "1", "--quiet")
    assert said.returncode == 0, said.stderr
    assert "3 blocks, 6 trials" in said.stdout
    details = dyno("report", "last", "--details").stdout
    assert "however often they were looked at" in " ".join(details.split())


def test_blocks_are_added_to_a_run_that_is_named(study: Path) -> None:
    assert "--add-blocks needs the run" in complaint("run", str(study), "--add-blocks", "3")
    assert "--add-blocks needs the run" in complaint("run", "--add-blocks", "3", "--resume")
