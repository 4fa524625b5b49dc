"""What a statement answers from its second execution on, through every door that users have: variables of a
file, a file of SQL, `prepare` of a Lua script. Each answer is held against the engine's own client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from dbdyno.engines.engine import Server
from dbdyno.engines.mariadb.server import SERVER as MARIADB
from dbdyno.engines.mysql.server import SERVER as MYSQL
from dbdyno.engines.postgresql.server import SERVER as POSTGRESQL
from dbdyno.obtain.debian import DebianRecipe
from dbdyno.obtain.server import program
from tests.conformance.commands import loads
from tests.conformance.conftest import WAITS_FOR_NO_DISK, Bench
from tests.needs import on_machine

ONCE = ("--warmup", "0", "--time", "60", "--operations", "24", "--clients", "2", "--json")
SEEN = "CREATE TABLE seen (door VARCHAR(8), n VARCHAR(30), v VARCHAR(60), w VARCHAR(60))"

QUESTIONS = {
    "mysql": "SELECT {} AS v, {} + 1 AS w",
    "sqlite": "SELECT {} AS v, {} + 1 AS w",
    "postgresql": "SELECT {} AS v, CAST({} AS DOUBLE PRECISION) + 1 AS w",
    "firebird": "SELECT CAST({} AS VARCHAR(30)) AS v, CAST({} AS DOUBLE PRECISION) + 1 AS w "
    "FROM rdb$database",
}
"""A value in the select list, whose type the first two engines learn with each execution."""

NUMBER = (
    "case when :k % 4 = 0 then null when :k % 4 = 1 then :k + 9854 when :k % 4 = 2 then :k + 0.5 else :k end"
)

LUA_KINDS = {"mariadb": "INT", "mysql": "INT", "postgresql": "VARCHAR, 20"}
"""The engines that scripts of sysbench run on, and the type by which they send a number."""

TOML = """
[setup]
statements = ["{seen}"]
[[transactions]]
name = "ask"
values = {{ k = "sequence(1)", n = "{number}" }}
statements = [
    {{ sql = "{question}", into = ["v", "w"] }},
    {{ sql = "INSERT INTO seen (door, n, v, w) VALUES ('toml', :n, :v, :w)" }},
]
"""
SQL = """\\set k random(1, 1000)
\\set n {number}
{question} \\gset
INSERT INTO seen (door, n, v, w) VALUES ('sql', :n, :v, :w);
"""
LUA = """
function thread_init()
   con = sysbench.sql.driver():connect()
   ask = con:prepare("{question}")
   v, w = ask:bind_create(sysbench.sql.type.{kind}), ask:bind_create(sysbench.sql.type.{kind})
   ask:bind_param(v, w)
   k = 0
end

local function quoted(text)
   return text and "'" .. text .. "'" or "NULL"
end

function event()
   k = k + 1
   local n = k % 3 ~= 0 and 9854 + k or nil
   v:set(n)
   w:set(n)
   local row = ask:execute():fetch_row()
   con:query(("INSERT INTO seen (door, n, v, w) VALUES ('lua', %s, %s, %s)"):format(
      quoted(n), quoted(row[1]), quoted(row[2])))
end
"""


def client(bench: Bench, server: Server) -> Callable[[str], list[str]]:
    """Asks the engine's own client: the values of a row as it writes them."""

    def by(*command: str) -> Callable[[str], list[str]]:
        def ask(sql: str) -> list[str]:
            done = subprocess.run([*command, sql], capture_output=True, text=True, check=True)
            return done.stdout.rstrip("\n").split("\t")

        return ask

    def command(recipe: DebianRecipe, name: str) -> list[str]:
        return program(bench.installation, recipe, name)

    socket, account = server.url.split("socket=")[-1], urlsplit(server.url).username
    match bench.engine.name:
        case "mariadb" | "mysql":
            mysql = {"mariadb": MARIADB, "mysql": MYSQL}[bench.engine.name].client
            options = ["--no-defaults", f"--socket={socket}", f"--user={account}", "-N", "-B", "-e"]
            return by(*command(mysql, bench.engine.name), *options)
        case "postgresql":
            options = [f"--host={Path(socket).parent}", f"--username={account}", "dyno", "--no-psqlrc", "-At"]
            return by(*command(POSTGRESQL.client, "psql"), *options, "-F\t", "-P", "null=NULL", "-c")
        case "sqlite" if sqlite := on_machine("sqlite3"):
            return by(sqlite, "-separator", "\t", "-nullvalue", "NULL", ":memory:")
        case _:
            # Its client is not in the wheel: the text protocol stands for it.
            return lambda sql: [_shown(value) for value in bench.ask(server)(sql)[0]]


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value).removesuffix(".0")


def literal(engine: str, n: str | None) -> str:
    """A value of a door's as the client's SQL has it."""
    if n is None:
        return "NULL"
    return n if engine in ("mariadb", "mysql", "sqlite") else f"'{n}'"


def mistakes(bench: Bench, server: Server) -> list[str]:
    """The answers that are not those of the engine's client."""
    protocol = server.url.split(":", 1)[0]
    ask, wrong = client(bench, server), []
    seen = bench.ask(server)("SELECT DISTINCT door, n, v, w FROM seen ORDER BY door, n")
    assert len(seen) > 6
    for door, n, *answer in seen:
        number = literal(bench.engine.name, None if n is None else str(n))
        expected = ask(QUESTIONS[protocol].format(number, number))
        if [_shown(value) for value in answer] != expected:
            wrong.append(f"{door}: {n} gave {answer}, and by the client {expected}")
    return wrong


def test_answers_are_those_of_the_engines_own_client(bench: Bench, tmp_path: Path) -> None:
    bench.initialise()
    server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
    protocol = server.url.split(":", 1)[0]
    question = QUESTIONS[protocol].format(":n", ":n")
    doors = {"toml": TOML.format(seen=SEEN, number=NUMBER, question=question)}
    doors["sql"] = SQL.format(number=NUMBER, question=question)
    if bench.engine.name in LUA_KINDS:
        kind = LUA_KINDS[bench.engine.name]
        doors["lua"] = LUA.format(question=QUESTIONS[protocol].format("?", "?"), kind=kind)
    for ending, text in doors.items():
        (tmp_path / f"ask.{ending}").write_text(text)
    calls: list[tuple[str, ...]] = [("prepare", str(tmp_path / "ask.toml"))]
    calls += [("run", str(tmp_path / f"ask.{ending}"), *ONCE) for ending in doors]
    for tally in loads(server, *calls)[1:]:
        assert json.loads(tally)["errors"] == {}
    assert mistakes(bench, server) == []
