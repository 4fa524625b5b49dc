"""From a log and a dump of a real server to a verdict, with one command and the one that it names."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE, socket_of
from dbdyno.frozen import Level
from dbdyno.obtain.server import program
from tests.cli.calls import dyno
from tests.cli.schemas import require_valid
from tests.conformance.conftest import bench_for
from tests.conformance.sessions_cases import rows
from tests.conformance.traffic_cases import POSTGRESQL_LOGS
from tests.given_data import MARIADB_TOOLS, mysql_options, run, tool_of

ARTICLES = (
    "CREATE TABLE article (id INT PRIMARY KEY, name VARCHAR(20), stock INT)",
    "INSERT INTO article VALUES " + ", ".join(f"({3 * n}, 'n{n}', 10)" for n in range(1, 200)),
)
ASKED = 30
SELECT = "SELECT name FROM article WHERE id = ?"


def _ask(url: str) -> None:
    for number in range(1, ASKED + 1):
        rows(url, f"SELECT name FROM article WHERE id = {3 * number}")
        if number % 3 == 0:
            rows(url, f"UPDATE article SET stock = stock - 1 WHERE id = {3 * number}")


def _to_a_verdict(log: Path, dump: Path, factor: str, folder: Path) -> None:
    """The one command, then the one that it names, on short trials."""
    made = ("init", "study", "--from", str(log), "--dump", str(dump), "--factor", factor, "--clients", "2")
    said = dyno(*made, "--time", "1h", "-o", str(folder / "shop"), "--json")
    assert said.returncode == 0, said.stderr
    require_valid("init-study", said.stdout)
    told = json.loads(said.stdout)
    counts = {row["digest"]: row["count"] for row in told["workload"]["digests"] if row["name"]}
    assert counts[SELECT] == ASKED and len(counts) == 2
    study = Path(told["study"])
    text = re.sub(r'warmup( +)= "5s" ', r'warmup\1= "0s" ', study.read_text())
    study.write_text(re.sub(r'duration( +)= "20s"', r'duration\1= "1s"', text))
    _, verb, path, *_ = shlex.split(told["then"])
    done = dyno(verb, path, "--blocks", "1", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    baseline, other = result["variants"]
    assert baseline["verdict"] is None and other["verdict"]


def test_a_slow_log_and_a_dump_of_mariadb_lead_to_a_verdict(
    homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    log, dump = tmp_path / "slow.log", tmp_path / "dump.sql.gz"
    settings: dict[str, Level] = {
        "log_output": "FILE",
        "long_query_time": 0,
        "slow_query_log_file": str(log),
    }
    with bench_for("mariadb", tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start(settings)
        for statement in ARTICLES:
            rows(server.url, statement)
        rows(server.url, "SET GLOBAL slow_query_log = ON")
        _ask(server.url)
        rows(server.url, "SET GLOBAL slow_query_log = OFF")
        dumper = tool_of(MARIADB_TOOLS, "mariadb-dump")
        dump.write_bytes(gzip.compress(run([*dumper, *mysql_options(server.url), DATABASE])))
        server.stop()
    _to_a_verdict(log, dump, "config.innodb_io_capacity=200,2000", homes_with_engines)


def test_a_log_and_a_dump_of_postgresql_lead_to_a_verdict(
    homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    dump = tmp_path / "dump.sql"
    settings = POSTGRESQL_LOGS | {"log_directory": str(tmp_path / "logs")}
    with bench_for("postgresql", tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start(settings)
        for statement in ARTICLES:
            rows(server.url, statement)
        _ask(server.url)
        socket = socket_of(server.url)
        options = ["--host", str(Path(socket).parent), "--username", ACCOUNT, DATABASE]
        run([*program(bench.installation, SERVER.client, "pg_dump"), *options], into=dump)
        server.stop()
    log = tmp_path / "asked.csv"
    lines = (tmp_path / "logs" / "log.csv").read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if "article" in line and "WHERE id" in line))
    _to_a_verdict(log, dump, "config.work_mem=4MB,8MB", homes_with_engines)
