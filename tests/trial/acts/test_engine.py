"""A kill in the midst of a load: a right engine has all that clients were told when it is started again."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event

import pytest

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.tally import Tally
from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.acts import engine as acts_engine
from dbdyno.trial.acts.engine import (
    KILLED_AFTER_S,
    TOLD_AFTER_S,
    UNTOLD,
    kill_under_load,
    start_again,
    strike,
)
from dbdyno.trial.prepare import prepare
from tests.fakes import FakeEngine, FakeLoad, make_bench, make_run, make_study, make_tally
from tests.trial.acts.act_cases import DURABLE
from tests.trials import tried

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("engine", DURABLE)
def test_all_that_was_acknowledged_is_there_after_a_kill(
    homes_with_data: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(acts_engine, "TOLD_AFTER_S", TOLD_AFTER_S)
    monkeypatch.setattr(acts_engine, "KILLED_AFTER_S", KILLED_AFTER_S)
    with tried(engine, **DURABLE[engine]) as found, ExitStack() as undo:
        before = found.running.process_ids
        told = kill_under_load(found.running)
        assert told.acknowledged > 0
        assert (told.unknown >= UNTOLD) is found.running.setup.engine.embedded
        assert not any(Path(f"/proc/{process_id}").exists() for process_id in before)
        again = start_again(found.running, LoadProcess, undo)
        noted = "".join(path.read_text() for path in (paths.host() / "journal").iterdir())
        assert all(f'"process_id": {each},' in noted for each in again.server.process_ids)
        invariants = again.load.check(again.setup.job, told)
        assert [one.detail for one in invariants if not one.holds] == []
        assert {"history_complete", "balances_equal"} <= {one.name for one in invariants}
        # What nobody was told of cannot be missed.
        more = told.but(acknowledged=told.acknowledged + told.unknown + UNTOLD)
        assert not all(one.holds for one in again.load.check(again.setup.job, more))


@pytest.fixture
def never_killed(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts_engine, "KILLED_AFTER_S", 3600.0)


@pytest.mark.usefixtures("never_killed")
def test_a_load_that_ends_before_the_kill_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts_engine, "LONGEST_S", 0.1)
    with tried("sqlite") as found, pytest.raises(DynoError, match="the load ended before the act") as no:
        kill_under_load(found.running)
    assert not isinstance(no.value, ServerFailed), "the engine has done nothing wrong"


@pytest.mark.usefixtures("never_killed")
def test_an_engine_that_dies_by_itself_is_not_taken_for_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = LoadProcess.go_on

    def dies(load: LoadProcess) -> Tally | None:
        os.kill(load.process_id, signal.SIGKILL)
        return goes_on(load)

    monkeypatch.setattr(LoadProcess, "go_on", dies)
    with tried("sqlite") as found, pytest.raises(LoadDied):
        kill_under_load(found.running)


def test_only_an_engine_that_still_lives_is_killed(homes: Path) -> None:
    with tried("sqlite") as found:
        over = Event()
        over.set()
        assert not strike(found.running, over, 0.0), "the load is over"
        assert strike(found.running, Event(), 0.0)
        with suppress(LoadDied):
            found.running.load.query(found.running.server.url, "SELECT 1")
        assert not strike(found.running, Event(), 0.0)


@pytest.mark.parametrize(("dies", "error"), [(True, ServerFailed), (False, DriverFailed)])
def test_a_load_that_gives_up_before_the_kill_is_the_engines_fault(
    homes: Path, monkeypatch: pytest.MonkeyPatch, dies: bool, error: type[DynoError]
) -> None:
    study, engine = make_study(1), FakeEngine()

    def gives_up(load: FakeLoad, job: Job) -> Tally:
        if dies:
            engine.servers[-1].kill()
        return make_tally(clients_lost=1)

    monkeypatch.setattr(FakeLoad, "begin", gives_up)
    variant = Variant(name="baseline", levels={"config.speed": 1})
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    with open_journal() as journal, journal.scope(), ExitStack() as undo:
        running, _ = prepare(trial, make_bench(study, make_run(study), journal, engine), undo)
        with pytest.raises(DynoError) as failure:
            kill_under_load(running)
    assert type(failure.value) is error
