"""The fixed queries: a right engine answers them all, and no wrong value passes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.guards import differing_answers
from dbdyno.driver.job import Job
from dbdyno.driver.load import RowsAnswered, StatementAnswered, StatementRefusal, StatementsAnswered
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.engines.facts import ComparedBy
from dbdyno.engines.firebird import FIREBIRD
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.sqlite import SQLITE
from dbdyno.engines.sqlite.settings import url
from dbdyno.errors import DriverFailed
from dbdyno.host.launch import Launch
from dbdyno.layers.setup import Running
from dbdyno.records.load_words import StatementAnswers
from dbdyno.study.nouns import Reference
from dbdyno.trial import answers
from dbdyno.trial.answers import (
    COMPENSATED,
    KNOWN,
    OVERFLOW,
    TableRows,
    answers_of,
    known_answers,
    rows_of,
)

VERSION = sqlite3.sqlite_version
Rows = list[list[str | float | None]]


def ask(sql: str) -> Rows:
    with sqlite3.connect(":memory:") as database:
        return [list(row) for row in database.execute(sql)]


def test_a_right_engine_answers_all() -> None:
    assert [check.detail for check in known_answers(ask, SQLITE, VERSION) if not check.holds] == []


@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_without_its_last_row_is_wrong(name: str) -> None:
    def shorter(sql: str) -> Rows:
        rows = ask(sql)
        return rows[:-1] if KNOWN[name][0] in sql else rows

    [failing] = [check for check in known_answers(shorter, SQLITE, VERSION) if not check.holds]
    assert failing.name == f"answer_{name}" and "expected" in failing.detail


@given(
    name=st.sampled_from(sorted(KNOWN)), place=st.integers(0, 10**6), wrong=st.sampled_from(["x", None, -1.5])
)
def test_one_wrong_value_is_noticed(name: str, place: int, wrong: str | float | None) -> None:
    def off(sql: str) -> Rows:
        rows = ask(sql)
        if KNOWN[name][0] in sql:
            values = rows[place % len(rows)]
            values[place % len(values)] = wrong
        return rows

    [failing] = [check for check in known_answers(off, SQLITE, VERSION) if not check.holds]
    assert failing.detail.startswith(f"{wrong} in place of ")


def test_numbers_may_come_as_text() -> None:
    def in_words(sql: str) -> Rows:
        return [[str(value) for value in row] for row in ask(sql)]

    assert all(check.holds for check in known_answers(in_words, SQLITE, VERSION))


def test_a_dual_table_is_named_where_there_is_one() -> None:
    asked: list[str] = []

    def note(sql: str) -> Rows:
        asked.append(sql)
        return []

    known_answers(note, FIREBIRD, "5.0.3")
    assert all("AS DOUBLE PRECISION) FROM RDB$DATABASE UNION ALL" in sql for sql in asked)


def with_tiny_numbers_flushed(sql: str) -> Rows:
    """As a processor answers that takes what lies below the least normal number for zero."""
    return [[0.0]] if KNOWN["tiny"][0] in sql else ask(sql)


def test_tiny_numbers_are_not_zero() -> None:
    [failing] = [one for one in known_answers(with_tiny_numbers_flushed, SQLITE, VERSION) if not one.holds]
    assert (failing.name, failing.detail) == ("answer_tiny", "0.0 in place of 500")


@pytest.mark.parametrize(("version", "asked"), [("3.40.1", False), ("3.43.0", True), ("3.100", True)])
def test_only_an_engine_that_compensates_its_sums_is_asked_for_that(version: str, asked: bool) -> None:
    def summed(sql: str) -> Rows:
        return [[498.0]] if COMPENSATED[0] in sql else ask(sql)

    found = known_answers(summed, SQLITE, version)
    assert all(check.holds for check in found)
    assert any(check.name == "answer_compensated" for check in found) is asked


def test_a_sum_that_lost_what_rounding_cuts_off_is_wrong_where_it_should_not() -> None:
    def lost(sql: str) -> Rows:
        return [[0.0]] if COMPENSATED[0] in sql else ask(sql)

    [failing] = [check for check in known_answers(lost, SQLITE, "3.50.4") if not check.holds]
    assert (failing.name, failing.detail) == ("answer_compensated", "0.0 in place of 498")


@pytest.mark.parametrize("finite", [[[1.7976931348623157e308]], [[None]], []])
def test_what_is_too_large_is_never_finite(finite: Rows) -> None:
    def bounded(sql: str) -> Rows:
        return finite if OVERFLOW in sql else ask(sql)

    [failing] = [check for check in known_answers(bounded, SQLITE, VERSION) if not check.holds]
    assert failing.name == "answer_overflow" and failing.detail.endswith("infinity expected")


def test_a_server_refuses_what_is_too_large() -> None:
    def refusing(sql: str) -> Rows:
        if OVERFLOW in sql:
            raise DriverFailed("out of range", kind="server")
        return ask(sql)

    assert all(check.holds for check in known_answers(refusing, MARIADB, "11.8.6"))
    [failing] = [check for check in known_answers(ask, MARIADB, "11.8.6") if not check.holds]
    assert (failing.name, failing.detail) == ("answer_overflow", "inf, an error expected")
    [failing] = [check for check in known_answers(refusing, SQLITE, VERSION) if not check.holds]
    assert failing.name == "answer_overflow"


def test_a_lost_connection_is_no_refusal() -> None:
    def gone(sql: str) -> Rows:
        if OVERFLOW in sql:
            raise DriverFailed("the server is gone", kind="connect")
        return ask(sql)

    with pytest.raises(DriverFailed, match="gone"):
        known_answers(gone, MARIADB, "11.8.6")


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


@given(st.text("0123456789.-+eE_ x\u0663\n", max_size=40) | st.integers() | st.floats())
def test_a_text_is_a_number_where_python_takes_it_for_a_finite_one(value: str | float) -> None:
    text = str(value)
    with suppress(InvalidOperation):
        if (number := Decimal(text.strip())).is_finite():
            assert answers._plain(value) == f"{number.normalize():f}"
            return
    assert answers._plain(value) == text.rstrip()


@pytest.mark.parametrize(
    "values",
    ["(1, 'x')", "(1, 'x'), (2, 'z')", "(1, 'y'), (2, 'x')", "(1, 'x'), (2, NULL)", "(1, 'x'), (1, 'x')"],
)
def test_any_other_row_shows(load: LoadProcess, tmp_path: Path, values: str) -> None:
    one = _rows(load, tmp_path / "one", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    other = _rows(load, tmp_path / "other", "CREATE TABLE t (a, b)", f"INSERT INTO t VALUES {values}")
    assert one[0].digest != other[0].digest


def test_names_that_are_words_of_sql_are_read_as_names(load: LoadProcess, tmp_path: Path) -> None:
    odd = ('CREATE TABLE "order" ("select", "a ""b")', """INSERT INTO "order" VALUES (1, 'x')""")
    plain = ("CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 'x')")
    one, other = _rows(load, tmp_path / "one", *odd), _rows(load, tmp_path / "other", *plain)
    assert (one[0].name, one[0].rows, one[0].digest) == ("order", 1, other[0].digest)


def test_a_table_that_is_read_in_parts_has_the_checksum_of_the_whole(
    load: LoadProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT -3 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
    insert = f"{numbers} INSERT INTO t SELECT i, i * 2 FROM n"
    path = tmp_path / "one"
    whole = _rows(load, path, "CREATE TABLE t (a, b)", insert, "INSERT INTO t VALUES (NULL, 1), (0.5, 2)")
    monkeypatch.setattr(answers, "ROWS_AT_A_TIME", 4)
    assert _rows(load, path) == whole and whole[0].rows == 26


def rows(*values: Any, **more: Any) -> RowsAnswered:
    """An answer of one column."""
    types = more.pop("types", ("int",))
    told = tuple((value,) for value in values)
    return RowsAnswered(columns=("a",), types=types, rows=told, count=len(values), **more)


def told(*runs: RowsAnswered, ordered: bool = False) -> StatementAnswers:
    """What a record keeps of a statement that was answered so, each time of two."""
    asked = StatementAnswered(name="q", sql="SELECT a", is_ordered=ordered, runs=(*runs, runs[-1])[:2])
    load = SimpleNamespace(answers=lambda job: StatementsAnswered(statements=(asked,)))
    running = SimpleNamespace(load=load, data_job=Job(workload="statements"))
    return answers_of(cast(Running, running), seed=1)[0]


def changed(before: Sequence[int], after: Sequence[int]) -> RowsAnswered:
    return RowsAnswered(affected=len(before), before=rows(*before), after=rows(*after))


TEXT, FLOAT = ("text",), ("float",)
REFUSED = RowsAnswered(error=StatementRefusal(code="1054", sqlstate="42S22", message="no column b"))


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (told(rows(1, 2)), told(rows(2, 1)), ""),
        (told(rows(1, 2), ordered=True), told(rows(2, 1), ordered=True), "order"),
        (told(rows(1, 2)), told(rows(1, 2, 2)), "number of rows"),
        (told(rows(1, 2)), told(rows(1, 3)), "values"),
        (told(rows(1)), told(rows("1", types=TEXT)), "types"),
        (told(rows("a", types=TEXT)), told(rows("a ", types=TEXT)), "values"),
        (told(rows(0.1 + 0.2, types=FLOAT)), told(rows(0.3, types=FLOAT)), "last digits of doubles"),
        (told(rows(0.3, types=FLOAT)), told(rows(0.31, types=FLOAT)), "values"),
        (told(rows(1)), told(rows(1, warnings=(("Note", 1003, "x"),))), "warnings"),
        (told(rows(1)), told(REFUSED), "error"),
        (told(REFUSED), told(REFUSED), ""),
        (told(changed([1, 2], [1, 3])), told(changed([1, 2], [1, 4])), "values"),
        (told(changed([1, 2], [1, 3])), told(changed([2, 1], [3, 1])), ""),
        (told(rows(1), rows(2)), told(rows(3), rows(4)), "values"),
    ],
)
def test_answers_differ_in_what_they_say_and_in_nothing_else(
    before: StatementAnswers, after: StatementAnswers, what: str
) -> None:
    found = differing_answers(before, after)
    assert [one.what for one in found] == ([what] if what else [])


def test_what_differs_from_itself_or_in_last_digits_is_harmless() -> None:
    clock = differing_answers(told(rows(1), rows(2)), told(rows(3), rows(4)))
    assert [one.harmless for one in clock] == ["the statement does not answer twice alike"]
    [warned] = differing_answers(told(rows(1)), told(rows(1, warnings=(("Note", 1003, "x"),))))
    assert (warned.harmless, warned.before, warned.after) == (
        "the rows are the same",
        (),
        ("Note | 1003 | x",),
    )
    digits = differing_answers(told(rows(0.1 + 0.2, types=FLOAT)), told(rows(0.3, types=FLOAT)))
    assert digits[0].harmless
    [wrong] = differing_answers(told(changed([1, 2], [1, 3])), told(changed([1, 2], [1, 4])))
    assert (wrong.harmless, wrong.before, wrong.after) == ("", ("+3",), ("+4",))
