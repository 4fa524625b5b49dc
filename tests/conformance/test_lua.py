"""The scripts that the distribution's sysbench comes with, unchanged, on the servers that sysbench knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.engines.engine import Server
from tests.cli.calls import dyno
from tests.conformance.commands import loads
from tests.conformance.conftest import Bench, serving
from tests.needs import SYSBENCH as SCRIPTS

BENCHES = Path(__file__).parents[2] / "benches"
KNOWN = ("mariadb", "mysql", "postgresql")
"""The engines that sysbench has a driver for."""

needs_scripts = pytest.mark.skipif(
    not (SCRIPTS / "oltp_read_write.lua").is_file(),
    reason=f"{SCRIPTS} has no scripts of sysbench: apt install sysbench, or set DYNO_TEST_SYSBENCH_SCRIPTS",
)


@pytest.fixture(scope="module", params=KNOWN)
def bench(
    request: pytest.FixtureRequest, shelf: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """An engine whose server runs for all tests."""
    with serving(request.param, tmp_path_factory.mktemp("server"), shelf) as made:
        yield made


@pytest.fixture
def server(bench: Bench) -> Iterator[Server]:
    """A server without tables."""
    yield bench.servers[0]
    bench.empty()


def load(verb: str, script: str | Path, server: Server, *options: str) -> str:
    path = script if isinstance(script, Path) else SCRIPTS / f"{script}.lua"
    [said] = loads(server, (verb, str(path), *options))
    return said


SHORT = ("--warmup", "0", "--time", "120", "--operations", "60", "--json")


def run(script: str | Path, server: Server, *options: str, clients: int = 4) -> dict[str, Any]:
    return dict(json.loads(load("run", script, server, *SHORT, "--clients", str(clients), *options)))


@needs_scripts
def test_every_script_runs_unchanged(server: Server) -> None:
    size = "--table-size=500"
    of_tables = sorted(path.stem for path in SCRIPTS.glob("oltp_*.lua") if path.stem != "oltp_common")
    of_one = ["select_random_points", "select_random_ranges"]
    options: dict[str, tuple[str, ...]] = dict.fromkeys(of_tables, (size, "--tables=2"))
    options |= dict.fromkeys(of_one, (size,))
    options["bulk_insert"] = ()
    clients, calls = ("--clients", "4"), list[tuple[str, ...]]()
    for script, given in options.items():
        path = str(SCRIPTS / f"{script}.lua")
        # Its clients have a table each.
        ending = clients if script == "bulk_insert" else given
        calls += [
            ("prepare", path, *clients, *given),
            ("run", path, *clients, *SHORT, *given),
            ("cleanup", path, *ending),
        ]
    said = loads(server, *calls)
    tallies = {script: json.loads(said[3 * place + 1]) for place, script in enumerate(options)}
    assert len(of_tables) >= 8
    for script in (*of_tables, *of_one):
        assert tallies[script]["operations"] == 60, (script, tallies[script]["errors"])
    for script in (*of_one, "bulk_insert"):
        assert tallies[script]["errors"] == {}, script


def test_tpcc_as_a_script_keeps_the_consistency_conditions(bench: Bench, server: Server) -> None:
    """The script that Dyno's TPC-C is compared with: it fetches rows, looks into them and rolls back."""
    if bench.engine.name == "postgresql":
        pytest.skip("the script is written for MariaDB")
    loads(server, ("prepare", "tpcc", "--warehouses", "1"))
    counted = run(BENCHES / "tpcc.lua", server, "--warehouses=1", "--rand-type=uniform")
    assert counted["operations"] == 60, counted["errors"]
    [checked] = loads(server, ("check", "tpcc", "--warehouses", "1", "--json"))
    assert [one["name"] for one in json.loads(checked) if not one["holds"]] == []


SETS = """
sysbench.cmdline.options = {rows = {"Rows of the first result set", 2}}

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE PROCEDURE several(first INT) BEGIN SELECT seq, 'a' FROM (SELECT 1 AS seq UNION SELECT 2 "
      .. "UNION SELECT 3) AS numbers WHERE seq <= first ORDER BY seq; SELECT 'last'; END")
end

function thread_init()
   con = sysbench.sql.driver():connect()
   call = con:prepare("CALL several(?)")
   first = call:bind_create(sysbench.sql.type.INT)
   call:bind_param(first)
   first:set(sysbench.opt.rows)
end

local function look(rs)
   assert(rs.nrows == 2 and rs.nfields == 2 and rs:fetch_row()[1] == "1" and rs:fetch_row()[2] == "a")
   assert(con:more_results())
   rs = con:next_result()
   assert(rs.nrows == 1 and rs.nfields == 1 and rs:fetch_row()[1] == "last")
   local ending = con:next_result()
   assert(ending.nrows == 0 and ending.nfields == 0)
   assert(not con:more_results() and con:next_result() == nil)
end

function event()
   look(con:query("CALL several(2)"))
   look(call:execute())
   local rs = con:query("SELECT 7; SELECT 8 UNION SELECT 9")
   assert(rs:fetch_row()[1] == "7")
   assert(con:next_result().nrows == 2 and not con:more_results())
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP PROCEDURE several")
end
"""
"""A procedure of two SELECTs, as text and prepared, and statements that a semicolon joins."""


