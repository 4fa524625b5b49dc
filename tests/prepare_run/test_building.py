"""Builds before a run: what cannot be made is told, each cause once. A run decides how its
builds are counted where its study leaves that open."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import built as engines_built
from dbdyno.errors import Blocked, DynoError
from dbdyno.obtain.source import package
from dbdyno.obtain.source.tree import SourceTree
from dbdyno.prepare_run import building
from dbdyno.prepare_run.adapted import adapted
from dbdyno.prepare_run.building import counting_of, counting_text, make_builds, wishes_of, with_counting
from dbdyno.prepare_run.stored_study import is_of, study_of
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.run import Counting
from tests.fakes import make_run

STUDY = """
title  = "Which build is fastest?"
engine = "sqlite"

[workload]
name = "tpcb"

[settings]
"source.origin" = "debian"

[factors]
"build.optimisation" = ["-O2", "-O3"]
"""


@pytest.mark.engine
@pytest.mark.usefixtures("homes")
def test_builds_without_their_source_tell_its_cause_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> SourceTree:
        raise DynoError("the mirror lacks it", "name another")

    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    monkeypatch.setattr(package, "kept", lambda _: None)
    monkeypatch.setattr(package, "fetched", refuse)
    (tmp_path / "study.toml").write_text(STUDY)
    study = study_at(tmp_path / "study.toml")
    told: list[str] = []
    make_builds(study, wishes_of(study), lambda _: 0, told.append)
    assert told == [
        "gcc -O2: the mirror lacks it; name another",
        "gcc -O3: the same cause as gcc -O2",
    ]


pytestmark = pytest.mark.usefixtures("homes")

COUNTED_STUDY = """
title  = "Which build?"
engine = "sqlite"
[workload]
name = "tpcb"
[settings]
"source.origin" = "fork"
[factors]
"""
BUILDS = COUNTED_STUDY + '"build.optimisation" = ["-O2", "-O3"]\n'


@pytest.fixture(autouse=True)
def all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with Valgrind and without counters."""
    monkeypatch.setattr(building, "counts", lambda event: "this CPU has no such counter")
    monkeypatch.setattr(building, "require_valgrind", lambda: ("valgrind", "vgdb"))


def found(folder: Path, text: str, budget_s: float | None = None) -> Counting | None:
    path = folder / "study.toml"
    path.write_text(text)
    return counting_of(study_at(path), budget_s)


def test_builds_are_counted_unless_the_study_says_what_is(tmp_path: Path) -> None:
    assert found(tmp_path, BUILDS) == Counting(by="valgrind")
    for said in ("counted = true", "counted = false", 'response = "instructions_per_op"'):
        assert found(tmp_path, f"{BUILDS}[goal]\n{said}\n") is None


def test_variants_of_one_build_are_not_counted_unasked(tmp_path: Path) -> None:
    assert found(tmp_path, COUNTED_STUDY + '"config.synchronous" = ["OFF", "FULL"]\n') is None
    without = (
        COUNTED_STUDY.replace('"source.origin" = "fork"', "") + '"config.synchronous" = ["OFF", "FULL"]\n'
    )
    assert found(tmp_path, without) is None


def test_a_cpu_that_counts_needs_no_valgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "counts", lambda event: "")
    assert found(tmp_path, BUILDS) == Counting(by="counters")


def test_what_cannot_be_counted_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_budget = found(tmp_path, BUILDS, budget_s=600.0)
    assert in_a_budget is not None and "a budget" in in_a_budget.why_not
    clients = found(tmp_path, BUILDS.replace('name = "tpcb"', 'name = "tpcb"\nclients = [1, 2]'))
    assert clients is not None and "workload.clients does not show" in clients.why_not

    def missing() -> tuple[str, str]:
        raise Blocked("valgrind", "valgrind is not on this machine", "install it: apt install valgrind")

    monkeypatch.setattr(building, "require_valgrind", missing)
    without = found(tmp_path, BUILDS)
    assert without is not None and without.by == "nothing"
    assert counting_text(without, 0.0) == (
        "instructions are not counted: valgrind is not on this machine; install it: apt install valgrind"
    )


def test_a_run_goes_on_with_what_it_decided(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(BUILDS)
    here = adapted(study_at(path))
    assert here.counting == Counting(by="valgrind") and here.study.goal.counted
    run = make_run(study_at(path)).model_copy(update={"counting": here.counting})
    assert study_of(run).goal.counted and is_of(run, study_at(path))
    assert not study_of(make_run(study_at(path))).goal.counted, "an older run counted nothing"
    assert not with_counting(here.study, Counting(by="nothing", why_not="x")).goal.counted


def test_what_counts_take_is_told_with_the_way_to_leave_them_out() -> None:
    told = counting_text(Counting(by="valgrind"), 120.0)
    assert "about 2 min" in told and "`counted = false`" in told
    assert counting_text(None, 0.0) == ""
