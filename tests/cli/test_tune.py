"""`dyno tune`: a search from its plan to its winner, on a real engine; and what it refuses beforehand."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.study.trials import Purpose
from tests.cli.calls import changed, complaint, dyno
from tests.cli.schemas import require_valid

STUDY = """
title  = "What helps SQLite?"
engine = "sqlite"
design = "search"
blocks = 6
seed   = 3
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[factors]
"config.synchronous"        = ["full", "off"]
"config.cache_size"         = { from = "1M", to = "64M", scale = "log", baseline = "2M" }
"config.journal_mode"       = ["delete", "wal"]
"config.wal_autocheckpoint" = { levels = [1000, 100], only_if = { "config.journal_mode" = "wal" } }
[search]
time  = "2m"
allow = ["durability"]
"""
SPACE = STUDY[STUDY.index("[factors]") : STUDY.index("[search]")]
FEW_POINTS = """
title  = "What helps SQLite?"
engine = "sqlite"
design = "search"
seed   = 3
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[factors]
"config.synchronous" = ["full", "off"]
"config.cache_size"  = ["2M", "4M"]
[search]
time  = "10h"
allow = ["durability"]
[goal]
guards = ["invariants", "mean_ms <= 100x"]
"""


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


def test_the_plan_of_a_search_is_its_space(study: Path) -> None:
    told = dyno("plan", str(study)).stdout
    assert "search of 4 factors with" in told
    assert "1M to 64M" in told and "config.journal_mode is" in told
    assert "levels may give up: durability" in told
    assert "as many trials as fit into 2 min" in told
    document = dyno("plan", str(study), "--json").stdout
    require_valid("plan", document)
    assert len(json.loads(document)["factors"]) == 4 and json.loads(document)["trials"] == []


def test_a_time_that_is_too_short_is_told_beforehand(study: Path) -> None:
    for verb in ("plan", "tune", "run"):
        said = complaint(verb, str(study), "--budget", "3s")
        assert "too few for a search" in said and "give at least" in said
    with Store(store_url()) as store:
        assert store.runs() == []


def test_an_empty_space_is_told_with_the_command_that_proposes_one(study: Path) -> None:
    assert f"dyno tune {study} --suggest" in complaint("tune", changed(study, SPACE, ""))


def test_durability_is_kept_unless_the_study_gives_it_up(study: Path) -> None:
    said = complaint("tune", changed(study, 'allow = ["durability"]', ""))
    assert "`config.synchronous` = off gives up durability" in said


def test_only_a_search_is_tuned(study: Path) -> None:
    factors = '[factors]\n"config.cache_size" = [1, 2]\n'
    study.write_text(f'engine = "sqlite"\n[workload]\nname = "tpcb"\n{factors}')
    assert 'write design = "search"' in complaint("tune", str(study))


@pytest.mark.parametrize("option", [("--until", "margin"), ("--against", "last")])
def test_a_search_has_an_end_and_a_verdict_of_its_own(study: Path, option: tuple[str, str]) -> None:
    assert f"{option[0]} and `design = search` exclude each other" in complaint("run", str(study), *option)


def test_a_search_ends_with_a_winner_that_is_confirmed_and_told_in_every_form(homes: Path) -> None:
    study = homes / "study.toml"
    # So few points that the search ends because it tried them all, however slow this machine is.
    study.write_text(FEW_POINTS)
    done = dyno("tune", str(study), "--json", "--name", "tuned")
    assert done.returncode == 0, done.stderr
    require_valid("report", done.stdout)
    search = json.loads(done.stdout)["search"]
    assert search["confirmed"] and search["winner"]
    assert "config.synchronous" in {change["factor"] for change in search["changes"]}
    assert search["effect"]["low"] > 1.0
    assert search["given_up"][search["winner"]] == ["durability"]
    assert "candidates tried; best candidate-" in done.stderr
    assert "confirming ..." in done.stderr
    with Store(store_url()) as store:
        records = store.records(store.run("tuned").run)
    in_order = sorted(records, key=lambda one: one.trial)
    purposes = [record.purpose for record in in_order if record.purpose is not None]
    assert purposes == sorted(purposes, key=list(Purpose).index)
    images = {
        purpose: {record.reset["image"] for record in records if record.purpose is purpose}
        for purpose in (Purpose.SEARCH, Purpose.CONFIRMATION)
    }
    assert not images[Purpose.SEARCH] & images[Purpose.CONFIRMATION], "the search never saw those data"
    for form, expected in (
        ("terminal", "(gives up durability)"),
        ("markdown", "## The search"),
        ("html", "Its path"),
        ("markdown", "The winner gives up durability."),
        ("junit", "testcase"),
    ):
        told = dyno("report", "tuned", "--format", form)
        assert told.returncode == 0 and expected in told.stdout
    alone = complaint("tune", str(study), "--fleet", "a,b")
    assert "a fleet needs a store that all its hosts reach" in alone
    other = dyno("tune", str(study), "--on", "point_select table_size=500 clients=2", "--json")
    assert other.returncode == 0, other.stderr
    told = json.loads(other.stdout)
    assert [one["name"] for one in told["variants"]] == ["baseline", search["winner"]]
    load, guards = told["study"]["workload"], told["study"]["goal"]["guards"]
    assert (load["name"], load["clients"], load["options"]["table_size"]) == ("point_select", 2, 500)
    assert [guard["text"] for guard in guards] == ["invariants", "mean_ms <= 100x"]


def test_a_search_that_was_cut_short_goes_on_with_the_same_candidates(study: Path) -> None:
    more = FEW_POINTS.replace('"4M"', '"4M", "8M", "16M"').replace("seed ", "blocks = 2\nseed ")
    study.write_text(more)
    assert dyno("tune", str(study), "--quiet").returncode == 0
    with Store(store_url()) as store:
        [summary] = store.runs()
        whole = store.records(summary.run.run)
        kept = [record for record in whole if record.trial < 9]
        store.remove_run(summary.run.run)
        store.add_run(summary.run)
        for record in kept:
            store.add_record(record)
    assert dyno("run", "--resume", summary.run.run, "--quiet").returncode == 0
    with Store(store_url()) as store:
        again = {record.trial: record for record in store.records(summary.run.run)}
    for record in whole:
        if record.block <= max(one.block for one in kept):
            assert again[record.trial].levels == record.levels


def test_on_another_workload_needs_a_winner(study: Path) -> None:
    assert "no search of" in complaint("tune", str(study), "--on", "point_select")
    assert '"tpcz" is no workload' in complaint("tune", str(study), "--on", "tpcz")
    said = complaint("tune", str(study), "--on", "point_select tablesize=9")
    assert 'the workload point_select has no option "tablesize"' in said
    assert "did you mean `table_size`?" in said


def test_a_winner_is_confirmed_on_hosts_of_a_fleet_alone(study: Path) -> None:
    assert "no search of" in complaint("tune", str(study), "--fleet", "a,b")
    assert "--budget and --fleet exclude" in complaint("tune", str(study), "--fleet", "a,b", "--budget", "5m")


def test_a_space_is_proposed_that_the_study_takes(study: Path) -> None:
    told = dyno("tune", changed(study, SPACE, ""), "--suggest")
    assert told.returncode == 0, told.stderr
    assert tomllib.loads(told.stdout)["factors"]
    study.write_text(STUDY.replace(SPACE, told.stdout))
    assert dyno("plan", str(study)).returncode == 0
    with Store(store_url()) as store:
        assert store.runs() == [], "the trial of the baseline is kept nowhere"
