"""A study whose variants are builds, from its plan to its report, and what is kept of the builds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dbdyno import build_check
from dbdyno.engines import built
from dbdyno.host import cache, paths
from dbdyno.kinds.held_against import setup_of
from dbdyno.obtain.source import commands, compared, making
from dbdyno.prepare_run import building
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.trial import count
from tests.cli.calls import calls_counted, complaint, dyno
from tests.cli.schemas import require_valid
from tests.needs import needs_valgrind
from tests.sqlite_fork import CODE, LOSES_ROWS, make_fork, write_patch, wrong_code

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes", "quick_gate")]

STUDY = """
title  = "Which build?"
engine = "sqlite"
design = "one-at-a-time"
blocks = 1

[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"

[settings]
"source.origin"      = "fork"
"source.recipe"      = "recipe.toml"
"config.synchronous" = "OFF"

[goal]
counted = false

[factors]
"build.optimisation" = ["-O2", "-O0"]
"build.flags"        = ["none", "-Wall"]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    make_fork(tmp_path / "studies")
    path = tmp_path / "studies" / "builds.toml"
    path.write_text(STUDY)
    return path


def test_a_plan_tells_which_builds_will_be_made_and_makes_none(study: Path) -> None:
    with calls_counted() as calls:
        planned = dyno("plan", str(study))
    assert calls["builds_of"] == 1, "what takes a look at every source is done once"
    assert planned.returncode == 0, planned.stderr
    assert "3 builds, 0 of them there; about 6 s for the others" in planned.stdout
    assert "gcc -O0: about 2 s" in planned.stdout
    assert "correctness gate: 3 builds to ask, about 36 s" in planned.stdout
    assert "there are no builds" in dyno("cache", "builds").stderr
    document = json.loads(dyno("plan", str(study), "--json").stdout)
    assert document["builds"][0]["variants"] == ["baseline"]


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ('"build.compiler" = ["gcc", "gcc-99"]', "there is no compiler gcc-99 here"),
        ('"build.compiler" = ["gcc-99", "gcc"]', "there is no compiler gcc-99 here"),
        ('"build.flags" = ["none", "-fno-such-thing"]', "gcc rejects a flag"),
    ],
)
def test_a_build_that_cannot_be_made_is_refused_before_any_is_made(
    study: Path, levels: str, told: str
) -> None:
    study.write_text(STUDY.split('"build.opt')[0] + levels)
    line = len(study.read_text().splitlines())
    for verb in ("plan", "run"):
        said = complaint(verb, str(study))
        assert f"line {line}: the build gcc" in said and f" cannot be made: {told}" in said
    assert not dyno("runs").stdout and "there are no builds" in dyno("cache", "builds").stderr


def test_a_run_makes_its_builds_and_says_what_came_of_each(study: Path) -> None:
    done = dyno("run", str(study), "--json")
    assert "gcc -O2 -Wall: the same file as gcc -O2, byte for byte" in done.stderr
    report = json.loads(done.stdout)
    outcomes = {trial["variant"]: trial["outcome"] for trial in report["trials"]}
    assert outcomes == {
        "baseline": "measured",
        "build.optimisation=-O0": "measured",
        "build.flags=-Wall": "inert",
    }
    listed = dyno("cache", "builds").stdout
    assert "gcc -O2 (gcc " in listed and "gcc -O0 (gcc " in listed and "in all:" in listed
    kept = dyno("cache", "builds", "--json").stdout
    require_valid("builds", kept)
    assert {row["build"] for row in json.loads(kept)} == {"gcc -O2", "gcc -O0", "gcc -O2 -Wall"}
    assert " ".join(listed.split()).count("correctness gate: passed (tpcb, scale 1, synchronous OFF)") == 3
    assert {row["gate"][0]["found"] for row in json.loads(kept)} == {"passed"}
    planned = dyno("plan", str(study)).stdout
    assert "3 builds, 3 of them there" in planned
    assert "gcc -O0: there; correctness gate: passed" in planned and "to ask" not in planned
    cache.release()
    assert dyno("cache", "free", "--kind", "builds").returncode == 0
    assert json.loads(dyno("cache", "builds", "--json").stdout) == []


def test_a_build_that_failed_beside_others_is_not_tried_again(study: Path) -> None:
    code, recipe = study.parent / "fork" / "fork.c", study.parent / "recipe.toml"
    code.write_text(f"#ifdef BAD\n#error it is bad\n#endif\n{code.read_text()}")
    building = 'name = "count"\ncommand = ["sh", "-c", "echo once >>{source}/../../count"]'
    recipe.write_text(recipe.read_text().replace("[[steps]]", f"[[steps]]\n{building}\n[[steps]]"))
    study.write_text(STUDY.split('"build.opt')[0] + '"build.flags" = ["none", "-DBAD"]\n')
    done = dyno("run", str(study), "--json")
    assert "it is bad" in done.stderr
    outcomes = {trial["variant"]: trial["outcome"] for trial in json.loads(done.stdout)["trials"]}
    assert outcomes == {"baseline": "measured", "build.flags=-DBAD": "failed"}
    assert (paths.cache() / "builds" / "count").read_text() == "once\n" * 2


