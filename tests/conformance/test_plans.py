"""Every engine tells the plans of a workload's statements, and nothing is changed by asking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dbdyno.driver.load import Explained
from dbdyno.engines.engine import Server
from dbdyno.engines.facts import each_step, plan_lines, titles
from dbdyno.engines.mariadb import facts as mariadb
from tests.conformance.commands import loads
from tests.conformance.conftest import WAITS_FOR_NO_DISK, Bench, started

ASK = "import sys; from dbdyno.driver import _driver; print(_driver.explain(sys.argv[1]))"
SCRIPT = """
[setup]
statements = ["CREATE TABLE t (a INTEGER NOT NULL PRIMARY KEY, b INTEGER)"]
[[tables]]
name    = "t"
rows    = 200
columns = { a = "row()", b = "row()" }
[[transactions]]
name       = "q1"
atomic     = false
values     = { a = "uniform(1, 200)" }
statements = ["SELECT b FROM t WHERE a = :a"]
[[transactions]]
name       = "q2"
values     = { a = "uniform(1, 200)" }
statements = [
    { sql = "SELECT b FROM t WHERE a = :a", into = "b" },
    "UPDATE t SET b = b + 1 WHERE a = :b",
    "DELETE FROM t WHERE a = :a",
]
"""


def asked(server: Server, **job: Any) -> Explained:
    document = json.dumps({"url": server.url, "seed": 3, **job})
    environment = {**os.environ, **server.driver_environment}
    done = subprocess.run(
        [sys.executable, "-c", ASK, document], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return Explained.model_validate_json(done.stdout)


def prepare(server: Server, workload: str, *options: str) -> None:
    loads(server, ("prepare", workload, *options))


def test_each_engine_tells_plans_and_executes_no_write(bench: Bench, tmp_path: Path) -> None:
    bench.initialise()
    server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
    script = tmp_path / "own.toml"
    script.write_text(SCRIPT)
    prepare(server, str(script))
    ask = bench.ask(server)
    before = ask("SELECT COUNT(*), SUM(b) FROM t")
    found = asked(server, workload=str(script))
    assert ask("SELECT COUNT(*), SUM(b) FROM t") == before
    assert found.unreached == {}
    told = {one.text.split()[0]: one for one in found.statements}
    assert set(told) == {"SELECT", "UPDATE", "DELETE"}, "each kind is asked for once"
    assert [one.transaction for one in found.statements] == ["q1", "q2", "q2"]
    assert bench.engine.plans is not None
    for one in found.statements:
        assert one.plan is not None, f"{one.text}: {one.why_not}"
        steps = bench.engine.plans(one.plan)
        assert "t" in " ".join(titles(steps)).lower().replace(".", " ").split(), list(titles(steps))
    executed = {one.text: one for one in asked(server, workload=str(script), actual_rows=True).statements}
    assert ask("SELECT COUNT(*), SUM(b) FROM t") == before, "no write is executed for its rows"
    for one in found.statements:
        of_it = executed[one.text]
        if one.text.startswith("SELECT") and bench.engine.name in ("mariadb", "postgresql"):
            steps = bench.engine.plans(of_it.plan or "")
            assert list(plan_lines(steps)) == list(plan_lines(bench.engine.plans(one.plan or "")))
            # MariaDB reads a constant row before it executes anything.
            of_steps = [None] if bench.engine.name == "mariadb" else [(1.0, 1.0)]
            assert [step.rows for step in each_step(steps)] == of_steps
        else:
            assert of_it.plan is None and of_it.why_not
    if bench.engine.name == "mariadb":
        [[plan]] = ask("ANALYZE FORMAT=JSON SELECT b FROM t WHERE b >= 0")
        [step] = bench.engine.plans(str(plan))
        assert step.rows is not None and step.rows[1] == before[0][0] == 200
    again = asked(server, workload=str(script))
    assert [bench.engine.plans(one.plan or "") for one in again.statements] == [
        bench.engine.plans(one.plan or "") for one in found.statements
    ]


JOIN = """
[setup]
statements = ["CREATE TABLE t (a INTEGER NOT NULL)", "CREATE TABLE u (b INTEGER NOT NULL)"]
[[tables]]
name    = "t"
rows    = 300
columns = { a = "row()" }
[[tables]]
name    = "u"
rows    = 300
columns = { b = "row()" }
[[transactions]]
name       = "q"
statements = ["SELECT COUNT(*) FROM t JOIN u ON t.a = u.b"]
"""


def test_a_setting_of_mariadb_changes_a_join(tmp_path: Path, shelf: Path) -> None:
    script = tmp_path / "join.toml"
    script.write_text(JOIN)
    told = []
    for level in (2, 4):
        folder = tmp_path / str(level)
        folder.mkdir()
        with started("mariadb", {"join_cache_level": level}, folder, shelf) as server:
            prepare(server, str(script))
            [one] = asked(server, workload=str(script)).statements
            told.append(list(titles(mariadb.read(one.plan or "{}"))))
    assert told[0] != told[1]
    assert "block nested-loop join" in told[0] and "hash join" in told[1], told


def test_all_transactions_of_tpcc_are_explained_to_their_end(bench: Bench) -> None:
    """A new order reads what its first write returns, where the engine has RETURNING."""
    bench.initialise()
    server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
    prepare(server, "tpcc", "--warehouses", "1")
    found = asked(server, workload="tpcc", options={"warehouses": 1})
    assert {one.transaction for one in found.statements} == {
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
    }
    assert found.unreached == {}
    assert bench.engine.plans is not None
    for one in found.statements:
        assert one.plan is not None, f"{one.text}: {one.why_not}"
        bench.engine.plans(one.plan)
