"""A clean stop and a kill: a right engine has all that clients were told when it is started again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.driver.tally import Acknowledged
from dbdyno.errors import Blocked
from dbdyno.host.journal import open_journal
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase
from dbdyno.trial import acts
from dbdyno.trial.acts import act_on
from tests.trial.acts.act_cases import DURABLE
from tests.trials import bench_of, study_of, tried


@pytest.mark.engine
@pytest.mark.parametrize("engine", DURABLE)
@pytest.mark.parametrize("act", [Act.STOP, Act.KILL])
def test_all_is_found_after_the_next_start(homes_with_data: Path, engine: str, act: Act) -> None:
    with tried(engine, **DURABLE[engine]) as found, open_journal() as journal, ExitStack() as undo:
        bench = bench_of(study_of(engine, {}), journal)
        tally = found.running.load.run(found.running.setup.job)
        running = replace(found.running, tally=tally)
        phase = Phase(name=act.value, duration_s=1.0, clients=2, then=act)
        acted = act_on(running, phase, bench, undo)
        assert [check for check in acted.checks if not check.holds] == []
        assert {f"balances_equal_after_{act}", f"history_complete_after_{act}"} <= {
            check.name for check in acted.checks
        }
        assert acted.recovery.act is act and not acted.recovery.blocked
        assert (acted.recovery.stop_s is not None) is (act is Act.STOP)
        again = acted.running
        assert again.process_ids and again.process_ids != running.process_ids
        assert again.told.acknowledged >= tally.acknowledged
        assert again.setup.job.clients == running.setup.job.clients
        # What nobody was told of cannot be missed, so a check that is asked for more fails.
        more = again.told.plus(Acknowledged(acknowledged=again.told.unknown + 10_000_000))
        assert not all(one.holds for one in again.load.check(again.setup.job, more))
        # It takes a load again.
        assert again.load.run(again.setup.job).operations > 0


@pytest.mark.engine
def test_what_cannot_be_done_here_is_told_and_nothing_is_done(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise Blocked("fault", "no right to kill", "run as root")

    monkeypatch.setattr(acts, "ENDINGS", {Act.KILL: refuse})
    with tried("sqlite") as found, open_journal() as journal, ExitStack() as undo:
        bench = bench_of(study_of("sqlite", {}), journal)
        phase = Phase(name="kill", duration_s=1.0, then=Act.KILL, optional=True)
        acted = act_on(found.running, phase, bench, undo)
        assert acted.running is found.running
        assert (acted.recovery.blocked, acted.recovery.remedy) == ("no right to kill", "run as root")
        assert found.running.load.run(found.running.setup.job).operations > 0


@pytest.mark.engine
@pytest.mark.parametrize("act", [Act.CUT, Act.TEAR])
def test_a_cut_whose_losses_nobody_could_tell_is_left_out(homes: Path, act: Act) -> None:
    with tried("sqlite") as found, open_journal() as journal, ExitStack() as undo:
        bench = bench_of(study_of("sqlite", {}), journal)
        acted = act_on(found.running, Phase(name=act, duration_s=1.0, then=act, optional=True), bench, undo)
        assert acted.running is found.running and acted.checks == ()
        assert "is not known under tpcb" in acted.recovery.blocked
        assert "tpcb, tpcc" in acted.recovery.remedy
