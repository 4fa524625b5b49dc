"""The correctness gate with engines that are built to be wrong: each is caught, and says by what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from dbdyno import build_check
from dbdyno.build_check import answers, gated, pass_gate
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Recall, Tally
from dbdyno.engines import built as engines_built
from dbdyno.errors import BaselineFailed, Blocked, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell, silently
from dbdyno.host.journal import open_journal
from dbdyno.obtain.source import making
from dbdyno.records.record import Outcome
from dbdyno.run import run_trial
from dbdyno.study import Factor
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.bench import Bench
from dbdyno.trial.correctness import (
    Correctness,
    GateQuestion,
    all_kept,
    asked_of,
    build_at_bench,
    variants_of_each_build,
)
from tests import sqlite_fork
from tests.fakes import FakeEngine, FakeLoad, FakeServer, Stages, make_bench, make_run, make_study, make_tally
from tests.sqlite_fork import CODE, make_fork, write_patch, wrong_code
from tests.trials import bench_of, study_of

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes")]

HASTY: dict[str, Level] = {
    "source.origin": "fork",
    "source.recipe": "recipe.toml",
    "config.synchronous": "OFF",
    "config.journal_mode": "MEMORY",
}
"""Settings with which a kill may lose what was committed: the gate must not use them for that."""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    monkeypatch.setattr(making, "_failures", {})
    # So that a slow machine also comes to all transactions.
    monkeypatch.setattr(build_check, "LOAD_MOST_S", 600.0)


@contextmanager
def bench(folder: Path, *factors: Factor) -> Iterator[Bench]:
    study = study_of("sqlite", HASTY)
    changes = {"path": str(folder / "study.toml"), "factors": (*study.factors, *factors)}
    with open_journal() as journal:
        yield bench_of(study.but(**changes), journal)


def found_of(folder: Path) -> Correctness:
    """What the gate finds of the only build of a fork in a folder."""
    with bench(folder) as found:
        [wish] = variants_of_each_build(found)
        return gated(build_at_bench(found, wish), found)


def test_a_right_build_passes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_fork(tmp_path)
    found = found_of(tmp_path)
    assert found.passed, found.cause
    checks = {check.name: check for check in found.checks}
    assert {"answer_sums", "operations", "history_complete", "history_complete_after_a_kill"} <= set(checks)
    assert checks["own_tests"].detail == "the source carries no tests that its recipe runs"
    assert "5000 transactions succeeded" in checks["operations"].detail
    assert found.asked == "tpcb, scale 1, synchronous OFF, journal_mode MEMORY"
    monkeypatch.setattr(build_check, "_ask", None)
    assert found_of(tmp_path) == found


@pytest.mark.parametrize(
    ("wrong", "failing"),
    [
        ("LOSES_ROWS", "balances_equal"),
        ("COMMITS_LATE", "history_complete_after_a_kill"),
        ("ROUNDS", "answer_fractions"),
        ("DIES", "survives"),
    ],
)
def test_a_wrong_build_fails_at_the_first_check_that_shows_it(
    tmp_path: Path, wrong: str, failing: str
) -> None:
    make_fork(tmp_path, CODE + wrong_code(getattr(sqlite_fork, wrong)))
    found = found_of(tmp_path)
    assert found.words == f"failed at {failing}"
    assert f"the build failed the correctness gate at {failing}: " in found.cause


def test_a_build_that_is_careless_with_floating_point_fails(tmp_path: Path) -> None:
    """Older compilers link what takes tiny numbers for zero into every library that is told so."""
    make_fork(tmp_path)
    with bench(tmp_path, Factor(name="build.flags", levels=("none", "-ffast-math"))) as found:
        right, careless = variants_of_each_build(found)
        assert gated(build_at_bench(found, right), found).passed
        built = build_at_bench(found, careless)
        if int(built.toolchain.version.split()[1].partition(".")[0]) > 12:
            pytest.skip("gcc from 13 on leaves the CPU as it is when it links a library")
        wrong = gated(built, found)
    assert wrong.words == "failed at answer_tiny", wrong


def test_a_trial_of_a_build_that_failed_is_broken_and_never_measured(tmp_path: Path) -> None:
    make_fork(tmp_path, CODE + wrong_code(sqlite_fork.ROUNDS))
    with bench(tmp_path) as found:
        trial = Trial(
            index=0,
            block=0,
            position=0,
            variant=Variant(name="baseline", levels=HASTY),
            phases=phases_of(found.study),
        )
        record = run_trial(trial, found, lambda record: None, Stages())
        assert (record.outcome, record.tally) == (Outcome.BROKEN, None)
        assert record.cause.startswith("the build failed the correctness gate at answer_fractions: ")
        assert [check.name for check in record.checks if not check.holds] == ["answer_fractions"]


def with_patch(folder: Path, wrong: str) -> Factor:
    """A fork, and as a level the patch that makes it wrong."""
    make_fork(folder)
    write_patch(folder / "wrong.patch", wrong_code(wrong))
    return Factor(name="source.patches", levels=("none", "wrong.patch"))


def pass_gates(bench: Bench, tell: Tell) -> None:
    """As a run has each of its builds pass."""
    for wish in variants_of_each_build(bench):
        pass_gate(bench, tell, wish)


def test_builds_pass_the_gate_before_the_first_trial(tmp_path: Path) -> None:
    factor, told = with_patch(tmp_path, sqlite_fork.ROUNDS), list[str]()
    with bench(tmp_path, factor) as found:
        pass_gates(found, told.append)
        builds = [build_at_bench(found, wish).name for wish in variants_of_each_build(found)]
        assert [[one.words for one in all_kept(build)] for build in builds] == [
            ["passed"],
            ["failed at answer_fractions"],
        ]
        assert any("patches wrong.patch: the build failed the correctness gate at" in line for line in told)
        told.clear()
        pass_gates(found, told.append)
        assert [line for line in told if "with tpcb" in line] == [], "a build is asked once"


def test_a_build_with_the_baselines_code_is_not_asked_again(tmp_path: Path) -> None:
    factor = with_patch(tmp_path, "\n/* no code */\n")
    with bench(tmp_path, factor) as found:
        pass_gates(found, silently)
        _, other = variants_of_each_build(found)
        inert = gated(build_at_bench(found, other), found)
    assert inert.passed
    assert [check.name for check in inert.checks] == ["own_tests", "baselines_code"]
    assert "equal to the baseline's" in inert.checks[1].detail


def test_a_baseline_that_cannot_be_built_keeps_no_other_build_from_the_gate(tmp_path: Path) -> None:
    factor = with_patch(tmp_path, "\nint broken(\n")
    with bench(tmp_path, factor.but(levels=factor.levels[::-1])) as found:
        pass_gates(found, silently)
        _, other = variants_of_each_build(found)
        assert gated(build_at_bench(found, other), found).passed


def test_a_build_is_asked_under_the_first_variant_under_which_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fork(tmp_path)
    ask, told = build_check.answers, list[str]()

    def refused(asked: GateQuestion, bench: Bench) -> Correctness:
        if asked.levels["config.cache_size"] == -1000:
            raise Blocked("config.cache_size", "too small to start", "take another")
        return ask(asked, bench)

    monkeypatch.setattr(build_check, "answers", refused)
    with bench(tmp_path, Factor(name="config.cache_size", levels=(-1000, -2000))) as found:
        pass_gates(found, told.append)
        [wish] = variants_of_each_build(found)
        passed = gated(build_at_bench(found, wish), found)
    assert passed.passed
    assert "cache_size -2000" in passed.asked
    assert any(line.endswith("too small to start; its next variant is asked") for line in told)


def test_a_baseline_that_fails_ends_the_run(tmp_path: Path) -> None:
    make_fork(tmp_path, CODE + wrong_code(sqlite_fork.ROUNDS))
    with bench(tmp_path) as found, pytest.raises(BaselineFailed, match=r"^baseline: the build failed the "):
        pass_gates(found, silently)


def test_a_gate_that_cannot_run_is_no_pass_and_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factor = with_patch(tmp_path, "\nint harmless;\n")
    with bench(tmp_path, factor) as found:
        baseline, other = variants_of_each_build(found)
        with monkeypatch.context() as refusing:
            recover = build_check.recovery

            def refused(asked: GateQuestion, bench: Bench) -> Correctness:
                if bench.built and bench.built.wish.patches != "none":
                    raise Blocked("config.page", "no page here", "take another")
                return recover(asked, bench)

            refusing.setattr(build_check, "recovery", refused)
            pass_gates(found, silently)
            blocked = gated(build_at_bench(found, other), found)
        assert blocked.words == "could not run"
        with pytest.raises(Blocked, match="the correctness gate could not run: no page here"):
            blocked.require_passed()
        pass_gates(found, silently)
        assert gated(build_at_bench(found, other), found).passed
        assert gated(build_at_bench(found, baseline), found).passed


def test_a_baseline_whose_gate_cannot_run_ends_the_run_with_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fork(tmp_path)
    monkeypatch.setattr(
        build_check,
        "_answered",
        lambda question, engine: Correctness(unable="no page", remedy="take another"),
    )
    with bench(tmp_path) as found, pytest.raises(BaselineFailed, match="could not run: no page") as ended:
        pass_gates(found, silently)
    assert (ended.value.hint, ended.value.exit_code) == ("take another", 3)


def fake_answers(engine: FakeEngine | None = None) -> Correctness:
    """What comes of the gate's first question where engine and load are fakes."""
    study = make_study(1)
    asked = asked_of(study, Variant(name="baseline", levels={"config.speed": 1}), "")
    with open_journal() as journal:
        on_build = make_bench(study, make_run(study), journal, engine)
        return build_check._answered(partial(answers, asked, on_build), on_build.engine)


