"""Ctrl-C, or another client's failure, while a statement is under way: the statement ends too."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.engines.engine import Ask
from tests.conformance.conftest import bench_for

ENDLESS = {
    "firebird": "SELECT COUNT(*) FROM rdb$fields a, rdb$fields b, rdb$fields c, rdb$fields d",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
}
ASKING = """
import sys
from dbdyno.driver import _driver
print(flush=True)
try:
    _driver.query(sys.argv[1], sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""
LONG = {
    "mariadb": "SELECT BENCHMARK(1000000000000, SHA2('x', 512))",
    "mysql": "SELECT BENCHMARK(1000000000000, SHA2('x', 512))",
    "postgresql": "SELECT pg_sleep(3600)",
}
"""Statements that go on though their client has gone."""
UNDER_WAY = {
    "mariadb": "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT BENCH%'",
    "mysql": "SELECT COUNT(*) FROM performance_schema.processlist WHERE info LIKE 'SELECT BENCH%'",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'",
}
BUSY_S = 0.3
"""CPU time that no process needs for less than an endless statement."""


@contextmanager
def asking(url: str, sql: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is about to ask."""
    command = [sys.executable, "-c", ASKING, url, sql]
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def end_of(process: subprocess.Popen[str]) -> str:
    """What a process says after Ctrl-C. One that does not heed it would keep the test waiting."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=30)[0].strip()


@pytest.mark.parametrize("engine", sorted(ENDLESS))
def test_an_engine_in_the_process_is_interrupted(engine: str, tmp_path: Path, shelf: Path) -> None:
    with bench_for(engine, tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start()
        with asking(server.url, ENDLESS[engine], server.driver_environment) as process:
            clock = psutil.Process(process.pid).cpu_times
            before = clock().user
            while clock().user < before + BUSY_S:
                assert process.poll() is None
            assert end_of(process) == "interrupted"


def test_a_server_that_takes_a_connection_and_says_nothing_is_not_waited_for(
    tmp_path: Path, shelf: Path
) -> None:
    with bench_for("firebird", tmp_path, shelf) as bench, socket.create_server(("127.0.0.1", 0)) as silent:
        bench.initialise()
        server = bench.start()
        options = server.url.partition("?")[2]
        url = f"firebird://u:p@127.0.0.1:{silent.getsockname()[1]}/x?{options}"
        with asking(url, "SELECT 1", server.driver_environment) as process:
            connection, _ = silent.accept()
            with connection:
                assert end_of(process) == "interrupted"


def wait_until(ask: Ask, sql: str, count: int) -> None:
    """Waits for so many statements to be under way. Those that go on for ever would keep the test waiting."""
    while ask(sql) != [[count]]:
        time.sleep(0.05)


@pytest.mark.parametrize("engine", sorted(LONG))
def test_a_statement_that_is_given_up_ends_at_the_server(engine: str, tmp_path: Path, shelf: Path) -> None:
    script = tmp_path / "one-fails.pgbench"
    script.write_text(
        f"\\if :client_id = 0\n{LONG[engine]};\n\\else\nSELECT (SELECT 1 UNION SELECT 2);\n\\endif\n"
    )
    with bench_for(engine, tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start()
        ask, under_way = bench.ask(server), UNDER_WAY[engine]
        with asking(server.url, LONG[engine], {}) as process:
            wait_until(ask, under_way, 1)
            assert end_of(process) == "interrupted"
        wait_until(ask, under_way, 0)
        # A client's failure ends the run, and so what the other one waits for.
        job = Job(url=server.url, workload=str(script), clients=2, duration_s=3600.0)
        with pytest.raises(_driver.DriverError, match="in a row failed"):
            _driver.run(job.model_dump_json())
        wait_until(ask, under_way, 0)
