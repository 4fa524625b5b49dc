"""`dyno evaluate`: a searcher of others on a real engine, from its first line to its judgement; and what it
refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dbdyno.cli.schema import schema_of
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import EvaluationRun
from dbdyno.records.store import Store
from dbdyno.study.trials import Purpose
from tests.cli.calls import complaint, dyno
from tests.conftest import DYNO
from tests.needs import require_searcher
from tests.warm import Process

STUDY = """
title  = "What helps SQLite?"
engine = "sqlite"
design = "search"
blocks = 6
seed   = 3
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.1s"
[factors]
"config.synchronous"  = ["full", "off"]
"config.cache_size"   = { from = "1M", to = "64M", scale = "log", baseline = "2M" }
"config.journal_mode" = ["delete", "wal"]
[search]
time  = "5m"
allow = ["durability"]
"""
SEARCHERS = Path(__file__).parents[2] / "docs" / "guides" / "searchers.py"


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


def asked(child: Process, line: object) -> dict[str, Any]:
    """What is said to a line."""
    assert child.stdin is not None
    child.stdin.write(json.dumps(line) + "\n")
    child.stdin.flush()
    return heard(child)


def heard(child: Process) -> dict[str, Any]:
    assert child.stdout is not None
    text = child.stdout.readline()
    require_line(text)
    line: dict[str, Any] = json.loads(text)
    return line


def require_line(text: str) -> None:
    """That a line keeps the schema of its kind."""
    schema, line = schema_of("evaluate"), json.loads(text)
    Draft202012Validator(schema).validate(line)
    place: str = schema["discriminator"]["mapping"][line["line"]]
    assert line.keys() <= schema["$defs"][place.rpartition("/")[2]]["properties"].keys()


def evaluating(*arguments: str) -> Process:
    pipe = subprocess.PIPE
    return Process("evaluate", *arguments, stdin=pipe, stdout=pipe, stderr=pipe)


OFF = {"levels": {"config.synchronous": "off"}}
WAL = {"levels": {"config.journal_mode": "wal", "config.synchronous": "off"}}


def test_a_killed_evaluation_goes_on_and_its_best_are_measured_again(study: Path) -> None:
    with evaluating(str(study), "--own") as child:
        opening = heard(child)
        first, second = asked(child, OFF), asked(child, WAL)
        assert asked(child, {"levels": {"config.journal_mod": "wal"}})["line"] == "refused"
        child.kill()
        child.wait()
    assert (first["outcome"], first["kept"], second["kept"]) == ("measured", False, False)
    with evaluating("--resume", opening["run"]) as child:
        again = heard(child)
        assert (again["run"], again["answered"], again["floor"]) == (opening["run"], 2, opening["floor"])
        for line, before in ((OFF, first), (WAL, second)):
            after = asked(child, line)
            assert after["kept"] and after["ratio"] == before["ratio"]
        assert not asked(child, OFF)["kept"]
        assert child.stdin is not None
        child.stdin.close()
        last = heard(child)
        assert child.wait() == 0
    assert {one["side"] for one in last["judged"]} & {"theirs", "both"}
    assert any(one["holds"] for one in last["judged"]), "without a sync a commit is many times as fast"
    with Store(store_url()) as store:
        run = store.run(opening["run"])
        records = store.records(run.run)
    assert isinstance(run, EvaluationRun) and run.own
    names = [one.variant for one in records if one.purpose is Purpose.SEARCH]
    assert names.count("candidate-1") == 2 and names.count("candidate-2") == 1
    assert any(name.startswith("own-") for name in names)
    told = dyno("report", run.run, "--format", "markdown").stdout
    assert "| again / told |" in told and "| found by |" in told
    assert "Measured again in fresh blocks" in told and "Evaluation: a searcher of others" in told


def test_ctrl_c_ends_with_what_was_answered(study: Path) -> None:
    with evaluating(str(study)) as child:
        opening, answer = heard(child), asked(child, OFF)
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
        assert child.stderr is not None
        said = child.stderr.read()
    assert answer["outcome"] == "measured" and f"dyno evaluate --resume {opening['run']}" in said
    assert "dyno run does not carry out" in complaint("run", "--resume", opening["run"])


def searched(study: Path, name: str) -> tuple[str, list[Record]]:
    """What a searcher of others printed after three questions, and the records of its search."""
    python = require_searcher(name)
    folder = study.parent / "bin"
    folder.mkdir()
    command = folder / "dyno"
    command.write_text(f'#!{sys.executable}\nfrom dbdyno.cli import main\nmain()\n')  # fmt: skip
    command.chmod(0o755)
    surroundings = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [python, SEARCHERS, name, str(study), "3", "--quiet"],
        capture_output=True,
        text=True,
        env=surroundings,
        cwd=study.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the input ended" in done.stdout
    with Store(store_url()) as store:
        [summary] = store.runs()
        records = store.records(summary.run.run)
    assert summary.finished
    return done.stdout, [one for one in records if one.purpose is Purpose.SEARCH]


@pytest.mark.parametrize("name", ["optuna", "smac", "mlos"])
def test_a_searcher_of_others_asks_and_is_judged(study: Path, name: str) -> None:
    _, records = searched(study, name)
    assert {"baseline", "candidate-1"} <= {one.variant for one in records}


def test_levels_that_fail_are_failed_trials_of_mlos_bench(study: Path) -> None:
    locked = '"config.locking_mode" = ["normal", "exclusive"]'
    text = STUDY.replace('"config.journal_mode" = ["delete", "wal"]', locked)
    study.write_text(text.replace("[factors]", "clients = 3\n[factors]"))
    said, records = searched(study, "mlos_bench")
    ended = [one.outcome for one in records if one.variant != "baseline"]
    failed = sum(one is not Outcome.MEASURED for one in ended)
    assert 0 < failed < len(ended), "of three clients two find the file locked"
    found = re.search(r"mlos_bench: 3 trials, (\d) failed; its best: (.*)", said)
    assert found and int(found[1]) == failed
    assert json.loads(found[2])["config.locking_mode"] == "normal"


def test_own_search_is_handed_out_without_a_trial(study: Path) -> None:
    results = study.parent / "results"
    results.write_text(json.dumps({**OFF, "ratio": 9.5}) + "\n")
    said = subprocess.run(
        [*DYNO, "evaluate", str(study), "--ask", "--tell", str(results)],
        input="no JSON\n" + json.dumps({**WAL, "why": "it crashed"}) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = said.stdout.splitlines()
    for line in lines:
        require_line(line)
    told = [json.loads(line) for line in lines]
    assert [one["line"] for one in told] == ["candidate", "refused", "candidate"]
    assert told[0]["number"] == 2
    with Store(store_url()) as store:
        assert store.runs() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no study was named"),
        (("--ask",), "no study was named"),
        (("STUDY", "--tell", "x"), "add --ask"),
        (("STUDY", "--ask", "--tell", "nowhere"), "cannot read nowhere"),
        (("STUDY", "--ask", "--own"), "--own"),
        (("STUDY", "--budget", "1s"), "too few for a search"),
        (("STUDY", "--resume", "x", "--own"), "a run goes on as it began"),
    ],
)
def test_a_mistake_is_one_message(study: Path, arguments: tuple[str, ...], said: str) -> None:
    named = [str(study) if one == "STUDY" else one for one in arguments]
    assert said in complaint("evaluate", *named)


def test_a_study_without_a_space_is_refused(study: Path) -> None:
    plain = STUDY[: STUDY.index("[search]")].replace('design = "search"\n', "")
    study.write_text(re.sub(r"\{.*\}", '["2M", "4M"]', plain))
    for asks in ((), ("--ask",)):
        assert 'write design = "search"' in complaint("evaluate", str(study), *asks)