def test_a_build_that_answers_wrongly_is_broken_and_stays_so(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its patch adds functions that take the place of the host's. It loses one row in a thousand."""
    monkeypatch.setattr(build_check, "OPERATIONS", 2000)
    write_patch(study.parent / "hasty.patch", wrong_code(LOSES_ROWS))
    study.write_text(STUDY.split('"build.opt')[0] + '"source.patches" = ["none", "hasty.patch"]\n')
    done = dyno("run", str(study), "--json", "--name", "hasty")
    cause = "the build failed the correctness gate at balances_equal: "
    assert f"patches hasty.patch: {cause}" in done.stderr
    [right, wrong] = json.loads(done.stdout)["trials"]
    right, wrong = sorted((right, wrong), key=lambda trial: trial["variant"])
    assert (right["outcome"], wrong["outcome"]) == ("measured", "broken")
    assert wrong["cause"].startswith(cause) and wrong["response"] is None
    listed = " ".join(dyno("cache", "builds").stdout.split())
    assert "correctness gate: failed at balances_equal (tpcb, scale 1" in listed
    assert cause in " ".join(dyno("museum").stdout.split())
    again = dyno("run", str(study), "--json", "--fail-on", "broken")
    assert again.returncode == 4 and "the correctness gate, with" not in again.stderr


@needs_valgrind
def test_builds_are_counted_unasked(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "WARMUP_OPERATIONS", 20)
    monkeypatch.setattr(count, "OPERATIONS", 20)
    monkeypatch.setattr(building, "counts", lambda event: "this CPU has no such counter")
    study.write_text(STUDY.split('"build.flags"')[0].replace("counted = false", ""))
    planned = " ".join(dyno("plan", str(study)).stdout.split())
    assert "2 trials under Valgrind" in planned and "the counts take about 30 s" in planned
    done = dyno("run", str(study), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["run"]["counting"]["by"] == "valgrind"
    baseline, other = report["counted"]
    assert baseline["instructions_per_op"] > 0 and other["ratio"] is not None
    shown = " ".join(dyno("report", report["run"]["run"], "--details").stdout.split())
    assert "Counted work" in shown
    # What a run decided on holds for all of it.
    monkeypatch.setattr(building, "counts", lambda event: "")
    assert dyno("run", "--resume", report["run"]["run"], "--add-blocks", "1", "--quiet").returncode == 0


PLACEBOS = """
"build.optimisation" = ["-O2", "-O0"]
"build.flags"        = ["none", "-Wall"]
"build.layout"       = ["none", 1, 2]
"""


def with_more_functions(study: Path) -> None:
    """One function has nowhere else to lie."""
    code = study.parent / "fork" / "fork.c"
    names = ("read", "write", "commit", "undo", "open", "close")
    more = "".join(f"int {name}_{at}(int n) {{ return n * {at + 3}; }}\n" for at, name in enumerate(names))
    code.write_text(code.read_text() + more)


def test_an_inert_build_and_placebos_are_told_from_a_build_that_differs(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_more_functions(study)
    text = STUDY.partition("[factors]")[0].replace("blocks = 1", "blocks = 6")
    study.write_text(f"{text}[factors]{PLACEBOS}")
    done = dyno("run", str(study), "--name", "first", "--json")
    assert done.returncode == 0, done.stderr
    assert "the baseline's code, so without a further trial: build.flags=-Wall" in done.stderr
    report = json.loads(done.stdout)
    trials = Counter(trial["variant"] for trial in report["trials"])
    assert trials == {
        "baseline": 6,
        "build.optimisation=-O0": 6,
        "build.flags=-Wall": 1,
        "build.layout=1": 6,
        "build.layout=2": 6,
    }
    found = {one["name"]: one for one in report["variants"]}
    assert report["answer"]["inert"] == ["build.flags=-Wall"]
    assert found["build.flags=-Wall"]["verdict"] == "inert"
    assert found["build.flags=-Wall"]["code"]["moved"] == 0
    assert found["build.optimisation=-O0"]["code"]["functions"]["differing"] == 7
    for seed in (1, 2):
        placebo = found[f"build.layout={seed}"]
        assert (placebo["role"], placebo["verdict"]) == ("placebo", None)
        assert placebo["code"]["likeness"] == "inert" and placebo["code"]["moved"] >= 1
    assert report["method"]["layout"]["placebos"] == 2
    require_valid("report", done.stdout)
    text = " ".join(dyno("report", "first", "--details").stdout.split())
    assert "2 placebo builds differ from the baseline by up to" in text
    assert "What the builds changed" in text and "≡ inert" in text
    assert "build.flags = -Wall" in dyno("museum", "--outcome", "inert").stdout

    def compared_again(*_: object) -> None:
        raise AssertionError("two builds are compared once")

    monkeypatch.setattr(compared, "compare_code", compared_again)
    assert dyno("run", str(study), "--quiet", "--blocks", "1").returncode == 0


def test_a_run_that_was_cut_short_leaves_inert_builds_out(study: Path) -> None:
    text = STUDY.partition("[factors]")[0]
    study.write_text(f"{text}[factors]{PLACEBOS}")
    assert dyno("run", str(study), "--quiet", "--name", "first").returncode == 0
    done = dyno("run", "--resume", "first", "--add-blocks", "1", "--json")
    trials = [trial["variant"] for trial in json.loads(done.stdout)["trials"]]
    assert trials.count("build.flags=-Wall") == 1 and trials.count("baseline") == 2


def test_a_run_says_that_a_build_could_reach_the_network(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "wrapper", lambda: None)
    monkeypatch.setattr(making, "wrapper", lambda: None)
    done = dyno("run", str(study))
    assert "gcc -O2: its build could reach the network" in " ".join((done.stdout + done.stderr).split())


def test_a_reference_of_another_source_is_not_measured_again(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.write_text(STUDY.split('"build.flags"')[0])
    assert dyno("run", str(study), "--quiet", "--name", "first").returncode == 0
    same = dyno("run", str(study), "--against", "first", "--name", "same")
    assert "first is measured again" in same.stderr, same.stderr
    assert "2 trials and 1 of the reference" in same.stderr
    code = study.parent / "fork" / "fork.c"
    code.write_text(code.read_text() + "int more;\n")
    monkeypatch.setattr(built, "_looks", built._Looks())
    other = dyno("run", str(study), "--against", "first", "--name", "other")
    assert "first is not measured again: baseline was measured as build " in other.stderr
    assert json.loads(dyno("gate", "other", "--against", "first", "--json").stdout)["way"] == "stored"
    with Store(store_url()) as store:
        runs = [store.run(name) for name in ("first", "same", "other")]
        setups = [setup_of(store, run) for run in runs]
    assert len({run.installation.digest for run in runs}) == 1
    assert setups[0] == setups[1] != setups[2], "a build is a part of the setup"


def test_a_run_does_not_go_on_with_another_source(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = dyno("run", str(study), "--quiet", "--name", "first")
    assert done.returncode == 0, done.stderr
    with Store(store_url()) as store:
        before = store.runs()
    code = study.parent / "fork" / "fork.c"
    code.write_text(code.read_text() + "int more;\n")
    monkeypatch.setattr(built, "_looks", built._Looks())
    said = complaint("run", "--resume", "first", "--add-blocks", "1", "--quiet")
    assert "baseline was measured as build " in said
    with Store(store_url()) as store:
        assert store.runs() == before, "the run has no more blocks, and is finished as it was"


def test_builds_are_made_ahead_of_a_run_and_of_one_variant_if_asked(study: Path) -> None:
    made = dyno("cache", "builds", "make", str(study), "--only", "build.optimisation=-O0")
    assert made.returncode == 0, made.stderr
    assert "1 build, 1 of them there" in made.stdout
    assert [row["build"] for row in json.loads(dyno("cache", "builds", "--json").stdout)] == ["gcc -O0"]
    again = dyno("cache", "builds", "make", str(study), "--json")
    require_valid("builds-make", again.stdout)
    found = json.loads(again.stdout)
    assert [(one["variants"], one["there"]) for one in found] == [
        (["baseline"], True),
        (["build.optimisation=-O0"], True),
        (["build.flags=-Wall"], True),
    ]
    assert "gcc -O0: compiling" not in again.stderr
    assert dyno("runs").stdout == "", "nothing was measured"
    planned = dyno("plan", str(study)).stdout
    assert "3 builds, 3 of them there" in planned


def test_builds_that_cannot_be_made_ahead_are_told(study: Path) -> None:
    def said(*arguments: str) -> str:
        return complaint("cache", "builds", "make", *arguments)

    assert "no variant is called nobody" in said(str(study), "--only", "nobody")
    assert "there are: baseline, build.optimisation=-O0" in said(str(study), "--only", "nobody")
    study.write_text(STUDY.replace('"-Wall"', '"-Wall", "-Werror=cpp"'))
    fork = study.parent / "fork" / "fork.c"
    fork.write_text(f"#warning slow\n{fork.read_text()}")
    done = dyno("cache", "builds", "make", str(study))
    assert done.returncode == 1
    assert "3 of them there" in done.stdout
    study.write_text(STUDY.partition("[settings]")[0] + '[factors]\n"config.synchronous" = ["OFF", "FULL"]\n')
    assert "asks for no builds" in said(str(study))


def test_a_build_is_asked_by_the_gate_before_the_next_is_made(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A baseline that fails ends the run, and nobody waited for the other builds. It loses one row in a
    thousand."""
    monkeypatch.setattr(build_check, "OPERATIONS", 2000)
    (study.parent / "fork" / "fork.c").write_text(CODE + wrong_code(LOSES_ROWS))
    with (study.parent / "recipe.toml").open("a") as recipe:
        # So each build is made by itself.
        recipe.write('\n[[steps]]\nname = "all CPUs"\ncommand = ["true", "{jobs}"]\n')
    done = dyno("run", str(study))
    assert done.returncode == 3, done.stderr
    assert "baseline: the build failed the correctness gate" in done.stderr
    assert [row["build"] for row in json.loads(dyno("cache", "builds", "--json").stdout)] == ["gcc -O2"]
