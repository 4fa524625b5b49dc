"""`dyno recipe`: a run's variant as a folder, and a server held against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.driver.load_process import LoadProcess
from dbdyno.host.launch import Launch
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from tests.analyse.factory import a_run, a_study, records_of
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid

STUDY = """
title  = "Which page size?"
engine = "sqlite"
blocks = 6
[workload]
name     = "tpcb"
duration = "20s"
[settings]
"config.cache_size" = -4000
[factors]
"config.page_size" = [4096, 8192, 16384]
"config.synchronous" = ["full", "off"]
"""
FASTER, SAME = "config.page_size=8192", "config.page_size=16384"
LOSSY = "config.synchronous=off"


def keep(name: str = "example", finished: bool = True, gain: float = 1.5) -> Run:
    """A run in the store; two of its variants are faster."""
    made = a_run(a_study())
    run = made.but(run=name, study_text=STUDY, host={"name": "bench-1"})
    records = records_of(study_of(run), {FASTER: gain, LOSSY: 1.0 + (gain - 1.0) / 2})
    with Store(store_url()) as store:
        store.add_run(run)
        for record in records:
            changes = {"run": name, "engine_version": "3.40.1", "host": "bench-1"}
            store.add_record(record.model_copy(update=changes))
        if finished:
            store.finish_run(name)
    return run


@pytest.fixture
def here(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to write into, and a finished run."""
    monkeypatch.chdir(homes)
    keep()
    return homes


def test_the_variant_that_helped_most_is_written(here: Path) -> None:
    said = dyno("recipe")
    assert said.returncode == 0, said.stderr
    folder = here / "recipe-example"
    assert FASTER in said.stdout
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names == {
        "EVIDENCE.md",
        "recipe.json",
        "recipe.tsv",
        "apply",
        "undo",
        "check",
        "writing.sh",
        "place.sh",
    }
    assert "VACUUM" in (folder / "EVIDENCE.md").read_text()
    require_valid("recipe", (folder / "recipe.json").read_text())


def test_no_file_names_a_folder_of_this_host(here: Path) -> None:
    assert dyno("recipe", "example", "--output", "new").returncode == 0
    for path in (here / "new").iterdir():
        assert str(here) not in path.read_text()


@pytest.mark.parametrize("words", [["write"], ["write", "example"], ["last"], ["exam"], ["--variant", "1"]])
def test_a_run_is_named_or_left_out(here: Path, words: list[str]) -> None:
    said = dyno("recipe", *words, "--output", "new")
    assert said.returncode == 0, said.stderr
    assert FASTER in said.stdout


def test_what_is_given_up_is_told_and_stands_on_top(here: Path) -> None:
    said = dyno("recipe", "example", "--variant", LOSSY, "--output", "new")
    assert "gives up durability" in said.stderr
    assert "gives up durability" in (here / "new" / "EVIDENCE.md").read_text().split("\n\n")[1]
    assert "PRAGMA synchronous = off;" in (here / "new" / "connection.sql").read_text()
    assert "-- PRAGMA cache_size = -4000;" in (here / "new" / "connection.sql").read_text()


def test_options_name_the_unit_and_add_forms(here: Path) -> None:
    words = ["--variant", LOSSY, "--configuration", "/srv/app/", "--service", "app", "--whole"]
    said = dyno("recipe", "example", *words, "--with", "tuned", "--with", "ansible", "--output", "new")
    assert said.returncode == 0, said.stderr
    told = json.loads((here / "new" / "recipe.json").read_text())
    assert (told["service"], told["configuration"], told["whole"]) == ("app", "/srv/app", True)
    assert "\nPRAGMA cache_size = -4000;" in (here / "new" / "connection.sql").read_text()
    assert (here / "new" / "ansible" / "tasks" / "main.yml").is_file()
    assert not (here / "new" / "tuned").exists()
    assert "no profile of TuneD" in said.stderr and "no role of Ansible" not in said.stderr


def test_a_role_without_files_is_told_and_not_written(here: Path) -> None:
    said = dyno("recipe", "example", "--with", "ansible", "--output", "new")
    assert "no role of Ansible" in said.stderr
    assert not (here / "new" / "ansible").exists()


def test_a_folder_that_is_there_is_refused_before_anything(here: Path) -> None:
    (here / "recipe-example").mkdir()
    assert "recipe-example is there already" in complaint("recipe", "example")


def test_a_variant_that_is_not_faster_is_refused_unless_asked_for(here: Path) -> None:
    assert "is not faster than the baseline" in complaint("recipe", "example", "--variant", SAME)
    assert dyno("recipe", "example", "--variant", SAME, "--any-verdict").returncode == 0


def test_a_run_in_which_nothing_helped_names_the_options(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(homes)
    keep(gain=1.0)
    said = complaint("recipe")
    assert "no variant of run example is faster" in said and "--any-verdict" in said


def test_an_unknown_variant_is_answered_with_all_names(here: Path) -> None:
    said = complaint("recipe", "example", "--variant", "nosuch")
    assert "has no variant 'nosuch'" in said and FASTER in said


def test_a_run_that_is_not_finished_is_refused(homes: Path) -> None:
    keep("half", finished=False)
    said = complaint("recipe", "half")
    assert "run half is not finished" in said and "dyno run --resume half" in said


def test_a_run_that_is_not_there_is_refused(homes: Path) -> None:
    assert "no run 'nosuch'" in complaint("recipe", "nosuch")


def test_help_shows_both_verbs(homes: Path) -> None:
    said = dyno("recipe", "--help")
    assert "check" in said.stdout and "write" in said.stdout and "Options" in said.stdout


@pytest.fixture
def url(here: Path) -> str:
    """A database with pages of 8 KiB, beside the recipe for them in the folder `new`."""
    assert dyno("recipe", "example", "--output", "new").returncode == 0
    url = f"sqlite:///{here}/data.sqlite"
    with LoadProcess({}, Launch()) as load:
        load.query(f"{url}?page_size=8192", "VACUUM")
    return url


def test_a_database_that_has_the_levels_passes(url: str) -> None:
    said = dyno("recipe", "check", "new", "--url", url)
    assert said.returncode == 0, said.stderr
    assert "2 in effect" in said.stdout
    document = dyno("recipe", "check", "new", "--url", url, "--json").stdout
    require_valid("recipe-check", document)


def test_a_database_that_differs_is_told_with_both_values(url: str, here: Path) -> None:
    told = json.loads((here / "new" / "recipe.json").read_text())
    told["changes"][0]["level"] = 16384
    (here / "new" / "recipe.json").write_text(json.dumps(told))
    said = dyno("recipe", "check", "new", "--url", url, "--output", "found.json")
    assert said.returncode == 1
    line = next(line for line in said.stdout.splitlines() if "config.page_size" in line)
    assert "differs" in line and "16384" in line and "8192" in line
    require_valid("recipe-check", (here / "found.json").read_text())


def test_a_server_that_does_not_answer_is_an_error(url: str, here: Path) -> None:
    (here / "other.sqlite").write_bytes(b"no database" * 999)
    assert "not a database" in complaint(
        "recipe", "check", "new", "--url", f"sqlite:///{here}/other.sqlite", code=1
    )


def test_what_is_no_recipe_is_refused(homes: Path) -> None:
    assert "there is no recipe in" in complaint("recipe", "check", str(homes), "--url", "sqlite:///x")
