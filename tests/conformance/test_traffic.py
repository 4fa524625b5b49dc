"""A workload from what a real server logged runs on that server."""

from __future__ import annotations

import csv
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from dbdyno.frozen import Level
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.conformance.conftest import started
from tests.conformance.sessions_cases import rows
from tests.conformance.traffic_cases import POSTGRESQL_LOGS

LOAD = ("--clients", "2", "--warmup", "0", "--time", "60", "--operations", "400")


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_what_a_server_logged_is_asked_again(
    engine: str, homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    logs: dict[str, Path] = {kind: tmp_path / f"{kind}.log" for kind in ("slow_query", "general")}
    settings: dict[str, Level] = {"log_output": "FILE", "long_query_time": 0}
    settings |= {f"{kind}_log_file": str(path) for kind, path in logs.items()}
    with started(engine, settings, tmp_path / "server", shelf) as server:
        assert dyno("load", "prepare", "tpcb", "--url", server.url).returncode == 0
        for setting in logs:
            rows(server.url, f"SET GLOBAL {setting}_log = ON")
        assert dyno("load", "run", "tpcb", "--url", server.url, *LOAD).returncode == 0
        for setting in logs:
            rows(server.url, f"SET GLOBAL {setting}_log = OFF")
        for kind, path in logs.items():
            _asked_again(server.url, path, homes_with_engines / f"{kind}.toml")


ENDINGS = {"log": "PostgreSQL log", "log.csv": "PostgreSQL log as CSV", "log.json": "PostgreSQL log as JSON"}


def test_what_postgresql_logged_is_asked_again(homes_with_engines: Path, tmp_path: Path, shelf: Path) -> None:
    settings = POSTGRESQL_LOGS | {"log_directory": str(tmp_path / "logs")}
    with started("postgresql", settings, tmp_path / "server", shelf) as server:
        assert dyno("load", "prepare", "tpcb", "--url", server.url).returncode == 0
        assert dyno("load", "run", "tpcb", "--url", server.url, *LOAD).returncode == 0
        rows(server.url, f"SELECT '{END}'")
        logs = {kind: _until_end(tmp_path / "logs" / name) for name, kind in ENDINGS.items()}
        counts = set()
        for number, (kind, text) in enumerate(logs.items()):
            log = homes_with_engines / f"{number}.log"
            log.write_text(text)
            drawn = _asked_again(server.url, log, log.with_suffix(".toml"))
            assert drawn["kind"] == kind and not any(row["lacks"] for row in drawn["digests"])
            counts.add(frozenset((row["digest"], row["count"]) for row in drawn["digests"]))
        assert len(counts) == 1


END = "the end of the log"


def _until_end(log: Path) -> str:
    """A log up to the statement that ends it, which the server may write a moment later."""
    for _ in range(300):
        if END in (text := log.read_text()):
            return text[: text.index(END)].rpartition("\n")[0] + "\n"
        time.sleep(0.1)
    raise AssertionError(f"{log} does not end")


@pytest.mark.parametrize("form", ["text", "json"])
def test_plans_that_auto_explain_wrote_are_asked_again(
    form: str, homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    settings: dict[str, Level] = {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": 0,
        "auto_explain.log_format": form,
        **POSTGRESQL_LOGS,
        "log_min_duration_statement": -1,
        "log_directory": str(tmp_path / "logs"),
    }
    with started("postgresql", settings, tmp_path / "server", shelf) as server:
        assert dyno("load", "prepare", "tpcb", "--url", server.url).returncode == 0
        assert dyno("load", "run", "tpcb", "--url", server.url, *LOAD).returncode == 0
        script = homes_with_engines / "plans.toml"
        log = tmp_path / "logs" / "log.csv"
        made = dyno("init", "workload", "--from", str(log), "-o", str(script), "--json")
        assert made.returncode == 0, made.stderr
        taken = {row["digest"]: row for row in json.loads(made.stdout)["digests"] if row["name"]}
        [balance] = [row for digest, row in taken.items() if digest.startswith("SELECT abalance")]
        assert balance["took_s"] > 0 and balance["database"]
        if "pick(" in script.read_text():
            assert "auto_explain.log_parameter_max_length" in str(balance["lacks"])
        script.write_text(script.read_text().replace("fill_in()", "uniform(1, 10)"))
        said = dyno("load", "run", str(script), "--url", server.url, *LOAD, "--json")
        assert said.returncode == 0, said.stderr
        tally = json.loads(said.stdout)
        assert tally["by_transaction"][balance["name"]]["operations"] > 0 and not tally["errors"]


def _asked_again(url: str, log: Path, script: Path) -> dict[str, Any]:
    made = dyno("init", "workload", "--from", str(log), "--whole", "-o", str(script), "--json")
    assert made.returncode == 0, made.stderr
    require_valid("init-workload", made.stdout)
    drawn: dict[str, Any] = json.loads(made.stdout)
    taken = {row["digest"]: row for row in drawn["digests"] if row["name"]}
    [balance] = [row for digest, row in taken.items() if digest.startswith("SELECT abalance")]
    [update] = [row for digest, row in taken.items() if digest.startswith("UPDATE pgbench_accounts")]
    assert balance["count"] > 0 and update["count"] > 0 and update["writes"] and not balance["writes"]
    assert "uniform(" in script.read_text()
    said = dyno("load", "run", str(script), "--url", url, *LOAD, "--json")
    assert said.returncode == 0, said.stderr
    tally = json.loads(said.stdout)
    assert tally["by_transaction"][balance["name"]]["operations"] > 0
    return drawn


def test_what_postgresql_counted_is_asked_once_it_is_filled_in(
    homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    settings: dict[str, Level] = {"shared_preload_libraries": "pg_stat_statements"}
    with started("postgresql", settings, tmp_path / "server", shelf) as server:
        rows(server.url, "CREATE EXTENSION pg_stat_statements")
        assert dyno("load", "prepare", "tpcb", "--url", server.url).returncode == 0
        rows(server.url, "SELECT pg_stat_statements_reset()")
        assert dyno("load", "run", "tpcb", "--url", server.url, *LOAD).returncode == 0
        found = rows(
            server.url, "SELECT query, calls, total_exec_time FROM pg_stat_statements ORDER BY calls DESC"
        )
        with (homes_with_engines / "seen.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["query", "calls", "total_exec_time"], *found])
        script = homes_with_engines / "seen.toml"
        made = dyno(
            "init",
            "workload",
            "--from",
            str(homes_with_engines / "seen.csv"),
            "-o",
            str(script),
            "--limit",
            "5",
        )
        assert made.returncode == 0 and "values to fill in" in made.stdout, made.stderr
        assert "p1: values of pgbench_accounts.aid" in made.stdout
        assert "pick(:pgbench_accounts__aid)" in script.read_text()
        assert "fill_in" in complaint("load", "run", str(script), "--url", server.url, *LOAD)
        script.write_text(script.read_text().replace("fill_in()", "uniform(1, 10)"))
        said = dyno("load", "run", str(script), "--url", server.url, *LOAD, "--json")
        assert said.returncode == 0, said.stderr
        assert json.loads(said.stdout)["operations"] > 0


BATCH = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t"})
"""As the client of MySQL writes a cell of a table that nobody looks at."""


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_what_performance_schema_counted_is_asked_once_it_is_filled_in(
    engine: str, homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    """And without that where the server kept a sample with its values."""
    table = "performance_schema.events_statements_summary_by_digest"
    named = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'performance_schema'"
    named += " AND table_name = 'events_statements_summary_by_digest' ORDER BY ordinal_position"
    with started(engine, {"performance_schema": "ON"}, tmp_path / "server", shelf) as server:
        assert dyno("load", "prepare", "tpcb", "--url", server.url).returncode == 0
        rows(server.url, f"TRUNCATE TABLE {table}")
        assert dyno("load", "run", "tpcb", "--url", server.url, *LOAD).returncode == 0
        for number in range(60):
            rows(server.url, f"SELECT COUNT(*) FROM pgbench_history WHERE aid = {number}")
        told = [[name for [name] in rows(server.url, named)], *rows(server.url, f"SELECT * FROM {table}")]
        seen, script = homes_with_engines / "seen.tsv", homes_with_engines / "seen.toml"
        cells = [["NULL" if cell is None else str(cell).translate(BATCH) for cell in row] for row in told]
        seen.write_text("".join("\t".join(row) + "\n" for row in cells))
        made = dyno("init", "workload", "--from", str(seen), "-o", str(script), "--json")
        assert made.returncode == 0, made.stderr
        drawn = json.loads(made.stdout)
        taken = {row["digest"]: row for row in drawn["digests"] if row["name"]}
        prepared = [row for digest, row in taken.items() if digest.startswith("SELECT `abalance`")]
        assert len(prepared) == (engine == "mysql"), "MariaDB counts no prepared statements there"
        assert all(row["count"] > 100 and row["took_s"] > 0 and row["database"] for row in prepared)
        [history] = [row for digest, row in taken.items() if "WHERE" in digest and "COUNT" in digest]
        assert history["count"] == 60
        assert any("values" in str(lack) for lack in history["lacks"]) is (engine == "mariadb")
        assert len(re.findall(r"WHERE aid = \d+", script.read_text())) == (engine == "mysql")
        script.write_text(script.read_text().replace("fill_in()", "uniform(1, 10)"))
        said = dyno("load", "run", str(script), "--url", server.url, *LOAD, "--json")
        assert said.returncode == 0, said.stderr
        tally = json.loads(said.stdout)
        assert tally["by_transaction"][history["name"]]["operations"] > 0
