"""The verbs for stored runs: `runs`, `baseline`, `compare`, and `profile`, once on a real engine."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dbdyno.findings.profile import FUNCTIONS_IN_DOCUMENT
from dbdyno.host import perf
from dbdyno.host.host_lock import alone
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import STUDY, calls_counted, complaint, dyno
from tests.cli.runs_cases import runs as runs
from tests.cli.schemas import require_valid
from tests.needs import skipping_blocked


def names(*arguments: str) -> list[str]:
    return [run["run"] for run in json.loads(dyno("runs", *arguments, "--json").stdout)]


def test_runs_are_chosen_by_study_age_and_number(runs: Path) -> None:
    assert sorted(names()) == ["first", "other", "second"]
    assert len(names("--limit", "2")) == 2
    assert names("--study", "other.toml") == ["other"]
    assert names("--since", "1h") == [], "the factory's runs are of a day long past"
    assert "no such run" in dyno("runs", "--study", "nowhere").stderr


@pytest.mark.parametrize("verb", ["runs", "museum"])
def test_each_stored_run_is_parsed_once(runs: Path, verb: str) -> None:
    with calls_counted() as calls:
        assert dyno(verb).returncode == 0
    assert calls["Store._parse_run"] == 3


def test_a_list_says_what_each_run_said_and_reads_its_records_once(runs: Path) -> None:
    def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(dyno("runs", "--json").stdout)
        return found

    assert all(run["verdicts"] == {} for run in listed()), "none is finished"
    with Store(store_url()) as store:
        store.finish_run("first")
    first = next(run for run in listed() if run["run"] == "first")
    assert first["verdicts"] == {"inconclusive": 1} and "config.page_size=16384" in first["answer"]
    assert "1 inconclusive" in dyno("runs").stdout
    with calls_counted() as calls:
        assert first in listed()
    assert not calls["Store.records"]


def test_a_list_needs_no_word_and_takes_one(runs: Path) -> None:
    for verb in ("runs", "engines", "builds", "cache", "data", "baseline"):
        bare, named = dyno(verb, "--json"), dyno(verb, "list", "--json")
        assert (bare.returncode, bare.stdout) == (0, named.stdout), verb
    assert names("list", "--limit", "2") == names("--limit", "2")
    assert "no run yet" in dyno("runs", "--store", f"sqlite:///{runs}/none.sqlite", "--limit", "2").stderr
    assert "no such option" in complaint("runs", "--limits", "2").lower()


def test_last_passes_over_what_has_no_result_and_says_so(runs: Path) -> None:
    with Store(store_url()) as store:
        began = store.run("other")
        store.add_run(began.model_copy(update={"run": "begun", "created_unix_s": began.created_unix_s + 9.0}))
    shown = dyno("report")
    assert "run begun began later and has no result yet: this is " in shown.stderr
    with alone("mine", 60.0, run="begun"):
        assert "run begun is under way and has no result yet" in dyno("report", "--trials").stderr
    with alone("mine", 60.0, run="first"):
        assert "run first is under way: this is what it has by now" in dyno("report", "first").stderr
    assert "under way" not in dyno("report", "first").stderr


def test_a_run_that_cannot_be_read_stands_in_nobodys_way(runs: Path) -> None:
    with Store(store_url()) as opened:
        opened.finish_run("other")
    with sqlite3.connect(runs / "data" / "dyno" / "dyno.sqlite") as store:
        store.execute("UPDATE dyno_runs SET document = '{}' WHERE run = 'first'")
        store.execute("UPDATE dyno_records SET document = '{' WHERE run = 'second' AND trial = 0")
    listed = dyno("runs")
    assert "run first cannot be read" in listed.stderr and "dyno runs rm" in listed.stderr
    assert sorted(names()) == ["other", "second"]
    assert json.loads(dyno("museum", "--json").stdout)["unread"] == ["first", "second"]
    assert dyno("trend", str(runs / "other.toml")).returncode == 0
    assert dyno("report", "other").returncode == 0
    assert "cannot be read" in complaint("report", "first", code=1)
    assert "cannot be read" in complaint("report", "second", code=1)
    assert dyno("runs", "rm", "first", "second", "--yes").returncode == 0
    assert names() == ["other"] and "cannot be read" not in dyno("runs").stderr


def test_a_run_has_a_name_and_a_note(runs: Path) -> None:
    assert dyno("runs", "name", "first", "before").returncode == 0
    assert dyno("runs", "note", "before", "the old disk").returncode == 0
    assert "the old disk" in " ".join(dyno("runs").stdout.split())
    named = {run["run"]: (run["name"], run["note"]) for run in json.loads(dyno("runs", "--json").stdout)}
    assert named["first"] == ("before", "the old disk") and named["other"] == ("", "")
    assert "right / left is" in dyno("compare", "before", "second").stdout
    assert "already" in complaint("runs", "name", "second", "before")
    assert "already" in complaint("run", str(runs / "first.toml"), "--name", "before")


def test_a_baseline_is_set_listed_and_forgotten(runs: Path) -> None:
    assert dyno("baseline", "set", "main", "sec").returncode == 0
    (listed,) = json.loads(dyno("baseline", "list", "--json").stdout)
    assert (listed["name"], listed["run"]) == ("main", "second")
    assert "main  second" in dyno("baseline", "list").stdout
    assert "is the baseline main" in complaint("runs", "rm", "main", "--yes")
    assert dyno("baseline", "rm", "main").returncode == 0
    assert "no baseline yet" in dyno("baseline", "list").stderr


def test_runs_are_deleted_only_when_somebody_says_so(runs: Path, tmp_path: Path) -> None:
    with mock.patch.object(sys, "stdin", io.StringIO()):
        assert "add --yes" in complaint("runs", "rm", "first")
    assert dyno("runs", "rm", "first", "second", "--yes").stdout == "deleted first\ndeleted second\n"
    assert names() == ["other"]
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.sqlite"
    assert "no run 'other'" in complaint("runs", "--store", elsewhere, "rm", "other", "--yes")


def test_two_runs_of_one_study_are_compared(runs: Path) -> None:
    said = dyno("compare", "first", "second")
    assert said.returncode == 0, said.stderr
    assert "right / left is" in said.stdout and "config.page_size=16384" in said.stdout


def test_a_side_may_have_several_runs(runs: Path) -> None:
    with Store(store_url()) as store:
        third = store.run("second").model_copy(update={"run": "third"})
        store.add_run(third)
        for record in store.records("second"):
            store.add_record(record.model_copy(update={"run": "third"}))
    said = dyno("compare", "first,third", "second", "--format", "markdown").stdout
    assert "run second beside runs first, third" in said
    with Store(store_url()) as store:
        store.change_run(third.but(host=third.host.but(name="elsewhere")))
    assert "on different hosts" in complaint("compare", "first,third", "second")


@pytest.mark.parametrize(
    ("form", "beginning"), [("html", "<!doctype html>"), ("markdown", "# "), ("json", "{")]
)
def test_a_comparison_is_written_in_every_form(runs: Path, tmp_path: Path, form: str, beginning: str) -> None:
    path = tmp_path / "comparison"
    said = dyno("compare", "first", "second", "--format", form, "--output", str(path))
    assert said.stdout.strip() == str(path), said.stderr
    assert path.read_text().lstrip().startswith(beginning)


def test_runs_of_different_studies_are_refused(runs: Path) -> None:
    assert "different studies" in complaint("compare", "first", "other")
    assert "with itself" in complaint("compare", "first", "first")
    assert "with itself" in complaint("compare", "first,second", "first")
    assert "has no variant 'x'" in complaint("compare", "first", "second", "--from", "x")


def test_a_variant_that_is_not_there_cannot_be_profiled(runs: Path) -> None:
    assert "no variant 'x'" in complaint("profile", "first", "--variant", "x")


def test_what_goes_with_counting_alone_is_refused_without_it_and_the_reverse(runs: Path) -> None:
    assert "add --counted" in complaint("profile", "first", "--cache-sim")
    assert "no stacks to fold" in complaint("profile", "first", "--counted", "--format", "folded")
    assert "exclude" in complaint("profile", "first", "--json", "--format", "folded")
    assert "no flame graph" in complaint("profile", "first", "--counted", "--output", "page.html")


def test_a_real_setup_is_profiled(homes_with_engines: Path, tmp_path: Path) -> None:
    with skipping_blocked():
        perf.Sampler(tmp_path)
    path = homes_with_engines / "study.toml"
    # Long enough that perf has begun by then on a busy machine as well, and with little to do for the CPU.
    path.write_text(STUDY.replace('duration = "1s"', 'duration = "4s"\nrate_per_s = 200'))
    ran = dyno("run", str(path), "--blocks", "1", "--quiet")
    assert ran.returncode == 0, ran.stderr
    page = tmp_path / "flame.html"
    said = dyno("profile", "last", "--json", "--output", str(page))
    assert said.returncode == 0, said.stderr
    require_valid("profile", said.stdout)
    (profile,) = json.loads(said.stdout)["profiles"]
    assert profile["samples"] > 0 and profile["cpu_us_per_op"] > 0
    own = sum(time["own_us"] for time in profile["functions"])
    # Each sample has a share of the time, and the functions with the least of it may be left out.
    left_out = len(profile["functions"]) == FUNCTIONS_IN_DOCUMENT
    assert own == pytest.approx(profile["cpu_us_per_op"], rel=0.5 if left_out else 1e-6)
    assert "<svg" in page.read_text()
    lines = dyno("profile", "last", "--format", "folded").stdout.splitlines()
    stacks = [line.rpartition(" ") for line in lines]
    assert sum(int(ns) for _, _, ns in stacks) > 0 and any(";" in stack for stack, _, _ in stacks)
    kept = json.loads(dyno("runs", "--json").stdout)
    assert [run["outcomes"] for run in kept] == [{"measured": 2}], "a profile is no measured trial"


def test_a_store_of_another_machine_is_never_made_here(homes: Path) -> None:
    kept = homes / "second.sqlite"
    kept.touch()
    meant = str(kept).lstrip("/")
    said = complaint("compare", "a1", "b1", "--right-store", f"sqlite:///{meant}")
    assert f"no store {meant}" in said and f"a path from the root has four slashes: sqlite:///{kept}" in said
    gone = homes / "gone.sqlite"
    assert f"no store {gone}" in complaint("compare", "a1", "b1", "--right-store", f"sqlite:///{gone}")
    assert not gone.exists()
