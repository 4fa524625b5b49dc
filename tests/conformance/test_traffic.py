"""A workload from what a real server logged runs on that server."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dbdyno.frozen import Level
from tests.cli.schemas import require_valid
from tests.cli.test_cli import complaint, dyno
from tests.conformance.conftest import started
from tests.conformance.test_sessions import rows

LOAD = ("--clients", "2", "--warmup", "0", "--time", "2")


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


def _asked_again(url: str, log: Path, script: Path) -> None:
    made = dyno("init", "workload", "--from", str(log), "-o", str(script), "--json")
    assert made.returncode == 0, made.stderr
    require_valid("init-workload", made.stdout)
    taken = {row["digest"]: row for row in json.loads(made.stdout)["digests"] if row["name"]}
    [balance] = [row for digest, row in taken.items() if digest.startswith("SELECT abalance")]
    [update] = [row for digest, row in taken.items() if digest.startswith("UPDATE pgbench_accounts")]
    assert balance["count"] > 0 and update["count"] > 0 and update["writes"] and not balance["writes"]
    assert "uniform(" in script.read_text()
    said = dyno("load", "run", str(script), "--url", url, *LOAD, "--json")
    assert said.returncode == 0, said.stderr
    tally = json.loads(said.stdout)
    assert tally["by_transaction"][balance["name"]]["operations"] > 0


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
        assert "fill_in" in complaint("load", "run", str(script), "--url", server.url, *LOAD)
        script.write_text(script.read_text().replace("fill_in()", "uniform(1, 10)"))
        said = dyno("load", "run", str(script), "--url", server.url, *LOAD, "--json")
        assert said.returncode == 0, said.stderr
        assert json.loads(said.stdout)["operations"] > 0
