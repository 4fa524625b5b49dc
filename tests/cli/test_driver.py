"""A load from another host: one in a network namespace of its own, which a real sshd lets in."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.load_hosts import NAME, OTHER_NAME, Apart, apart
from tests.trials import alone_on_host

STUDY = """
title  = "From another host"
engine = "{engine}"
blocks = 1
images = 1
[driver]
host    = {hosts}
address = "{address}"
{way}
[workload]
name     = "tpcb"
clients  = 4
warmup   = "0.2s"
duration = "{duration}"
plans    = false
{more}
[factors]
{factor}
"""
ELSEWHERE = "198.51.100.7"
"""Of a network that only documentation has (RFC 5737)."""
IN_THE_MIDST_S = 2.0
OF_ENGINE = {
    "postgresql": ('network = "private"', '"config.synchronous_commit" = ["on", "off"]', "rate_per_s = 200"),
    "mariadb@11.8": ("tls = true", '"config.innodb_flush_log_at_trx_commit" = [1, 0]', ""),
}


@pytest.fixture
def load_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, homes_with_data: Path) -> Iterator[Apart]:
    (tmp_path / "load-host").mkdir()
    with apart(tmp_path / "load-host", monkeypatch) as host:
        yield host


def text_of(engine: str, address: str, duration: str = "1s", hosts: Sequence[str] = (NAME,)) -> str:
    way, factor, more = OF_ENGINE[engine]
    return STUDY.format(
        engine=engine, address=address, way=way, factor=factor, more=more, duration=duration,
        hosts=json.dumps(hosts[0] if len(hosts) == 1 else list(hosts)),
    )  # fmt: skip


def study_at(
    folder: Path, host: Apart, engine: str, duration: str = "1s", hosts: Sequence[str] = (NAME,)
) -> str:
    path = folder / "study.toml"
    path.write_text(text_of(engine, host.address, duration, hosts))
    return str(path)


def records() -> list[Record]:
    with Store(store_url()) as store:
        return list(store.records(store.run("last").run))


def measured(path: str) -> list[Record]:
    """The records of a study that is carried out with the driver on its load hosts."""
    assert dyno("fleet", "driver", "install", NAME).returncode == 0
    with alone_on_host():
        ran = dyno("run", path, "--quiet")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    found = records()
    assert [one.outcome for one in found] == [Outcome.MEASURED] * 2, [one.cause for one in found]
    return found


@pytest.mark.parametrize("engine", OF_ENGINE)
def test_a_study_is_measured_from_another_host(load_host: Apart, homes: Path, engine: str) -> None:
    path = study_at(homes, load_host, engine)
    assert "the driver of this Dyno is not on load1" in complaint("run", path, "--quiet", code=1)
    for record in measured(path):
        tally = record.tally
        assert tally is not None and tally.operations > 0
        assert sum(tally.errors.values()) == tally.retries, "conflicts between clients alone"
        assert all(check.holds for check in record.checks)
        assert not record.server_log or "dyno_load:" not in record.server_log
        [host] = record.load_hosts
        assert (host.name, host.address, host.encrypted) == (NAME, load_host.address, engine != "postgresql")
        assert host.readings[0].moment == "before" and host.readings[-1].moment == "after"
        assert 0.0 < host.round_trip_s < 0.1 and host.driver_s > 0.0
        carried = [(one.to_server_bytes_per_s, one.from_server_bytes_per_s) for one in host.bandwidths]
        assert len(carried) == 2 and min(map(min, carried)) > 1e6
    assert "Load: from load1" in dyno("report", "--format", "markdown").stdout
    listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout
    assert load_host.address not in listening, "no server outlives its trial"


@pytest.mark.parametrize("engine", OF_ENGINE)
def test_two_hosts_share_the_clients_and_arrivals_of_a_load(
    load_host: Apart, homes: Path, engine: str
) -> None:
    path = study_at(homes, load_host, engine, hosts=(NAME, OTHER_NAME))
    for record in measured(path):
        tally, hosts = record.tally, record.load_hosts
        assert tally is not None and tally.clients == 4 and tally.threads == 2
        assert [(host.name, host.clients) for host in hosts] == [(NAME, 2), (OTHER_NAME, 2)]
        operations = [host.operations or 0 for host in hosts]
        assert tally.operations == sum(operations)
        assert min(operations) > 0 and all(check.holds for check in record.checks)
        assert tally.latency_us.count >= sum(kind.latency_us.count for kind in tally.by_transaction.values())
        assert all(host.late_s is not None and host.late_s >= 0.0 for host in hosts)
        if tally.open_loop is not None:
            assert tally.open_loop.offered_per_s == pytest.approx(200.0, rel=0.35)
    assert "Load: from load1" in dyno("report", "--format", "markdown").stdout


def cut_off(host: Apart, over: threading.Event) -> None:
    """Ends the youngest session of the load host, once, when a driver has been there for so long that it is
    in the midst of a load."""
    while not over.wait(0.05):
        found = [session for session in sessions_at(host) if any(map(is_in_the_midst, below(session)))]
        if found:
            youngest = max(found, key=psutil.Process.create_time)
            # Of an OpenSSH since 9.8 a session may be several processes, each with the connection.
            for process in (youngest, *below(youngest)):
                with suppress(psutil.NoSuchProcess):
                    if process.name().startswith("sshd"):
                        process.kill()
            return


def sessions_at(host: Apart) -> list[psutil.Process]:
    return psutil.Process(host.sshd.pid).children()


def below(session: psutil.Process) -> list[psutil.Process]:
    """What runs in a session, which may have ended by itself since it was listed."""
    try:
        return session.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def is_in_the_midst(process: psutil.Process) -> bool:
    try:
        driver = any("stdin.buffer.read" in word for word in process.cmdline())
        return driver and time.time() - process.create_time() > IN_THE_MIDST_S
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("hosts", [(NAME,), (NAME, OTHER_NAME)], ids=["alone", "one of two"])
def test_a_connection_that_is_lost_fails_its_trial_and_the_run_goes_on(
    load_host: Apart, homes: Path, hosts: tuple[str, ...]
) -> None:
    path = study_at(homes, load_host, "postgresql", duration="4s", hosts=hosts)
    over = threading.Event()
    dyno("fleet", "driver", "install", NAME)
    cutter = threading.Thread(target=cut_off, args=(load_host, over))
    cutter.start()
    try:
        with alone_on_host():
            ran = dyno("run", path, "--quiet")
    finally:
        over.set()
        cutter.join()
    lost, rest = (
        [one for one in records() if (one.outcome is Outcome.FAILED) is failed] for failed in (True, False)
    )
    assert lost and len(lost) + len(rest) == 2, ran.stderr
    reasons = [f"the connection to {host} was lost during" for host in hosts]
    assert all(any(reason in one.cause for reason in reasons) for one in lost), [one.cause for one in lost]
    assert not any(below(session) for session in sessions_at(load_host)), "a load that lost a host ends"
    assert all("sshd there" in one.remedy for one in lost)
    assert dyno("run", "--resume", "last", "--add-blocks", "1", "--quiet").returncode in (0, 3)
    assert [one.outcome for one in records()[2:]] == [Outcome.MEASURED] * 2


def test_a_run_does_not_begin_where_this_host_has_no_such_address(
    homes_with_engines: Path, tmp_path: Path
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text_of("postgresql", ELSEWHERE))
    assert f"this host cannot listen on {ELSEWHERE}" in complaint("run", str(path), "--quiet")


def test_an_option_is_no_name_of_a_host(homes: Path) -> None:
    assert "cannot be" in complaint("fleet", "driver", "install", "--", "-oProxyCommand=x")
