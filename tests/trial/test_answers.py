"""The fixed queries: a right engine answers them all, and no wrong value passes."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.trial.answers import KNOWN, known_answers

DOUBLE = "DOUBLE PRECISION"
Rows = list[list[str | float | None]]


def ask(sql: str) -> Rows:
    with sqlite3.connect(":memory:") as database:
        return [list(row) for row in database.execute(sql)]


def test_a_right_engine_answers_all() -> None:
    assert [check.detail for check in known_answers(ask, "", DOUBLE) if not check.holds] == []


@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_without_its_last_row_is_wrong(name: str) -> None:
    def shorter(sql: str) -> Rows:
        rows = ask(sql)
        return rows[:-1] if KNOWN[name][0] in sql else rows

    [failing] = [check for check in known_answers(shorter, "", DOUBLE) if not check.holds]
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

    [failing] = [check for check in known_answers(off, "", DOUBLE) if not check.holds]
    assert failing.detail.startswith(f"{wrong} in place of ")


def test_numbers_may_come_as_text() -> None:
    def in_words(sql: str) -> Rows:
        return [[str(value) for value in row] for row in ask(sql)]

    assert all(check.holds for check in known_answers(in_words, "", DOUBLE))


def test_a_dual_table_is_named_where_there_is_one() -> None:
    asked: list[str] = []

    def note(sql: str) -> Rows:
        asked.append(sql)
        return []

    known_answers(note, "RDB$DATABASE", DOUBLE)
    assert all("AS DOUBLE PRECISION) FROM RDB$DATABASE UNION ALL" in sql for sql in asked)
