"""Checksums over all rows, on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.engines.facts import ComparedBy
from dbdyno.engines.sqlite.settings import url
from dbdyno.host.launch import Launch
from dbdyno.study.reference import Reference
from dbdyno.trial import rows
from dbdyno.trial.rows import TableRows, rows_of


@pytest.fixture(scope="module")
def load() -> Iterator[LoadProcess]:
    with LoadProcess({}, Launch()) as process:
        yield process


def _rows(load: LoadProcess, path: Path, *statements: str) -> tuple[TableRows, ...]:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    engine = registry.engine("sqlite")
    library = engine.obtaining.locate(Reference("sqlite")).library
    assert library is not None and isinstance(engine.compared, ComparedBy)
    return rows_of(load, url(path, library), engine.compared)


def test_the_order_of_rows_and_the_spelling_of_numbers_do_not_matter(
    load: LoadProcess, tmp_path: Path
) -> None:
    one = _rows(load, tmp_path / "one", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 'x'), (2, 'y  ')")
    other = _rows(
        load, tmp_path / "other", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (2.0, 'y'), ('1', 'x')"
    )
    assert one == other and one[0].rows == 2


@pytest.mark.parametrize(
    "values",
    ["(1, 'x')", "(1, 'x'), (2, 'z')", "(1, 'y'), (2, 'x')", "(1, 'x'), (2, NULL)", "(1, 'x'), (1, 'x')"],
)
def test_any_other_row_shows(load: LoadProcess, tmp_path: Path, values: str) -> None:
    one = _rows(load, tmp_path / "one", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    other = _rows(load, tmp_path / "other", "CREATE TABLE t (a, b)", f"INSERT INTO t VALUES {values}")
    assert one[0].digest != other[0].digest


def test_a_table_that_is_read_in_parts_has_the_checksum_of_the_whole(
    load: LoadProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT -3 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
    insert = f"{numbers} INSERT INTO t SELECT i, i * 2 FROM n"
    path = tmp_path / "one"
    whole = _rows(load, path, "CREATE TABLE t (a, b)", insert, "INSERT INTO t VALUES (NULL, 1), (0.5, 2)")
    monkeypatch.setattr(rows, "ROWS_AT_A_TIME", 4)
    assert _rows(load, path) == whole and whole[0].rows == 26
