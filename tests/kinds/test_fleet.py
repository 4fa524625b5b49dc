"""What a controller asks hosts, what a host makes of that, and the run as it is there."""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.cli.worker import words_of
from dbdyno.engines import built
from dbdyno.errors import DynoError, StudyError, UserError
from dbdyno.fleet.parts import HostAnswer
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.kinds.comparison import RunOptions, begin
from dbdyno.kinds.fleet import answer_of, begun_here, draft_of, run_on
from dbdyno.kinds.kind import Beginning
from dbdyno.obtain.source import profile
from dbdyno.plan import restarts
from dbdyno.prepare_run.begun import code_digest, own_dyno, require_same_dyno
from dbdyno.records.run import ComparisonRun
from dbdyno.records.store import Store
from dbdyno.study import Arrangement
from tests.sqlite_fork import make_fork

STUDY = """
title  = "Which synchronous?"
engine = "sqlite"
blocks = 3
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.5s"
[factors]
"config.synchronous" = ["FULL", "OFF"]
"""
WORKLOAD = """
[setup]
statements = ["CREATE TABLE account (id INTEGER NOT NULL PRIMARY KEY, money INTEGER)"]

[[tables]]
name = "account"
rows = 10
columns = { id = "row()", money = 7 }

[[transactions]]
name = "look"
values = { id = "uniform(1, 10)" }
statements = ["SELECT money FROM account WHERE id = :id"]
"""


def begun(homes: Path, text: str, told: list[str]) -> Beginning:
    """A run that begins where the controller is, in whose folder its study's own file lies."""
    folder = homes / "of-the-controller"
    folder.mkdir()
    (folder / "own.toml").write_text(WORKLOAD)
    (folder / "study.toml").write_text(text)
    with Store("sqlite:///:memory:") as store:
        return begin(store, RunOptions(path=folder / "study.toml", calibration=False), told.append)


def on_both(draft: ComparisonRun, told: list[str], **second: object) -> ComparisonRun:
    """The run on two hosts, which are both this one; the second answers otherwise."""
    answers = [answer_of(draft, name, NOTHING_ALLOWED, told.append) for name in ("a", "b")]
    return run_on(draft, [answers[0], answers[1].but(**second)], told.append)


def test_a_host_takes_whole_pairs_of_blocks(homes: Path) -> None:
    told = list[str]()
    draft = draft_of(begun(homes, STUDY, told), told.append)
    assert draft.blocks == 4 and any("each host takes 4 blocks" in line for line in told)
    run = on_both(draft, told)
    assert run.blocks == 8 and [host.name for host in run.fleet] == ["a", "b"]


def test_what_a_fleet_cannot_carry_out_is_refused(homes: Path) -> None:
    told = list[str]()
    beginning = begun(homes, STUDY + "[restarts]\nkills = 1\n", told)
    with pytest.raises(UserError, match=r"a study with \[restarts\] is carried out on one host"):
        draft_of(beginning, told.append)


def test_a_host_lays_the_study_out_in_a_folder_of_its_own(homes: Path) -> None:
    told = list[str]()
    text = STUDY.replace('name     = "tpcb"', 'name     = "script"\nfile     = "own.toml"')
    draft = draft_of(begun(homes, text, told), told.append)
    run = on_both(draft, told)
    (homes / "of-the-controller").rename(homes / "gone")
    here = begun_here(run, "b", NOTHING_ALLOWED)
    assert here.study.folder != Path(run.study_folder)
    assert (here.study.folder / "study.toml").read_text() == run.study_text
    assert (here.study.folder / "own.toml").read_text() == WORKLOAD
    trials = restarts.ask_of_host("b", here.study, here.run, [])
    assert [trial.block for trial in trials] == [2, 2]


def test_a_host_tells_all_that_is_in_the_way_there(homes: Path) -> None:
    told = list[str]()
    draft = draft_of(begun(homes, STUDY, told), told.append)
    text = draft.study_text.replace('"sqlite"', '"sqlite@/no/such/library.so"')
    with pytest.raises(StudyError) as error:
        answer_of(draft.but(study_text=text), "a", NOTHING_ALLOWED, told.append)
    assert "/no/such/library.so" in str([mistake.message for mistake in error.value.mistakes])


def test_trials_follow_one_another_on_all_hosts_where_one_needs_that(homes: Path) -> None:
    told = list[str]()
    draft = draft_of(begun(homes, STUDY, told), told.append)
    assert draft.arrangement is Arrangement.SIDE_BY_SIDE
    after = {"arrangement": Arrangement.ONE_AFTER_THE_OTHER, "why": "there is little memory"}
    assert on_both(draft, told, **after).arrangement is Arrangement.ONE_AFTER_THE_OTHER
    assert "trials follow one another on all hosts, because on b there is little memory" in told


def test_hosts_with_other_versions_of_the_engine_are_not_compared(homes: Path) -> None:
    told = list[str]()
    draft = draft_of(begun(homes, STUDY, told), told.append)
    answer = answer_of(draft, "a", NOTHING_ALLOWED, told.append)
    other = answer.host.but(name="b", installation=answer.host.installation.but(version="3.0"))
    with pytest.raises(UserError, match=r"host a has sqlite .*, b has sqlite 3\.0"):
        run_on(draft, [answer, HostAnswer(host=other, arrangement=answer.arrangement, why="")], told.append)


BUILDS = STUDY.replace(
    '"config.synchronous" = ["FULL", "OFF"]\n',
    """"build.march" = ["default", "native"]
[settings]
"source.origin" = "fork"
"source.recipe" = "recipe.toml"
""",
)


