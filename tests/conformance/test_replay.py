"""Recordings played on real servers: who is late, what fails, and what a server's own log becomes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Replay, Tally
from dbdyno.engines.server import ServerProcess
from dbdyno.frozen import Level
from dbdyno.sql_logs.formats import FORMATS
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.record import record
from dbdyno.sql_logs.recording import About, about
from dbdyno.sql_logs.seen import SeenStatement
from tests.conformance.conftest import Bench, serving, started
from tests.sql_logs.read_cases import Given

SLEEP = {"mariadb": "SELECT SLEEP(1.5)", "postgresql": "SELECT pg_sleep(1.5)"}
LOGS = {"mariadb": "slow log", "postgresql": "PostgreSQL log"}
ENGINES = ("mariadb", "postgresql")
BEGIN_S = 1_795_363_200.25


def seen(session: str, at_s: float, text: str, **rest: Any) -> SeenStatement:
    return SeenStatement(text, 1, session=session, at_s=BEGIN_S + at_s, **rest)


def recorded(engine: str, log: list[SeenStatement], folder: Path) -> Path:
    [kind] = [kind for kind in FORMATS if kind.name == LOGS[engine]]
    path = folder / "log.replay"
    path.unlink(missing_ok=True)
    record(Given(kind, log), "log", path)
    return path


def played(url: str, path: Path, **options: Any) -> tuple[Tally, Replay]:
    """The whole recording, unless the options of the job say otherwise."""
    times = {name: options.pop(name) for name in ("warmup_s", "duration_s", "ramp_s") if name in options}
    job = Job(
        url=url,
        workload="replay",
        options={"file": str(path), **options},
        **{"duration_s": max(0.1, about(path).length_s), **times},
    )
    tally = Tally.model_validate_json(_driver.run(job.model_dump_json()), strict=True)
    assert tally.replay is not None
    return tally, tally.replay


def asked(url: str, sql: str) -> list[list[Any]]:
    return list(json.loads(_driver.query(url, sql))["rows"])


@pytest.fixture(scope="module", params=ENGINES)
def bench(
    request: pytest.FixtureRequest, shelf: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """An engine whose server runs for all tests."""
    with serving(request.param, tmp_path_factory.mktemp("server"), shelf) as made:
        yield made


@pytest.fixture
def engine(bench: Bench) -> str:
    return bench.engine.name


@pytest.fixture
def url(bench: Bench) -> Iterator[str]:
    """That of a server without tables."""
    yield bench.servers[0].url
    bench.empty()


def test_a_server_that_stalls_is_told_from_a_driver_that_is_late(
    engine: str, url: str, tmp_path: Path
) -> None:
    """What was recorded as instantaneous takes a second and a half, and ten statements wait behind it. A
    second session waits for nobody, and the first statement for a connection alone."""
    stalled = [seen("1", 0.0, SLEEP[engine]), *(seen("1", 0.1 + n / 100, "SELECT 1") for n in range(10))]
    free = [seen("2", 0.05 + n / 10, "SELECT 2") for n in range(5)]
    _, replay = played(url, recorded(engine, stalled + free, tmp_path))
    assert (replay.statements, replay.sessions, replay.unsent) == (16, 2, 0)
    assert 10 <= replay.late_by_server <= 12
    assert replay.server_lag_us.max is not None and replay.server_lag_us.max > 1_000_000
    assert replay.server_lag_us.sum > 10 * 1_000_000 > replay.driver_lag_us.sum
    assert replay.took_s > 1.4 > replay.recorded_s


def test_latency_counts_from_the_time_that_was_recorded(engine: str, url: str, tmp_path: Path) -> None:
    stalled = [seen("1", 0.0, SLEEP[engine]), seen("1", 0.1, "SELECT 1")]
    tally, _ = played(url, recorded(engine, stalled, tmp_path))
    assert tally.by_transaction["select"].operations == 2
    assert tally.latency_us.min is not None and tally.latency_us.min > 1_300_000


def test_without_pauses_nothing_is_late_and_sessions_keep_their_order(
    engine: str, url: str, tmp_path: Path
) -> None:
    asked(url, "CREATE TABLE told (place INT)")
    log = [seen("1", n * 100.0, f"INSERT INTO told VALUES ({n})") for n in range(20)]
    tally, replay = played(url, recorded(engine, log, tmp_path), speed="max")
    assert (replay.statements, replay.late_by_server, replay.late_by_driver) == (20, 0, 0)
    assert (replay.speed, replay.planned_s, replay.server_lag_us.count) == (None, None, 0)
    assert tally.clients == 1
    assert asked(url, "SELECT COUNT(*) FROM told") == [[20]]


def test_a_ramp_holds_up_no_session_that_opens_later(engine: str, url: str, tmp_path: Path) -> None:
    """One session is there from the beginning to the end. Ten others open and close within it, while the ramp
    holds each client but the first up for more than a second."""
    asked(url, "CREATE TABLE told (id SERIAL, place INT)")
    log = [seen("long", 0.0, "INSERT INTO told (place) VALUES (0)")]
    for n in range(5):
        for chain in (0, 1):
            session, at_s = f"{chain} {n}", 0.2 + n * 0.2 + 0.05 * chain
            log += [seen(session, at_s + 0.05 * m, f"INSERT INTO told (place) VALUES ({n})") for m in (0, 1)]
            log += [SeenStatement("", 1, rest="command Quit", session=session, at_s=BEGIN_S + at_s + 0.06)]
    log += [seen("long", 2.8, "INSERT INTO told (place) VALUES (28)")]
    log.sort(key=lambda one: one.at_s or 0.0)
    tally, replay = played(url, recorded(engine, log, tmp_path), ramp_s=12.0)
    assert (tally.clients, replay.sessions, replay.unsent) == (11, 11, 0)
    assert asked(url, "SELECT place FROM told ORDER BY id")[-1] == [28]


def test_transactions_are_as_they_were(engine: str, url: str, tmp_path: Path) -> None:
    asked(url, "CREATE TABLE kept (place INT)")
    log = [
        seen("1", 0.0, "BEGIN"),
        seen("2", 0.01, "BEGIN"),
        seen("1", 0.02, "INSERT INTO kept VALUES (1)"),
        seen("2", 0.03, "INSERT INTO kept VALUES (2)"),
        seen("1", 0.04, "COMMIT"),
        seen("2", 0.05, "ROLLBACK"),
        seen("3", 0.06, "INSERT INTO kept VALUES (3)"),
    ]
    tally, _ = played(url, recorded(engine, log, tmp_path), speed=2)
    assert asked(url, "SELECT place FROM kept ORDER BY place") == [[1], [3]]
    assert {name: kind.operations for name, kind in tally.by_transaction.items()} == {
        "insert": 3,
        "begin": 2,
        "commit": 1,
        "rollback": 1,
    }


def test_failures_are_told_by_statement_and_end_no_session(engine: str, url: str, tmp_path: Path) -> None:
    log = [
        seen("1", 0.0, "SELECT a FROM nothing WHERE b = 5"),
        seen("1", 0.1, "SELECT a FROM nothing WHERE b = 6"),
        seen("1", 0.2, "SELECT a FROM nowhere", failed=True),
        seen("1", 0.3, "SELECT 1"),
    ]
    tally, replay = played(url, recorded(engine, log, tmp_path))
    [failed] = replay.failed
    assert (failed.statement, failed.count) == ("SELECT a FROM nothing WHERE b = ?", 2)
    assert tally.errors == {failed.error: 2}
    assert tally.operations == 2


def test_other_numbers_of_rows_are_told_and_are_no_failure(engine: str, url: str, tmp_path: Path) -> None:
    log = [
        seen("1", 0.0, "SELECT 1 UNION SELECT 2", rows=2),
        seen("1", 0.1, "SELECT 7", rows=3),
        seen("1", 0.2, "SELECT 8"),
    ]
    tally, replay = played(url, recorded(engine, log, tmp_path))
    assert (replay.rows_compared, replay.rows_differ) == (2, 1)
    assert replay.differing == {"SELECT ?": 1}
    assert (tally.operations, tally.errors) == (3, {})


def test_each_replay_plays_the_same_part(engine: str, url: str, tmp_path: Path) -> None:
    log = [seen(str(n % 3), n / 10, f"SELECT {n}") for n in range(20)]
    path = recorded(engine, log, tmp_path)
    for speed in (1, 4):
        tally, replay = played(url, path, speed=speed, warmup_s=0.45, duration_s=0.5)
        assert (replay.statements, tally.acknowledged, replay.recorded_s) == (5, 10, 0.95)


def test_a_recording_of_another_kind_of_server_is_refused(engine: str, url: str, tmp_path: Path) -> None:
    [other] = {*ENGINES} - {engine}
    path = recorded(other, [seen("1", 0.0, "SELECT 1")], tmp_path)
    with pytest.raises(_driver.DriverError) as refused:
        played(url, path)
    assert refused.value.kind == "user"
    assert "was recorded on" in refused.value.message


def test_data_that_are_not_the_recordings_end_the_run(engine: str, url: str, tmp_path: Path) -> None:
    log = [seen("1", n / 1000, f"SELECT a FROM nothing WHERE b = {n}") for n in range(150)]
    with pytest.raises(_driver.DriverError) as refused:
        played(url, recorded(engine, log, tmp_path))
    assert "100 statements in a row failed" in refused.value.message
    assert "dump" in refused.value.hint


def test_a_slow_log_of_mariadb_is_played(tmp_path: Path, shelf: Path) -> None:
    log = tmp_path / "slow.log"
    with started("mariadb", {}, tmp_path, shelf) as found:
        url = found.url
        load = Job(url=url, workload="read_write", options={"table_size": 100}, clients=3, operations=300)
        _driver.prepare(load.model_dump_json())
        for sql in (
            f"SET GLOBAL slow_query_log_file = '{log}'",
            "SET GLOBAL long_query_time = 0",
            "SET GLOBAL slow_query_log = 1",
        ):
            asked(url, sql)
        told = Tally.model_validate_json(_driver.run(load.model_dump_json()))
        asked(url, "SET GLOBAL slow_query_log = 0")
        said = record(log_of([log]), "slow.log", tmp_path / "log.replay")
        tally, replay = played(url, tmp_path / "log.replay", speed=2)
    _require_all(said, told)
    assert replay.statements + replay.unsent == said.count
    assert replay.sessions == said.sessions
    assert tally.operations + sum(tally.errors.values()) == said.count
    assert replay.rows_compared > replay.rows_differ * 2


def test_a_log_of_postgresql_is_played(tmp_path: Path, shelf: Path) -> None:
    settings: dict[str, Level] = {
        "log_min_duration_statement": 0,
        "log_line_prefix": "%m [%p] %q%u@%d ",
        "log_connections": "on",
        "log_disconnections": "on",
    }
    with started("postgresql", settings, tmp_path, shelf) as found:
        url = found.url
        load = Job(url=url, workload="tpcb", clients=3, operations=500)
        _driver.prepare(load.model_dump_json())
        told = Tally.model_validate_json(_driver.run(load.model_dump_json()))
        time.sleep(0.2)
        log = tmp_path / "postgresql.log"
        assert isinstance(found, ServerProcess)
        log.write_bytes(found.log_path.read_bytes())
        said = record(log_of([log]), "postgresql.log", tmp_path / "log.replay")
        tally, replay = played(url, tmp_path / "log.replay", speed="max")
    _require_all(said, told)
    assert replay.statements == said.count
    assert tally.operations + sum(tally.errors.values()) == said.count


def _require_all(said: About, told: Tally) -> None:
    """The log holds every transaction that the load was told of."""
    commits = next(number for number, kind in enumerate(said.kinds) if kind in ("commit", "end"))
    assert any(kind.kind == commits for kind in said.statements)
    assert said.count > told.acknowledged
