"""From a server's own log and dump to a study that runs: what a user brings, made by real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE, ServerProcess, socket_of
from dbdyno.obtain.server import program
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.cli.calls import dyno
from tests.conformance.conftest import bench_for
from tests.given_data import MARIADB_TOOLS, mysql_options, run, tool_of

TABLES = """
CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(80) UNIQUE);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, total DECIMAL(9, 2),
    FOREIGN KEY (customer) REFERENCES customers (id));
CREATE TABLE items (item_of BIGINT, line INT, sku VARCHAR(20), PRIMARY KEY (item_of, line),
    FOREIGN KEY (item_of) REFERENCES orders (id));
CREATE TABLE tokens (token CHAR(36) PRIMARY KEY, customer INT);
INSERT INTO customers VALUES (3, 'a@x'), (5, 'b@x'), (90, 'c@x');
INSERT INTO orders VALUES (10, 3, 1.5), (700, 90, 2.5);
INSERT INTO items VALUES (10, 1, 'x'), (700, 4, 'y');
"""
ASKED = """
SELECT total FROM orders WHERE id = 10;
SELECT total FROM orders WHERE id = 700;
INSERT INTO orders (id, customer, total) VALUES (803, 3, 1.25);
INSERT INTO orders (id, customer, total) VALUES (805, 5, 2.25);
INSERT INTO items VALUES (803, 1, 'sku 3'), (803, 2, 'sku 4');
INSERT INTO items VALUES (805, 1, 'sku 5'), (805, 2, 'sku 6');
INSERT INTO customers (id, email) VALUES (91, 'd@x');
INSERT INTO tokens VALUES ('0c9c0ea4-6a0b-4a8e-9a28-2f5ae2b0f2a1', 3);
"""
LOAD = ("--clients", "3", "--warmup", "0", "--time", "0.5", "--json")
INSERTS = 4
"""Kinds of them, each of which fails when it is sent again as it was."""


@dataclass(frozen=True)
class Production:
    """A server that was asked something, its log of that, and a dump of the data as they were before."""

    engine: str
    url: str
    log: Path
    dump: Path


@contextmanager
def mariadb(folder: Path, shelf: Path) -> Iterator[Production]:
    log, dump = folder / "slow.log", folder / "dump.sql"
    with bench_for("mariadb", folder, shelf) as bench:
        bench.initialise()
        url = bench.start({"long_query_time": 0, "slow_query_log_file": str(log)}).url
        client = [*tool_of(MARIADB_TOOLS, "mariadb"), *mysql_options(url), DATABASE]
        run(client, TABLES)
        run([*tool_of(MARIADB_TOOLS, "mariadb-dump"), *mysql_options(url), DATABASE], into=dump)
        # A connection that is open already goes on as before.
        run(client, "SET GLOBAL slow_query_log = ON")
        run(client, ASKED)
        run(client, "SET GLOBAL slow_query_log = OFF")
        yield Production("mariadb@11.8", url, log, dump)


@contextmanager
def postgresql(folder: Path, shelf: Path) -> Iterator[Production]:
    log, dump = folder / "postgresql.log", folder / "dump.sql"
    with bench_for("postgresql", folder, shelf) as bench:
        bench.initialise()
        server = bench.start({"log_line_prefix": "%m [%p] %q%u@%d "})
        options = [f"--host={socket_of(server.url).parent}", f"--username={ACCOUNT}", DATABASE]
        client = [*program(bench.installation, SERVER.client, "psql"), "--quiet", *options]
        run(client, TABLES)
        run([*program(bench.installation, SERVER.client, "pg_dump"), *options], into=dump)
        run(client, f"SET log_min_duration_statement = 0; {ASKED}")
        assert isinstance(server, ServerProcess)
        log.write_bytes(server.log_path.read_bytes())
        yield Production("postgresql", server.url, log, dump)


@pytest.fixture(params=[mariadb, postgresql], scope="module")
def production(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shelf: Path
) -> Iterator[Production]:
    with request.param(tmp_path_factory.mktemp("production"), shelf) as found:
        yield found


def test_inserts_of_a_log_meet_no_row_that_exists(production: Production, homes_with_engines: Path) -> None:
    folder = homes_with_engines / "shop"
    made = dyno(
        "init", "study", "--from", str(production.log), "--dump", str(production.dump),
        "--whole", "--engine", production.engine, "-o", str(folder),
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "numbers beyond the largest orders.id" in made.stdout and "may meet" not in made.stdout
    # The text of PostgreSQL's log tells no rows.
    tells = "rows a statement: log | copy" if production.engine.startswith("mariadb") else "not measured"
    assert tells in made.stdout
    # The server has the rows of the log already, and after the first run also those of that.
    for seed in ("1", "2"):
        workload = str(folder / "workload.toml")
        said = dyno("load", "run", workload, "--url", production.url, "--seed", seed, *LOAD)
        assert said.returncode == 0, said.stderr
        tally = json.loads(said.stdout)
        assert tally["errors"] == {}
        inserts = [each for name, each in tally["by_transaction"].items() if name.startswith("insert")]
        assert len(inserts) == INSERTS and all(each["operations"] > 1 for each in inserts)


@pytest.mark.parametrize("production", [mariadb], indirect=True)
def test_each_trial_of_a_replay_plays_on_its_own_copy_of_the_data(
    production: Production, homes_with_engines: Path
) -> None:
    recording, study = homes_with_engines / "shop.replay", homes_with_engines / "study.toml"
    made = dyno("init", "replay", "--from", str(production.log), "-o", str(recording))
    assert made.returncode == 0, made.stderr
    study.write_text(
        f'engine = "{production.engine}"\nblocks = 1\n[data]\ndump = "{production.dump}"\n'
        f'[workload]\nname = "replay"\nfile = "{recording}"\n[factors]\n"workload.speed" = [2, "max"]\n'
    )
    said = dyno("run", str(study), "--quiet")
    assert said.returncode == 0, said.stderr
    with Store(store_url()) as store:
        records = store.records(store.run("last").run)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 2
    for record in records:
        assert record.tally is not None and record.tally.replay is not None
        assert record.tally.errors == {}, "an INSERT of the log fails on rows of another trial"
        assert record.tally.replay.statements >= ASKED.count(";")
        assert record.tally.replay.rows_compared > 0 and record.tally.replay.rows_differ == 0
