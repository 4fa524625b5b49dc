"""Clients that misbehave beside a load: a right server goes on, and is rid of them when they have left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.tally import Tally
from dbdyno.errors import DynoError
from dbdyno.layers.setup import Running
from dbdyno.study.soak import Disturbance
from dbdyno.study.trials import Guest, Phase
from dbdyno.trial import extra_clients
from dbdyno.trial.extra_clients import BEHAVIOURS, GuestVisit, guests_of
from tests.trials import tried

LOADS_MOST = 120
"""Far more loads of half a second than any guest needs to show itself."""


def phase_with(*company: Guest) -> Phase:
    return Phase(name="disturbed", duration_s=1.0, guests=company)


def loads_until(seen: Callable[[], bool], running: Running) -> list[Tally]:
    """Loads, one after the other, until something is seen."""
    tallies: list[Tally] = []
    while len(tallies) < LOADS_MOST:
        tallies.append(running.load.run(running.setup.job.but(duration_s=0.5)))
        if seen():
            return tallies
    raise AssertionError("it was never seen")


def wait_for(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline, "it was never seen"
        time.sleep(0.02)


def connections(running: Running) -> int:
    [[_, value]] = running.ask("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    return int(float(value or 0))


def stopped_children() -> list[psutil.Process]:
    children = psutil.Process(os.getpid()).children(recursive=True)
    return [child for child in children if child.status() == psutil.STATUS_STOPPED]


def showed_itself(kind: Disturbance, visits: Sequence[GuestVisit]) -> bool:
    if kind is Disturbance.HALF_OPEN:
        return bool(stopped_children())
    return visits[0].rounds > 0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHURN_S", "STOPPED_AFTER_S", "SILENT_S"):
        monkeypatch.setattr(extra_clients, name, 0.3)


@pytest.mark.engine
def test_a_server_goes_on_whatever_its_clients_do(homes_with_data: Path) -> None:
    with tried("mariadb") as found:
        for kind in Disturbance:
            phase = phase_with(Guest(clients=3, disturbance=kind))
            with guests_of(found.running, phase, LoadProcess) as visits:
                tallies = loads_until(lambda: showed_itself(kind, visits), found.running)  # noqa: B023
            assert all(tally.operations and not tally.clients_lost for tally in tallies), kind
            [told] = [visit.told() for visit in visits]
            assert (told.name, told.clients, told.errors) == (kind.value, 3, {}), kind
            assert told.rounds >= 1, kind
            assert not stopped_children(), "nobody is left behind"
        # Whoever was killed or stopped is noticed by the server, before long.
        loads_until(lambda: connections(found.running) <= 2, found.running)


@pytest.mark.engine
def test_another_workload_keeps_its_own_invariants(homes_with_data: Path) -> None:
    with tried("mariadb") as found:
        phase = phase_with(Guest(clients=2, workload="point_select"))
        with guests_of(found.running, phase, LoadProcess) as [visit]:
            loads_until(lambda: visit.operations > 0, found.running)
        assert visit.told().errors == {}
        invariants = found.running.load.check(found.running.setup.job, None)
        assert all(one.holds for one in invariants)


@pytest.mark.engine
def test_a_script_beside_the_load_is_sent_at_its_rate(homes_with_data: Path, tmp_path: Path) -> None:
    script = tmp_path / "beside.sql"
    script.write_text("UPDATE pgbench_branches SET bbalance = bbalance WHERE bid = 1;\n")
    with tried("mariadb") as found:
        setup = found.running.setup
        setup.job = setup.job.but(workload="script", options={"file": str(script)})
        phase = phase_with(Guest(clients=2, file=str(script), rate_per_s=50.0))
        with guests_of(found.running, phase, LoadProcess) as [visit]:
            wait_for(lambda: visit.rounds == 1)
        told = visit.told()
    assert (told.name, told.errors) == (str(script), {})
    # The load lasts for a second, and arrivals are those of a Poisson process: 150 never come.
    assert 0 < told.operations < 150


@pytest.mark.engine
def test_guests_whom_a_server_refuses_are_counted_and_try_again(homes_with_data: Path) -> None:
    with tried("mariadb", config__max_connections=10) as found:
        phase = phase_with(Guest(clients=30, disturbance=Disturbance.CHURN))
        with guests_of(found.running, phase, LoadProcess) as [visit]:
            # Nobody else can connect meanwhile.
            wait_for(lambda: sum(visit.errors.values()) > 1)
        assert any("Too many connections" in kind for kind in visit.told().errors)


@pytest.mark.engine
def test_guests_leave_when_the_load_fails(homes_with_data: Path) -> None:
    before = len(psutil.Process(os.getpid()).children(recursive=True))
    with tried("mariadb") as found:
        company = [Guest(clients=2, disturbance=kind) for kind in Disturbance]
        with (
            pytest.raises(DynoError, match=r"^over$"),
            guests_of(found.running, phase_with(*company), LoadProcess) as visits,
        ):
            loads_until(lambda: sum(visit.rounds for visit in visits) >= 3, found.running)
            raise DynoError("over")
    assert len(psutil.Process(os.getpid()).children(recursive=True)) == before


def test_every_disturbance_has_a_behaviour() -> None:
    assert set(BEHAVIOURS) == {*Disturbance, None}


def test_a_signal_to_a_process_that_is_gone_is_no_fault() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    handle = os.pidfd_open(child)
    os.waitpid(child, 0)
    extra_clients._signal(handle, signal.SIGKILL)
    os.close(handle)
    extra_clients._signal(handle, signal.SIGKILL)
