"""Loads through what users have in front of a server: PgBouncer, which shares the server's sessions, and
HAProxy, which passes bytes on."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines.engine import Server
from dbdyno.frozen import Level
from tests.cli.calls import Said, dyno
from tests.conformance.conftest import started
from tests.loopback import drawn_address
from tests.needs import IS_ROOT, needs_haproxy, needs_pgbouncer, program_of_administrators

POSTGRESQL, MARIADB = drawn_address(), drawn_address()
IN_FRONT_PORT = 6432
SESSIONS = 2
"""Of the server that PgBouncer has, which is less than clients."""
CLIENTS = 4
SCRIPT = """\
\\set id random(1, 100000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;
SELECT abalance FROM pgbench_accounts WHERE aid = :id;
END;
"""


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("postgresql")
    rules = folder / "pg_hba.conf"
    rules.write_text("local all all trust\nhost all all all trust\n")
    settings: dict[str, Level] = {"listen_addresses": POSTGRESQL, "hba_file": str(rules)}
    with started("postgresql", settings, folder, shelf) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Server]:
    settings: dict[str, Level] = {"skip_networking": "OFF", "bind_address": MARIADB, "port": 3306}
    with started("mariadb", settings, tmp_path_factory.mktemp("mariadb"), shelf) as server:
        query(server.url, "CREATE USER through@'%' IDENTIFIED VIA mysql_native_password USING ''")
        query(server.url, "GRANT ALL ON *.* TO through@'%'")
        yield server


@contextmanager
def listening(command: list[str], address: str) -> Iterator[str]:
    """A program that listens there while this lasts. Gives the address with its port."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while True:
            assert process.poll() is None, process.communicate()[1]
            try:
                socket.create_connection((address, IN_FRONT_PORT)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        yield f"{address}:{IN_FRONT_PORT}"
    finally:
        process.kill()
        process.communicate()


def keeps_statements() -> bool:
    """Whether this PgBouncer can keep each client's prepared statements apart, as it can since 1.21."""
    told = subprocess.run(
        [program_of_administrators("pgbouncer"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    major, minor = re.findall(r"\d+", told)[:2]
    return (int(major), int(minor)) >= (1, 21)


@contextmanager
def pgbouncer(mode: str, folder: Path, kept_statements: int = 0) -> Iterator[str]:
    """PgBouncer in front of the PostgreSQL, with this mode of pooling. Gives where it listens."""
    kept = f"max_prepared_statements = {kept_statements}\n" if keeps_statements() else ""
    address, configuration = drawn_address(), folder / "pgbouncer.ini"
    # It refuses to run as root.
    user = "user = nobody\n" if IS_ROOT else ""
    sessions = SESSIONS if mode == "transaction" else 20
    configuration.write_text(
        f"[databases]\ndyno = host={POSTGRESQL} port=5432 dbname=dyno user=dyno\n"
        f"[pgbouncer]\nlisten_addr = {address}\nlisten_port = {IN_FRONT_PORT}\nunix_socket_dir =\n{user}"
        f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = {sessions}\n{kept}"
    )
    command = [program_of_administrators("pgbouncer"), "-q", str(configuration)]
    with listening(command, address) as place:
        yield place


@contextmanager
def haproxy(behind: str, folder: Path) -> Iterator[str]:
    """HAProxy in front of a server, for bytes of any protocol. Gives where it listens."""
    address, configuration = drawn_address(), folder / "haproxy.cfg"
    configuration.write_text(
        "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 60s\n  timeout server 60s\n"
        f"listen through\n  bind {address}:{IN_FRONT_PORT}\n  server behind {behind}\n"
    )
    with listening([program_of_administrators("haproxy"), "-db", "-f", str(configuration)], address) as place:
        yield place


def load(verb: str, workload: str, url: str, *options: str) -> Said:
    return dyno("load", verb, workload, "--url", url, *options)


def short(workload: str, url: str, *options: str) -> Said:
    run = ("--clients", str(CLIENTS), "--operations", "60", "--warmup", "0", "--time", "120", "--json")
    return load("run", workload, url, *run, *options)


CONFLICTS = {"1020 record changed", "1213 deadlock"}
"""What clients of one row get from a MariaDB, and repeat."""


def failures(done: Said) -> set[str]:
    """The errors of a run that ended well with all of its operations."""
    assert done.returncode == 0, done.stderr
    tally = json.loads(done.stdout)
    assert tally["operations"] == 60
    return set(tally["errors"]) - CONFLICTS


def carried_out(url: str, folder: Path) -> None:
    """`tpcb`, `point_select` and a script, each without an error and with all that was acknowledged."""
    script, tally = folder / "transfer.pgbench", folder / "tally.json"
    script.write_text(SCRIPT)
    for workload, options in (("tpcb", ()), ("point_select", ("--table-size", "1000"))):
        made = load("prepare", workload, url, *options)
        assert made.returncode == 0, made.stderr
        done = short(workload, url, *options)
        assert failures(done) == set()
        tally.write_text(done.stdout)
        checked = load("check", workload, url, *options, "--tally", str(tally))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert failures(short(str(script), url)) == set()


@needs_pgbouncer
@pytest.mark.parametrize(
    ("mode", "query_string"),
    [("session", ""), ("transaction", "?statements=unnamed"), ("transaction", "?statements=text")],
)
def test_loads_run_through_pgbouncer(
    postgresql: Server, mode: str, query_string: str, tmp_path: Path
) -> None:
    with pgbouncer(mode, tmp_path) as place:
        carried_out(f"postgresql://dyno@{place}/dyno{query_string}", tmp_path)


@needs_pgbouncer
def test_prepared_statements_are_refused_where_a_pooler_would_lose_them(
    postgresql: Server, tmp_path: Path
) -> None:
    """One client alone would keep its session by luck. Of several, one may meet another's statement first."""
    size = ("--table-size", "10")
    with pgbouncer("transaction", tmp_path) as place:
        url = f"postgresql://dyno@{place}/dyno"
        assert load("prepare", "point_select", url, *size).returncode == 0
        alone = load("run", "point_select", url, *size, "--operations", "6", "--warmup", "0", "--time", "9")
        several = short("point_select", url, *size)
    for refused in (alone, several):
        assert refused.returncode != 0
        assert "add ?statements=unnamed to the URL" in " ".join(refused.stderr.split())
    assert "leaves prepared statements behind" in " ".join(alone.stderr.split())


@needs_pgbouncer
def test_what_a_connection_is_told_first_is_refused_where_it_would_hold_for_some_transactions(
    postgresql: Server, tmp_path: Path
) -> None:
    given = ("--table-size", "10", "--isolation", "serializable")
    with pgbouncer("session", tmp_path) as place:
        url = f"postgresql://dyno@{place}/dyno"
        assert load("prepare", "point_select", url, *given).returncode == 0
        assert short("point_select", url, *given).returncode == 0
    with pgbouncer("transaction", tmp_path) as place:
        refused = short("point_select", f"postgresql://dyno@{place}/dyno?statements=unnamed", *given)
    said = " ".join(refused.stderr.split())
    assert refused.returncode != 0
    assert "holds for some transactions only" in said
    assert "pool_mode = session" in said


@needs_pgbouncer
def test_prepared_statements_are_used_where_a_pooler_keeps_them(postgresql: Server, tmp_path: Path) -> None:
    if not keeps_statements():
        pytest.skip("PgBouncer keeps prepared statements since 1.21")
    with pgbouncer("transaction", tmp_path, kept_statements=200) as place:
        carried_out(f"postgresql://dyno@{place}/dyno", tmp_path)


@needs_haproxy
@pytest.mark.parametrize("query_string", ["", "?statements=unnamed", "?statements=text"])
def test_loads_run_on_postgresql_through_haproxy(
    postgresql: Server, query_string: str, tmp_path: Path
) -> None:
    with haproxy(f"{POSTGRESQL}:5432", tmp_path) as place:
        carried_out(f"postgresql://dyno@{place}/dyno{query_string}", tmp_path)


@needs_haproxy
@pytest.mark.parametrize("query_string", ["", "?statements=text"])
def test_loads_run_on_mariadb_through_haproxy(mariadb: Server, query_string: str, tmp_path: Path) -> None:
    with haproxy(f"{MARIADB}:3306", tmp_path) as place:
        carried_out(f"mysql://through@{place}/dyno{query_string}", tmp_path)
