"""Whose fault a failure is: what a draft makes of it, where that is not the engine's word alone."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines.facts import ShellRound
from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.host.journal import open_journal
from dbdyno.layers.setup import Running
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records.record import Outcome, Record, Recovery, Stage
from dbdyno.run import Keep, run_trial
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase
from dbdyno.trial.acts.endings import Acted
from dbdyno.trial.bench import Bench, Clock
from dbdyno.trial.record_builder import Draft, died, of_the_engine
from tests.analyse.platforms_cases import platform
from tests.fakes import FakeEngine, Stages, make_bench, make_run, make_study

LOADED = Phase(name="load", duration_s=1.0)
STOPPED = Phase(name="stop", duration_s=1.0, then=Act.STOP)


def tried(keep: Keep) -> Record:
    """A trial whose server is stopped after its load."""
    study = make_study(1, 2)
    trial = make_plan(study, Order(seed=1)).trials[0].but(phases=(LOADED, STOPPED))
    with open_journal() as journal:
        return run_trial(trial, make_bench(study, make_run(study), journal), keep, Stages())


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("internal", Outcome.FAILED), ("user", Outcome.FAILED), ("server", Outcome.BROKEN)],
)
def test_a_server_that_was_ended_on_purpose_does_not_make_the_drivers_fault_the_engines(
    homes: Path, monkeypatch: pytest.MonkeyPatch, kind: str, outcome: Outcome
) -> None:
    def act(running: Running, _phase: Phase, _bench: Bench, _undo: ExitStack) -> Acted:
        running.server.stop()
        raise DriverFailed("it did not go on", kind=kind)

    monkeypatch.setattr("dbdyno.trial.acts.act_on", act)
    assert tried(lambda record: None).outcome is outcome


def test_a_record_that_cannot_be_kept_between_two_phases_is_no_outcome(homes: Path) -> None:
    def keep(record: Record) -> None:
        if not record.whole:
            raise DynoError("the disk is full")

    with pytest.raises(DynoError, match="the disk is full"):
        tried(keep)


def test_a_trial_on_a_platform_keeps_no_time(homes: Path) -> None:
    study = make_study(1, 2)
    trial = make_plan(study, Order(seed=1)).trials[0].but(phases=(STOPPED,))
    timed = Recovery(act=Act.STOP, stop_s=1.0, ready_s=2.0, full_speed_s=3.0, speed_per_s=4.0, present=5)
    with open_journal() as journal:
        draft = Draft(trial, make_bench(study, make_run(study), journal), lambda trial, stage: None)
        draft.platform = platform("s390x")
        draft.phase_began(STOPPED)
        draft.shell_ended(ShellRound(timed, ()))
    record = draft.record()
    assert record.recoveries == (Recovery(act=Act.STOP, present=5),)
    assert record.engine_version == "5.0.4"


def test_a_clock_that_is_set_back_makes_no_trial_shorter(homes: Path) -> None:
    study, unix_s = make_study(1, 2), iter((7200.0, 3600.0, 3600.0))
    clock = Clock(unix_s=lambda: next(unix_s), monotonic_s=iter((10.0, 11.0, 13.0, 13.5)).__next__)
    with open_journal() as journal:
        bench = replace(make_bench(study, make_run(study), journal), clock=clock)
        draft = Draft(make_plan(study, Order(seed=1)).trials[0], bench, lambda trial, stage: None)
        with draft.stage(Stage.PREPARE):
            pass
    record = draft.record()
    assert record.finished_unix_s - record.started_unix_s == 3.5


EMBEDDED, SERVER = FakeEngine(embedded=True).engine, FakeEngine().engine


@pytest.mark.parametrize(
    ("failure", "dead", "at_fault"),
    [
        (ServerFailed("the server died"), (True, True), (True, True)),
        (LoadDied("the load process died"), (True, False), (True, False)),
        (DriverFailed("refused", kind="connect"), (False, False), (True, True)),
        (DriverFailed("a bug of the driver"), (False, False), (False, False)),
        (DynoError("the disk is full"), (False, False), (False, False)),
    ],
)
def test_an_engine_answers_for_what_it_did_itself(
    failure: DynoError, dead: tuple[bool, bool], at_fault: tuple[bool, bool]
) -> None:
    assert (died(failure, EMBEDDED), died(failure, SERVER)) == dead
    assert (of_the_engine(failure, EMBEDDED), of_the_engine(failure, SERVER)) == at_fault
