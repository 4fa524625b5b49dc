"""What connections begin with, on the servers that give them a choice of isolation and storage engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from tests.cli.calls import Said, dyno
from tests.conformance.conftest import serving

KNOWN = ("mariadb", "mysql", "postgresql")
LEVEL = """
sysbench.cmdline.options = {level = {"The level that each connection must have", "nothing"}}

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   local name, level
   if sysbench.sql.driver():name() == "pgsql" then
      level = con:query_row("SHOW transaction_isolation")
   else
      name, level = con:query_row("SHOW VARIABLES LIKE 't%isolation'")
   end
   if level:lower():gsub("%-", " ") ~= sysbench.opt.level then
      error("the level is " .. level)
   end
end
"""
"""A script that ends the run where a connection has another isolation level."""
SIZE = ("--record-count", "50", "--field-length", "20")


@pytest.fixture(scope="module", params=KNOWN)
def server(
    request: pytest.FixtureRequest, shelf: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with serving(request.param, tmp_path_factory.mktemp("server"), shelf) as made:
        yield made.servers[0]


def load(server: Server, *arguments: str) -> Said:
    return dyno("load", *arguments, "--url", server.url)


def test_each_connection_has_the_isolation_level(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "level.lua"
    script.write_text(LEVEL)
    for isolation in ("read-committed", "repeatable-read", "serializable"):
        level = f"--level={isolation.replace('-', ' ')}"
        short = ("--warmup", "0", "--time", "120", "--operations", "6", "--clients", "2")
        done = load(server, "run", str(script), *short, "--isolation", isolation, level)
        assert done.returncode == 0, done.stderr


def test_tables_are_made_in_the_storage_engine(server: Server) -> None:
    refused = load(server, "prepare", "ycsb_a", *SIZE, "--storage-engine", "nowhere")
    assert refused.returncode != 0
    assert "at the start of a connection" in " ".join(refused.stderr.split())
    mysql = server.url.startswith("mysql")
    engine = "MyISAM" if mysql else "heap"
    made = load(server, "prepare", "ycsb_a", *SIZE, "--storage-engine", engine)
    assert made.returncode == 0, made.stderr
    if mysql:
        asked = "SELECT engine FROM information_schema.tables WHERE table_name = 'usertable'"
    else:
        asked = "SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE relname = 'usertable'"
    assert json.loads(_driver.query(server.url, asked))["rows"] == [[engine]]