def test_result_sets_are_given_one_by_one(bench: Bench, server: Server, tmp_path: Path) -> None:
    script = tmp_path / "sets.lua"
    if bench.engine.name == "postgresql":
        script.write_text("function event() sysbench.sql.driver():connect():next_result() end")
        refused = dyno("load", "run", str(script), "--url", server.url)
        assert "sets.lua:1: next_result is not supported on pgsql" in refused.stderr
        return
    script.write_text(SETS)
    load("prepare", script, server)
    tally = run(script, server)
    assert (tally["operations"], tally["errors"]) == (60, {})
    load("cleanup", script, server)


PER_EVENT = {
    "Com_select": 14,
    "Com_update": 2,
    "Com_delete": 1,
    "Com_insert": 1,
    "Com_begin": 1,
    "Com_commit": 1,
}
"""What an event of oltp_read_write.lua consists of by the defaults of its options."""


@needs_scripts
def test_an_event_has_the_statements_that_its_script_asks_for(bench: Bench, server: Server) -> None:
    if bench.engine.name == "postgresql":
        pytest.skip("PostgreSQL does not count statements by type")
    ask = bench.ask(server)

    def counts() -> dict[str, int]:
        names = ", ".join(f"'{name}'" for name in PER_EVENT)
        rows = ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        return {str(name): int(str(value)) for name, value in rows}

    load("prepare", "oltp_read_write", server, "--table-size=500")
    before = counts()
    # One client alone meets no deadlock, so no event is begun twice.
    events = run("oltp_read_write", server, "--table-size=500", clients=1)["acknowledged"]
    after = counts()
    assert {name: (after[name] - before[name]) / events for name in PER_EVENT} == PER_EVENT


@needs_scripts
def test_tables_of_a_script_serve_the_workloads_of_dyno(server: Server) -> None:
    load("prepare", "oltp_read_only", server, "--table-size=500")
    short = ("--warmup", "0", "--time", "60", "--operations", "20", "--json")
    [said] = loads(server, ("run", "read_only", "--table-size", "500", *short))
    tally = json.loads(said)
    assert (tally["operations"], tally["errors"]) == (20, {})


COUNTING = """
local made = 0

function prepare()
   sysbench.sql.driver():connect():query(
      "CREATE TABLE counted (tid INT, number INT, PRIMARY KEY (tid, number))")
end

function thread_init()
   con, beside = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
end

function event(tid)
   made = made + 1
   con:query(("INSERT INTO counted VALUES (%d, %d)"):format(tid, made))
   assert(beside:query("SELECT 1 UNION SELECT 2").nrows == 2)
   if made % 5 == 0 then
      con:query(KILL)
   end
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP TABLE counted")
end
"""
"""Each client counts in a variable what it has inserted, and loses its connection now and then."""


def test_a_script_goes_on_counting_after_its_connection_was_lost(
    bench: Bench, server: Server, tmp_path: Path
) -> None:
    script, postgresql = tmp_path / "counting.lua", bench.engine.name == "postgresql"
    kill = "SELECT pg_terminate_backend(pg_backend_pid())" if postgresql else "KILL CONNECTION_ID()"
    script.write_text(COUNTING.replace("KILL)", f'"{kill}")'))
    load("prepare", script, server)
    tally = run(script, server, "--reconnect")
    counted = bench.ask(server)("SELECT count(*), max(number) FROM counted GROUP BY tid")
    by_client = [[int(float(str(one))) for one in row] for row in counted]
    lost = sum(tally["errors"].values())
    # Each of the four inserted 1, 2, 3 and so on, and every fifth insert was its connection's last.
    assert len(by_client) == 4 and all(rows == most for rows, most in by_client), by_client
    assert lost == sum(most // 5 for _, most in by_client), tally["errors"]
    assert tally["operations"] + lost == sum(rows for rows, _ in by_client) == 60
    # Of the connection that the script opened beside the driver's, two rows an event.
    assert tally["rows_read"] >= 2 * 60
    load("cleanup", script, server)
