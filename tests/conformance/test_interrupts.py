"""Ctrl-C, or another client's failure, while a statement is under way: the statement ends too."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import psutil
import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.engines.engine import Ask
from tests.conformance.conftest import bench_for
from tests.loopback import drawn_address

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


@dataclass
class Balancer:
    """Forwards each connection to the server that `to` names then."""

    to: str
    listener: socket.socket = field(default_factory=lambda: socket.create_server((drawn_address(), 3306)))

    def __post_init__(self) -> None:
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection((self.to, 3306))
            for one, other in ((client, server), (server, client)):
                Thread(target=self._forward, args=(one, other), daemon=True).start()

    @staticmethod
    def _forward(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while arrived := one.recv(65536):
                other.sendall(arrived)
            other.shutdown(socket.SHUT_WR)


@contextmanager
def over_tcp(folder: Path, shelf: Path) -> Iterator[tuple[str, Ask]]:
    """A MariaDB's address, and its administrator. The account `clients` has a password of none."""
    address = drawn_address()
    with bench_for("mariadb", folder, shelf) as bench:
        bench.initialise()
        server = bench.start({"skip_networking": "OFF", "bind_address": address, "port": 3306})
        ask = bench.ask(server)
        ask("CREATE USER clients@'%' IDENTIFIED VIA mysql_native_password USING ''")
        yield address, ask


SLEEP = "SELECT SLEEP(3600)"
ASLEEP = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
NUMBER = "SELECT CONNECTION_ID()"
NUMBER_ASLEEP = ASLEEP.replace("COUNT(*)", "id")


def test_a_connection_is_ended_by_its_number_at_its_own_server_alone(tmp_path: Path, shelf: Path) -> None:
    """Behind a balancer, another server may have a connection of the same number."""
    with (
        over_tcp(tmp_path / "one", shelf) as (one, ask_one),
        over_tcp(tmp_path / "two", shelf) as (two, ask_two),
    ):
        with asking(f"mysql://clients@{one}/", SLEEP, {}) as process:
            wait_until(ask_one, ASLEEP, 1)
            assert end_of(process) == "interrupted"
        wait_until(ask_one, ASLEEP, 0)
        balancer = Balancer(one)
        host = balancer.listener.getsockname()[0]
        with balancer.listener:
            while not ended_at_its_own_server(balancer, host, (one, ask_one), (two, ask_two)):
                wait_until(ask_one, ASLEEP, 0)
                wait_until(ask_two, ASLEEP, 0)


def ended_at_its_own_server(
    balancer: Balancer, host: str, first: tuple[str, Ask], second: tuple[str, Ask]
) -> bool:
    """False where who looks whether the others are there came before them, and so took their number."""
    (one, ask_one), (two, ask_two) = first, second
    balancer.to = one
    # Both servers give the same number next, and the first one has given more so far.
    while (last := ask_one(NUMBER)) <= ask_two(NUMBER):
        pass
    while ask_two(NUMBER) < last:
        pass
    with asking(f"mysql://clients@{host}/", SLEEP, {}) as process:
        wait_until(ask_one, ASLEEP, 1)
        with asking(f"mysql://clients@{two}/", SLEEP, {}) as bystander:
            wait_until(ask_two, ASLEEP, 1)
            same = ask_two(NUMBER_ASLEEP) == ask_one(NUMBER_ASLEEP)
            balancer.to = two if same else one
            assert end_of(process) == "interrupted"
            assert ask_two(ASLEEP) == [[1]]
            assert end_of(bystander) == "interrupted"
    return same
