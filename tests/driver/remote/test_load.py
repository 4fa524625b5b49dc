"""A load that another host puts on a server, tried on this host with an engine in the driver's process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.remote.load import (
    TRIPS,
    TRIPS_BETWEEN,
    DriverOnHost,
    ReachedServer,
    RemoteLoad,
    by_clock_here,
    install,
)
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed
from dbdyno.host.launch import Launch
from tests.fakes import a_slice, make_tally
from tests.load_hosts import NAME, log_in_here

SLICES = 2


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> Iterator[tuple[RemoteLoad, Job]]:
    """The load and its job. What takes connections is no server: the engine is in the driver's process."""
    log_in_here(tmp_path, monkeypatch)
    install(NAME)
    place = f"sqlite://{tmp_path}/rows"
    with LoadProcess({}, Launch()) as beside:
        driver = DriverOnHost(NAME)
        remote = RemoteLoad(beside, [driver], ReachedServer("127.0.0.1", listener.getsockname()[1], place))
        # An engine in the process knows no TLS, and its URL has parameters of its own.
        [at_host] = remote._hosts
        at_host.url = f"{place}?synchronous=off&journal_mode=wal"
        job = Job(url=at_host.url, workload="tpcb", duration_s=0.4, slices=SLICES, settle_s=0.02)
        remote.prepare(job)
        yield remote, job
        remote.close()


def test_a_load_in_slices_is_measured_with_its_link_around_each(load: tuple[RemoteLoad, Job]) -> None:
    remote, job = load
    assert remote.begin(job.but(url="")) is None
    assert remote.go_on() is None
    tally = remote.go_on()
    assert tally is not None and tally.operations > 0 and len(tally.slices) == SLICES
    [seen] = remote.seen
    moments = [(one.moment, one.network.count, one.control.count) for one in seen.readings]
    assert moments == [
        ("before", TRIPS, TRIPS),
        *[("between", TRIPS_BETWEEN, TRIPS_BETWEEN)] * SLICES,
        ("after", TRIPS, TRIPS),
    ]
    assert seen.load_s >= 0.4, "of the slices, and not of what lies between them"
    assert seen.driver_s > 0.0 and seen.round_trip_s > 0.0
    assert seen.clock is not None and abs(seen.clock.clock_offset_s) <= seen.clock.clock_within_s + 1e-3
    assert remote.told is not None and remote.told.acknowledged > 0
    assert all(check.holds for check in remote.check(job, Acknowledged.by([tally])))


def test_each_load_has_readings_of_its_own(load: tuple[RemoteLoad, Job]) -> None:
    remote, job = load
    whole = job.but(slices=None)
    for _ in range(2):
        assert remote.run(whole).operations > 0
        [seen] = remote.seen
        assert [one.moment for one in seen.readings] == ["before", "after"]
        assert 0.4 <= seen.load_s < 4.0


def test_times_are_told_by_the_clock_here() -> None:
    slices = [a_slice(started_unix_s=105.0, duration_s=1.0, operations=1)]
    counted = make_tally(started_unix_s=100.0, slices=slices).model_dump()
    tally = Tally.model_validate(by_clock_here(counted, ahead_s=40.0))
    assert tally.started_unix_s == 60.0
    assert tally.windows == ((65.0, 66.0),)


def test_a_server_that_is_not_reached_is_told_with_its_address(
    load: tuple[RemoteLoad, Job], listener: socket.socket
) -> None:
    remote, job = load
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(DriverFailed) as refused:
        remote.begin(job)
    assert refused.value.message == (
        f"load1 does not reach the server at 127.0.0.1, port {port}: Connection refused"
    )
    assert "address of this host" in refused.value.hint


def test_a_client_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_SSH", "no-such-program -F x")
    with pytest.raises(DriverFailed, match="no-such-program cannot be started: No such file") as missing:
        DriverOnHost(NAME)
    assert "openssh-client" in missing.value.hint
