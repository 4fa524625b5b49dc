"""What real servers log is read back as it was asked: each statement once, in its words, by its session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.frozen import Level
from dbdyno.sql_logs.postgresql.prefix import prefix_pattern
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.seen import LogReading
from tests.cli.calls import dyno
from tests.conformance.conftest import started
from tests.conformance.sessions_cases import rows
from tests.conformance.traffic_cases import PREFIXES, asked, read, told


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_logs_of_mariadb_and_mysql_are_read_back(engine: str, tmp_path: Path, shelf: Path) -> None:
    logs = {kind: tmp_path / f"{kind}.log" for kind in ("slow_query", "general")}
    settings: dict[str, Level] = {
        "log_output": "FILE",
        "long_query_time": 0,
        "slow_query_log": 1,
        "general_log": 1,
    }
    settings |= {f"{kind}_log_file": str(path) for kind, path in logs.items()}
    more: dict[str, Level] = {"log_slow_verbosity": "full"} if engine == "mariadb" else {"log_slow_extra": 1}
    with started(engine, settings | more, tmp_path / "server", shelf) as server:
        before = time.time()
        texts = asked(server.url)
        for kind, path in logs.items():
            found = told(read(path, LogReading()))
            doubtful = [text for text in texts if "# Time" in text] if kind == "slow_query" else []
            assert [seen.text for seen in found] == [text for text in texts if text not in doubtful]
            assert all(seen.session and seen.at_s is not None for seen in found)
            assert len({seen.session for seen in found}) == len(found)
            if kind == "slow_query":
                assert all(before - 2 < (seen.at_s or 0) < time.time() + 2 for seen in found)
                assert all(seen.rows == 1 and not seen.failed for seen in found)


LOAD = ("--clients", "2", "--warmup", "0", "--time", "60", "--operations", "4000")


def test_a_workload_of_a_log_reads_as_many_rows_as_the_log_says(
    homes_with_engines: Path, tmp_path: Path, shelf: Path
) -> None:
    settings: dict[str, Level] = {"log_output": "FILE", "long_query_time": 0}
    logs = [tmp_path / f"{number}.log" for number in (1, 2)]
    with started("mariadb", settings, tmp_path / "server", shelf) as server:
        rows(server.url, "CREATE TABLE item (id INT PRIMARY KEY, made DATE) AS SELECT seq AS id, "
             "DATE '2020-01-01' + INTERVAL seq % 1000 DAY AS made FROM seq_1_to_10000")  # fmt: skip
        _log_to(server.url, logs[0])
        for number in range(1, 9000, 300):
            rows(server.url, f"SELECT id FROM item WHERE id BETWEEN {number} AND {number + 9 + number % 7}")
            rows(server.url, f"SELECT id + 0 FROM item WHERE id >= {number} AND id < {number + 20}")
        rows(server.url, "SELECT 0")
        script = homes_with_engines / "item.toml"
        made = dyno("init", "workload", "--from", str(logs[0]), "-o", str(script))
        assert made.returncode == 0, made.stderr
        _log_to(server.url, logs[1])
        said = dyno("load", "run", str(script), "--url", server.url, *LOAD, "--json")
        assert said.returncode == 0, said.stderr
        rows(server.url, "SET GLOBAL slow_query_log = OFF")
        asked_, drawn = map(_rows_of, logs)
        assert asked_.keys() == drawn.keys() and len(asked_) == 2
        assert all(drawn[name] == pytest.approx(mean, rel=0.1) for name, mean in asked_.items())


def _log_to(url: str, log: Path) -> None:
    rows(url, f"SET GLOBAL slow_query_log_file = '{log}'")
    rows(url, "SET GLOBAL slow_query_log = ON")


def _rows_of(log: Path) -> dict[str, float]:
    """The rows that each sort of statement sent on average."""
    sent: dict[str, list[int]] = {}
    for seen in log_of([log]).statements:
        if " FROM item" in seen.text and seen.rows is not None:
            sent.setdefault(seen.text.partition(" FROM")[0], []).append(seen.rows)
    return {name: sum(counts) / len(counts) for name, counts in sent.items()}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_texts_of_postgresql_are_read_back(prefix: str, tmp_path: Path, shelf: Path) -> None:
    settings: dict[str, Level] = {
        "logging_collector": "on", "log_destination": "stderr,csvlog,jsonlog", "log_filename": "log",
        "log_directory": str(tmp_path / "logs"), "log_line_prefix": prefix, "log_min_duration_statement": 0,
        "log_connections": "on", "log_disconnections": "on", "log_error_verbosity": "verbose",
    }  # fmt: skip
    with started("postgresql", settings, tmp_path / "server", shelf) as server:
        texts = asked(server.url)
        for name, reading in _readings(prefix):
            found = told(read(tmp_path / "logs" / name, reading))
            # What looks like another entry in the midst of a line is in doubt.
            doubtful = [text for text in texts if name == "log" and prefix_pattern(prefix).search(text)]
            assert [seen.text for seen in found] == [text for text in texts if text not in doubtful]
            assert len({seen.session for seen in found}) == len(found), (name, reading)
            assert all(seen.at_s is not None and seen.took_s is not None for seen in found)
            if "%d" in prefix or name != "log":
                assert len({seen.database for seen in found} - {""}) == 1, (name, reading)


def _readings(prefix: str) -> Iterator[tuple[str, LogReading]]:
    yield "log", LogReading(prefix)
    yield "log", LogReading()
    yield "log.csv", LogReading()
    yield "log.json", LogReading()
