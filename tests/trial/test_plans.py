"""The stage that asks for plans: what is kept of what the driver was told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from dbdyno.driver.job import Job
from dbdyno.driver.load import Explained, ExplainedStatement
from dbdyno.engines.facts import Step
from dbdyno.errors import DriverFailed
from dbdyno.host.journal import Journal
from dbdyno.layers.setup import Running, Setup
from dbdyno.study.phases import Phase
from dbdyno.study.trials import NO_BLOCK, Trial, Variant
from dbdyno.trial.plans import LINE_MOST, STEPS_MOST, has_plans, planned, plans_of
from tests.fakes import INSTALLATION, FakeEngine, FakeLoad, FakeServer

PHASE = Phase(name="load", duration_s=1.0)


def read(text: str) -> tuple[Step, ...]:
    """A plan of one step for each word."""
    if text == "unreadable":
        raise ValueError("the plan has another form")
    return tuple(Step(word) for word in text.split())


@dataclass
class Told(FakeLoad):
    """A load that was told these plans, or failed."""

    explained: Explained | DriverFailed | None = None
    asked: Sequence[Job] = ()

    def explain(self, job: Job) -> Explained:
        self.asked = (*self.asked, job)
        assert self.explained is not None
        if isinstance(self.explained, DriverFailed):
            raise self.explained
        return self.explained


def running(tmp_path: Path, explained: Explained | DriverFailed | None = None) -> Running:
    engine = FakeEngine()
    server = FakeServer(None)  # type: ignore[arg-type]  # no process is looked at
    setup = Setup(
        engine=replace(engine.engine, plans=read),
        installation=INSTALLATION,
        scratch=tmp_path,
        journal=cast(Journal, None),
        job=Job(workload="tpcb", seed=7),
    )
    return Running(setup=setup, server=server, load=Told(engine, explained=explained))


def a_trial(block: int = 0) -> Trial:
    return Trial(
        index=0, block=block, position=0, variant=Variant(name="baseline", levels={}), phases=(PHASE,)
    )


def told(transaction: str, text: str, plan: str | None, why_not: str = "") -> ExplainedStatement:
    return ExplainedStatement(transaction=transaction, text=text, plan=plan, why_not=why_not)


def test_statements_are_named_by_their_transaction_and_what_has_no_plan_says_why(tmp_path: Path) -> None:
    statements = (
        told("pay", "SELECT ?", "scan"),
        told("report", "SELECT sum(a)", "scan sort"),
        told("pay", "CALL f()", None, "no engine has a plan for such a statement"),
        told("pay", "INSERT ?", ""),
        told("pay", "UPDATE ?", "unreadable"),
    )
    made = running(tmp_path, Explained(statements=statements, unreached={"pay": "row missing"}))
    found = plans_of(made, seed=99)
    assert [one.statement for one in found.statements] == ["pay.1", "report", "pay.2", "pay.3", "pay.4"]
    assert [one.summary for one in found.statements] == ["scan", "scan -> sort", "", "", ""]
    assert [one.why_not for one in found.statements][2:] == [
        "no engine has a plan for such a statement",
        "it needs no plan",
        "its plan cannot be read: the plan has another form",
    ]
    assert found.unreached == {"pay": "row missing"}
    assert isinstance(made.load, Told)
    assert [job.seed for job in made.load.asked] == [99], (
        "the same values in all trials, whatever their block"
    )


def test_a_failure_is_told_of_and_is_none_of_the_trials(tmp_path: Path) -> None:
    found = plans_of(running(tmp_path, DriverFailed("the server died", "look at its log")), seed=1)
    assert (found.why_not, found.statements) == ("the server died", ())


def test_plans_belong_to_timed_loads_of_blocks(tmp_path: Path) -> None:
    made = running(tmp_path)
    assert has_plans(a_trial(), PHASE, made)
    assert not has_plans(a_trial(block=NO_BLOCK), PHASE, made), "restarts and counted work are not compared"
    assert not has_plans(a_trial(), PHASE.but(watched=True), made), "a soak compares none"
    assert not has_plans(a_trial(), PHASE.but(rests=True), made)
    silent = replace(made, setup=replace(made.setup, engine=replace(made.setup.engine, plans=None)))
    assert not has_plans(a_trial(), PHASE, silent)


def test_a_long_plan_is_cut_and_its_digest_is_of_the_whole() -> None:
    steps = tuple(Step("scan", ("x" * 500,)) for _ in range(STEPS_MOST + 1))
    one, other = planned("q", "SELECT ?", steps), planned("q", "SELECT ?", (*steps, Step("sort")))
    assert len(one.steps) == STEPS_MOST and all(len(line) <= LINE_MOST for line in one.steps)
    assert one.steps == other.steps and one.digest != other.digest