@pytest.fixture
def answer(homes: Path) -> tuple[ComparisonRun, HostAnswer]:
    """A run whose study has builds, and what this host makes of it."""
    make_fork(homes)
    told = list[str]()
    (homes / "study.toml").write_text(BUILDS)
    with Store("sqlite:///:memory:") as store:
        beginning = begin(store, RunOptions(path=homes / "study.toml", calibration=False), told.append)
    draft = draft_of(beginning, told.append)
    return draft, answer_of(draft, "a", NOTHING_ALLOWED, told.append)


def test_a_host_answers_which_builds_it_would_make(answer: tuple[ComparisonRun, HostAnswer]) -> None:
    draft, found = answer
    default, native = found.builds
    assert found.machine == os.uname().machine
    assert default.name.startswith("sqlite-") and native.name.startswith("sqlite-")
    assert default.target == () and native.target and default.compiler.startswith("gcc ")
    told = list[str]()
    run = run_on(draft, [found, found.but(host=found.host.but(name="b"))], told.append)
    assert [host.name for host in run.fleet] == ["a", "b"] and told == []
    other = found.host.but(name="b", host=found.host.host.but(system="Debian 13"))
    run_on(draft, [found, found.but(host=other)], told.append)
    assert "host b runs Debian 13; a build that one of them makes must also start on the other" in told[0]


@pytest.mark.parametrize(
    ("differs", "machine", "said", "hint"),
    [
        (
            {"compiler": "gcc 13.2.0 (0)"},
            "",
            r"host a has gcc .*, host b has gcc 13\.2\.0",
            "the same compiler",
        ),
        ({"source": "0123"}, "", "host b has a source with digest 0123", "put the same source on all hosts"),
        ({"target": ("-march=znver4",)}, "", "host b has for `native` -march=znver4", "build.march = "),
        ({}, "riscv64", "host b has riscv64", "take hosts of one architecture"),
        ({}, "", "host b sqlite-0", "another linker, recipe or BOLT"),
    ],
)
def test_hosts_that_would_make_other_builds_are_told_before_a_run_begins(
    answer: tuple[ComparisonRun, HostAnswer], differs: dict[str, object], machine: str, said: str, hint: str
) -> None:
    draft, found = answer
    builds = tuple(build.but(name="sqlite-0", **differs) for build in found.builds)
    host = found.host.but(name="b", host=found.host.host.but(system="Debian 13"))
    other = found.but(host=host, builds=builds, machine=machine or found.machine)
    with pytest.raises(UserError) as error:
        run_on(draft, [found, other], print)
    assert re.search(said, error.value.message) and hint in error.value.hint
    assert error.value.message.startswith("one build is one file on all hosts, and gcc -O2 is not: ")
    assert "host b runs Debian 13" in error.value.message


def test_a_host_that_cannot_make_a_build_says_so_before_a_run(
    answer: tuple[ComparisonRun, HostAnswer], homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft, _ = answer
    monkeypatch.setattr(built, "_looks", built._Looks())
    shutil.rmtree(homes / "fork")
    with pytest.raises(DynoError) as error:
        answer_of(draft.but(run="elsewhere"), "a", NOTHING_ALLOWED, lambda line: None)
    assert "fork" in words_of(error.value)


def test_a_host_whose_cpu_lacks_what_a_build_uses_says_so_before_a_run(
    answer: tuple[ComparisonRun, HostAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    draft, _ = answer
    wider = draft.but(study_text=draft.study_text.replace('"native"', '"x86-64-v4"'))
    monkeypatch.setattr(profile, "known_here", lambda: frozenset({"sse2"}))
    with pytest.raises(UserError, match="the CPU of this host does not know abm, avx, avx2, avx512bw"):
        answer_of(wider, "a", NOTHING_ALLOWED, lambda line: None)


def test_a_host_with_another_dyno_than_began_the_run_does_not_go_on_with_it(homes: Path) -> None:
    told = list[str]()
    run = on_both(draft_of(begun(homes, STUDY, told), told.append), told)
    other = "0123456789abcdef"
    with pytest.raises(UserError, match=r"began with Dyno 0\.1\.9 with code ") as error:
        begun_here(run.but(dyno_version="0.1.9"), "a", NOTHING_ALLOWED)
    assert "install the Dyno there that began it" in error.value.hint
    with pytest.raises(
        UserError, match=f"with code {code_digest()[:12]} .* with code 0123456789ab and driver"
    ):
        begun_here(run.but(dyno_code=other), "a", NOTHING_ALLOWED)
    with pytest.raises(UserError, match=r"and driver [0-9a-f]{12}, and run .* and driver 0123456789ab$"):
        begun_here(run.but(dyno_driver=f"{platform.machine()}:{other}"), "a", NOTHING_ALLOWED)
    # A Dyno that kept no digest began it, and one of another architecture has another driver.
    for begun_by in (run.but(dyno_code=""), run.but(dyno_driver=""), run.but(dyno_driver=f"vax:{other}")):
        assert begun_here(begun_by, "a", NOTHING_ALLOWED).run.run == run.run
    own = own_dyno()
    require_same_dyno(run, own, "a")
    for begun_by in (run, run.but(dyno_code="")):
        with pytest.raises(UserError, match=r"^host a: the worker runs Dyno .* with code 0123456789ab and"):
            require_same_dyno(begun_by, replace(own, code=other), "a")
