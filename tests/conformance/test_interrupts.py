"""Ctrl-C while the driver is in a call that blocks its thread: the call ends, and so does what waits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

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
