"""`dyno init study`: a study of what a server was asked in production."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path

import pytest

from dbdyno.cli.production import RowsBeside, RowsTold
from dbdyno.prepare_run.study_here import study_at
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.cli.traffic_cases import MORE
from tests.sql_logs.mysql_cases import SLOW_MARIADB as MARIADB
from tests.sql_logs.postgresql.logs import CSV, STDERR

SLOW = "".join(MARIADB.splitlines(keepends=True)[:-2]) + MORE


@pytest.fixture
def production(homes: Path) -> Path:
    """A folder with a dump and logs."""
    (homes / "dump.sql.gz").write_bytes(
        gzip.compress(b"-- MariaDB dump 10.19\nCREATE TABLE customer (id INT);")
    )
    (homes / "dump.pg").write_text("--\n-- PostgreSQL database dump\n--\nCREATE TABLE customer (id int);\n")
    (homes / "slow.log.1.gz").write_bytes(gzip.compress(SLOW.encode()))
    (homes / "slow.log").write_text(SLOW)
    (homes / "general.log").write_text("\t\t     6 Query\tSELECT 1\n\t\t     6 Quit\t\n")
    (homes / "postgresql.csv").write_text(CSV)
    (homes / "postgresql.log").write_text(STDERR)
    unseen = "query,calls\nSELECT a FROM t WHERE id = $1,3\nSELECT a FROM t WHERE f(b) = $1,2\n"
    (homes / "seen.csv").write_text(unseen)
    return homes


def made(folder: Path, *logs: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    sources = [argument for log in logs for argument in ("--from", str(folder / log))]
    of_mysql = logs[0].startswith(("slow", "general"))
    dump = ("--dump", str(folder / ("dump.sql.gz" if of_mysql else "dump.pg")))
    return ("init", "study", *sources, *dump, *more, "--no-copy", "-o", str(folder / "shop"))


def test_a_log_and_a_dump_become_a_study_that_is_accepted(production: Path) -> None:
    said = dyno(*made(production, "slow.log.1.gz", "slow.log"))
    assert said.returncode == 0, said.stderr
    path = production / "shop" / "study.toml"
    assert said.stdout.splitlines()[-1] == f"  then: dyno run {path} --budget 30m"
    study = study_at(path)
    assert study.engine.engine == "mariadb" and study.data is not None
    assert [one.resolve() for one in study.data.paths(study.folder)] == [production / "dump.sql.gz"]
    assert study.workload.name == "script" and str(study.workload.options["file"]).endswith("workload.toml")
    assert len(study.factors) >= 2 and max(map(len, path.read_text().splitlines())) <= 100
    workload = tomllib.loads((production / "shop" / "workload.toml").read_text())
    assert {each["weight"] for each in workload["transactions"]} == {2, 8}
    assert "is there already" in complaint(*made(production, "slow.log"))


def test_what_is_varied_and_where_may_be_said(production: Path) -> None:
    more = (
        "--engine", "mariadb@11.8", "--factor", "config.innodb_buffer_pool_size=128M,1G",
        "--factor", "config.innodb_io_capacity=200,2000", "--goal", "latency", "--clients", "3",
        "--time", "1h",
    )  # fmt: skip
    said = dyno(*made(production, "slow.log", more=more))
    assert said.returncode == 0 and said.stdout.rstrip().endswith("study.toml --budget 1h"), said.stderr
    study = study_at(production / "shop" / "study.toml")
    assert study.engine.version == "11.8" and study.workload.clients == 3
    assert study.goal.response == "p99_ms"
    assert [(factor.name, factor.levels) for factor in study.factors] == [
        ("config.innodb_buffer_pool_size", ("128M", "1G")),
        ("config.innodb_io_capacity", (200, 2000)),
    ]


def test_statements_without_values_are_left_out_or_drawn_from_the_data_and_that_is_said(
    production: Path,
) -> None:
    said = dyno(*made(production, "seen.csv", more=("--json",)))
    assert said.returncode == 0, said.stderr
    require_valid("init-study", said.stdout)
    drawn, left_out = json.loads(said.stdout)["workload"]["digests"]
    [words] = drawn["invented"]
    assert words.startswith("p1: values of t.id") and drawn["name"] == "select_1"
    assert left_out["why_not"] == "it has values that no log tells" and not left_out["name"]
    assert {lack["what"] for lack in left_out["lacks"]} == {
        "the values of $1 and its like",
        "its time",
        "its database",
    }
    assert all(
        "pg_stat_statements" in lack["remedy"] or "log_" in lack["remedy"] for lack in left_out["lacks"]
    )
    text = (production / "shop" / "workload.toml").read_text()
    assert len(tomllib.loads(text)["transactions"]) == 1 and '# values = { p1 = "fill_in()" }' in text


def test_the_engine_is_the_one_that_wrote_the_log(production: Path) -> None:
    assert dyno(*made(production, "postgresql.csv")).returncode == 0
    assert study_at(production / "shop" / "study.toml").engine.engine == "postgresql"


@pytest.mark.parametrize(
    ("logs", "more", "said"),
    [
        (("postgresql.log",), (), "postgresql.log is of 2 databases: shop (50 %), crm (50 %)"),
        (("postgresql.log",), ("--database", "nothing"), "holds no statement in the database 'nothing'"),
        (("slow.log", "general.log"), (), "is a slow log, and"),
        (("slow.log", "slow.log"), (), "a file is given twice"),
        (("general.log",), (), "the log does not tell which server wrote it"),
        (("slow.log",), ("--engine", "oracle"), "there is no engine 'oracle'"),
        (
            ("slow.log",),
            ("--engine", "postgresql"),
            "is a dump of MariaDB, and the study's engine is PostgreSQL",
        ),
        (("slow.log",), ("--factor", "innodb_io_capacity=1"), "is no factor"),
        (("slow.log",), ("--folder", "."), "--folder and --dump exclude each other"),
    ],
)
def test_what_cannot_be_is_refused(
    production: Path, logs: tuple[str, ...], more: tuple[str, ...], said: str
) -> None:
    assert said in complaint(*made(production, *logs, more=more))
    assert not (production / "shop").exists()


def told(read: float | None, sent: float | None = None) -> RowsTold:
    return RowsTold(read=read, sent=sent, changed=None)


@pytest.mark.parametrize(
    ("in_log", "on_copy", "apart"),
    [(10.0, 12.0, True), (10.0, 10.9, False), (0.0, 0.09, False), (0.0, 0.5, True), (None, 5.0, False)],
)
def test_rows_that_differ_by_more_than_a_tenth_are_apart(
    in_log: float | None, on_copy: float, apart: bool
) -> None:
    row = RowsBeside(name="select_1", count=3, in_log=told(in_log, 1.0), on_copy=told(on_copy, 1.0))
    assert row.apart == apart


def test_why_rows_are_not_measured_is_said(production: Path) -> None:
    arguments = [each for each in made(production, "slow.log") if each != "--no-copy"]
    said = dyno(*arguments)
    assert said.returncode == 0 and "rows on a copy not measured: " in said.stdout


def test_a_study_needs_data(production: Path) -> None:
    said = complaint("init", "study", "--from", str(production / "slow.log"), "-o", str(production / "shop"))
    assert "needs its data" in said and "dyno init workload" in said


def test_one_database_of_several_is_taken(production: Path) -> None:
    said = dyno(*made(production, "postgresql.log", more=("--database", "crm", "--json")))
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)["workload"]
    assert found["databases"] == {"shop": 1, "crm": 1}
    assert [row["database"] for row in found["digests"]] == ["crm"]
