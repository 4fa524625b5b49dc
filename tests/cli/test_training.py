"""Builds that a workload trains, from the plan to the report: real trainings of a real engine."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbdyno.host import cache, paths
from dbdyno.host.host_lock import alone
from dbdyno.obtain.source import making
from dbdyno.obtain.source.bolt import proved_bolt
from dbdyno.obtain.source.build import flags_of
from dbdyno.obtain.source.toolchain import toolchain
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.needs import skipping_blocked
from tests.sqlite_fork import STEPPING, make_fork
from tests.warm import Process

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes", "quick_gate")]

STUDY = """
title  = "Which training?"
engine = "sqlite"
blocks = 1

[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"

[settings]
"config.synchronous" = "OFF"
"source.origin"      = "fork"
"source.recipe"      = "recipe.toml"

[factors]
"build.pgo" = [LEVELS]

[goal]
counted = false
"""
BY_TPCB, BY_POINT_SELECT = "tpcb transactions=50", "point_select table_size=100 transactions=60"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(making, "_failures", {})
    make_fork(tmp_path / "studies", STEPPING)
    return tmp_path / "studies"


def study_in(folder: Path, *levels: str, more: str = "") -> str:
    path = folder / "training.toml"
    text = STUDY.replace("LEVELS", ", ".join(map(json.dumps, levels)))
    path.write_text(text.replace("[factors]", f"{more}\n\n[factors]"))
    return str(path)


def outcomes(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {trial["variant"]: (trial["outcome"], trial["cause"]) for trial in report["trials"]}


def test_two_trainers_make_two_builds_that_tell_how_they_were_trained(folder: Path) -> None:
    study = study_in(folder, "off", BY_TPCB, BY_POINT_SELECT)
    planned = dyno("plan", study)
    assert "3 builds, 0 of them there; about 14 s for the others" in planned.stdout, planned.stderr
    told = " ".join(planned.stdout.split())
    assert f"gcc -O2 PGO by {BY_TPCB}: about 6 s, trained before the first trial gcc" in told
    assert told.count("trained by tpcb scale=1, 50 transactions of 1 client trained by point_select") == 1
    foreseen = json.loads(dyno("plan", study, "--json").stdout)["builds"]
    none, tpcb, point_select = (build.get("trainer", "") for build in foreseen)
    assert (none, tpcb) == ("", "tpcb scale=1, 50 transactions of 1 client")
    assert re.fullmatch(r"point_select .*\btable_size=100\b.*, 60 transactions of 1 client", point_select)
    done = dyno("run", study, "--json")
    assert done.returncode == 0, done.stderr
    assert "training a build by tpcb scale=1, 50 transactions of 1 client" in done.stderr
    report = json.loads(done.stdout)
    assert {outcome for outcome, _ in outcomes(report).values()} == {"measured"}
    kept = dyno("cache", "builds", "--json").stdout
    require_valid("builds", kept)
    trainings = [row["training"] for row in json.loads(kept) if row["training"]]
    assert {one["trainer"]["workload"]: one["transactions"] for one in trainings} == {
        "tpcb": 50,
        "point_select": 60,
    }
    assert len({one["profile"] for one in trainings}) == 2
    assert all((one["files"], one["functions"], one["executed"]) == (1, 3, 3) for one in trainings)
    assert "trained by tpcb scale=1, 50 transactions" in " ".join(dyno("cache", "builds").stdout.split())
    trials = json.loads(dyno("report", "last", "--json", "--trials").stdout)["trials"]
    evidence = [one for trial in trials for one in trial["evidence"] if one["factor"] == "build.pgo"]
    assert sum("3 of 3 functions executed" in one["effective"]["value"] for one in evidence) == 2
    again = dyno("run", study, "--quiet")
    assert again.returncode == 0 and "training a build" not in again.stderr


def test_bolt_lays_a_trained_build_out_anew_by_a_training_of_its_own(folder: Path) -> None:
    with skipping_blocked():
        proved_bolt(toolchain("gcc"), flags_of("bolt", BY_TPCB, "gcc"))
    study = study_in(folder, "off", BY_TPCB, more=f'"build.bolt" = {json.dumps(BY_POINT_SELECT)}')
    planned = " ".join(dyno("plan", study).stdout.split())
    assert f"gcc -O2 BOLT by {BY_POINT_SELECT}: about 4 s, trained before the first trial" in planned
    both = "tpcb scale=1, 50 transactions of 1 client and point_select [^:]*, 60 transactions of 1 client"
    assert "about 8 s, trained before the first trial" in planned
    assert re.search(f"trained by {both}", planned)
    done = dyno("run", study, "--json")
    assert done.returncode == 0, done.stderr
    assert {outcome for outcome, _ in outcomes(json.loads(done.stdout)).values()} == {"measured"}
    kept = dyno("cache", "builds", "--json").stdout
    require_valid("builds", kept)
    rows = {row["build"]: row for row in json.loads(kept)}
    assert {bool(row["training"]) for row in rows.values()} == {False, True}
    assert {row["bolt"]["trainer"]["workload"] for row in rows.values()} == {"point_select"}
    assert all(row["bolt"]["transactions"] == 60 for row in rows.values())
    told = " ".join(dyno("cache", "builds").stdout.split())
    assert re.search(r"by BOLT: trained by point_select [^:]*, 60 transactions of 1 client: ", told)


def test_profiles_that_are_not_written_and_trainings_that_fail_are_outcomes(folder: Path) -> None:
    study = study_in(folder, "off", BY_TPCB, "script", more='"build.flags" = "-fno-profile-generate"')
    report = json.loads(dyno("run", study, "--json").stdout)
    ended = outcomes(report)
    assert ended["baseline"][0] == "measured"
    assert ended[f"build.pgo={BY_TPCB}"] == ("failed", "the training wrote no profile")
    outcome, cause = ended["build.pgo=script"]
    assert outcome == "failed" and "the training by script failed: " in cause
    assert [row["build"] for row in json.loads(dyno("cache", "builds", "--json").stdout)] == [
        "gcc -O2 -fno-profile-generate"
    ]


def test_a_server_that_dies_in_its_training_fails_the_build(folder: Path) -> None:
    code = folder / "fork" / "fork.c"
    code.write_text(
        "#include <stdlib.h>\n"
        + code.read_text().replace("ends++;", 'if (++ends > 90 && getenv("GCOV_PREFIX")) abort();')
    )
    report = json.loads(dyno("run", study_in(folder, "off", "tpcb transactions=500"), "--json").stdout)
    outcome, cause = outcomes(report)["build.pgo=tpcb transactions=500"]
    assert outcome == "failed" and "the training by tpcb failed: the load process died" in cause


def test_what_is_no_trainer_is_a_mistake_of_the_study(folder: Path) -> None:
    said = complaint("plan", study_in(folder, "off", "tpcbb"))
    assert '"tpcbb" is no workload that could train a build' in said and "`tpcb`" in said


ENDS_WITHIN_S = 240.0
"""A bound for a run that hangs, far above what a build and a training take."""
KILL_IN_TRAINING = """
import os, signal, sys
from click.testing import CliRunner
from dbdyno.prepare_run import begun
from dbdyno.cli import main
carried_out = begun.run_trial
def killed(trial, bench):
    carried_out(trial, bench)
    print("trained", flush=True)
    os.kill(os.getpid(), signal.Signals[how])
begun.run_trial = killed
study = sys.argv[2]
how = sys.argv[1]
sys.argv = ["dyno", "run", study, "--quiet"]
main()
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_run_that_was_ended_in_a_training_goes_on_with_a_new_one(folder: Path, how: str) -> None:
    study = study_in(folder, "off", BY_TPCB)
    ended = subprocess.run(
        [sys.executable, "-c", KILL_IN_TRAINING, how, study],
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_WITHIN_S,
    )
    assert "trained" in ended.stdout, ended.stderr
    assert ended.returncode == {"SIGKILL": -signal.SIGKILL, "SIGINT": 130}[how]
    assert not any(row["training"] for row in json.loads(dyno("cache", "builds", "--json").stdout))
    done = dyno("run", study, "--json")
    assert done.returncode == 0, done.stderr
    assert {outcome for outcome, _ in outcomes(json.loads(done.stdout)).values()} == {"measured"}
    assert not list((paths.cache() / "trials").glob("*training*"))
    cache.release()


def test_builds_that_are_made_ahead_hold_this_host_while_one_trains_alone(folder: Path) -> None:
    """Beside another Dyno that measures all is compiled, and the training waits."""
    study = study_in(folder, "off", BY_TPCB)
    with alone("somebody's study", 60.0):
        child = Process("cache", "builds", "make", study, stderr=subprocess.PIPE)
        assert child.stderr is not None
        said = list(itertools.takewhile(lambda line: "waiting for another dyno" not in line, child.stderr))
        assert not any(row["training"] for row in json.loads(dyno("cache", "builds", "--json").stdout))
    _, rest = child.communicate(timeout=60)
    assert child.returncode == 0, "".join(said) + rest
    assert "training a build by tpcb" in rest
    builds = json.loads(dyno("cache", "builds", "--json").stdout)
    assert sorted(row["training"] is not None for row in builds) == [False, True]