@pytest.fixture
def any_build(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_check, "known_answers", lambda ask, engine, version: ())
    monkeypatch.setattr(build_check, "holds_build", lambda running: True)


@pytest.mark.usefixtures("any_build")
@pytest.mark.parametrize(
    "engine",
    [FakeEngine(fails_to_start_with_speed=1), FakeEngine(slow_to_stop=True)],
    ids=["start", "stop"],
)
def test_a_server_that_does_not_start_or_stop_says_nothing_of_its_answers(engine: FakeEngine) -> None:
    found = fake_answers(engine)
    assert found.words == "could not run"
    assert found.unable.startswith("the server did not st")


@pytest.mark.usefixtures("any_build")
def test_a_server_that_dies_when_it_is_asked_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(load: FakeLoad, job: Job) -> Tally:
        raise ServerFailed("the server died")

    monkeypatch.setattr(FakeLoad, "run", dies)
    assert fake_answers().words == "failed at survives"


@pytest.mark.usefixtures("any_build")
def test_a_build_that_answers_with_errors_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLoad, "run", lambda load, job: make_tally(errors={"syntax": 900}))
    monkeypatch.setattr(FakeServer, "log_problems", lambda server: ["[ERROR] out of luck"])
    found = fake_answers()
    assert found.words == "failed at errors_in_load"
    assert {check.name: check.detail for check in found.checks}["server_log"] == "[ERROR] out of luck"


@pytest.mark.usefixtures("any_build")
@pytest.mark.parametrize(
    ("recall", "reference", "words"),
    [
        (0.95, None, "passed"),
        (0.95, 0.955, "passed"),
        (0.93, 0.95, "failed at recall"),
        (0.99, 0.95, "passed"),
    ],
)
def test_searches_that_find_less_than_the_baselines_fail(
    monkeypatch: pytest.MonkeyPatch, recall: float, reference: float | None, words: str
) -> None:
    """A stand-in for a wrong distance: the load says what its searches found."""
    spread = {"min": recall, "p1": recall, "p5": recall, "p10": recall, "p50": recall}
    scored = make_tally(recall=Recall(count=100, mean=recall, **spread))
    monkeypatch.setattr(build_check, "_reference", lambda bench: reference)
    monkeypatch.setattr(FakeLoad, "run", lambda load, job: scored)
    found = fake_answers()
    assert (found.words, found.recall) == (words, recall)
