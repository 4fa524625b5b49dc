"""How values are drawn, by what was seen of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.draw import CHOICES_MOST, SeenValues, draw
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.seen import SeenStatement

DISTINCT_MOST = 10_000
"""Of a place, as `values.rs` has it."""


def values(*literals: str, dialect: Dialect = Dialect.MYSQL) -> SeenValues:
    [group] = grouped("", [SeenStatement(f"SELECT {literal}", 1) for literal in literals], dialect).groups
    [shape] = group.shapes
    return shape.values[0]


def unquoted(literal: str, dialect: Dialect) -> str:
    [(text, _)] = values(literal, dialect=dialect).texts.most
    return text


@pytest.mark.parametrize(
    ("literals", "expression"),
    [
        (["3", "10", "7"], "uniform(3, 10)"),
        (["1.5", "2.25", "3"], "uniform(150, 300) / 100.0"),
        (["'2024-02-29'", "'2023-01-01'"], "date('2023-01-01', '2024-02-29')"),
        (["'2024-01-01 10:00:00.25'", "'2024-01-02 09:00:00'"],
         "timestamp('2024-01-01 10:00:00', '2024-01-02 09:00:00')"),
        (["'0000-00-00'", "'2024-01-01'"], "choice('0000-00-00', '2024-01-01')"),
        (["'it''s'", "'b'", "'b'"], "choice('b', 'it''s')"),
        (["1", "'a'"], "choice('a', 1)"),
        ([f"'{'x' * 300}'", "'y'"], "text(1, 300)"),
        (["$1"], "fill_in()"),
        (["1", "99999999999999999999"], "choice(1, '99999999999999999999')"),
        (["1", "1e999999999"], "choice(1, '1e999999999')"),
        (["1", "1e-999999999"], "choice(1, '1e-999999999')"),
        (["0e999999999", "0e999999999999999999999"], "choice('0e999999999', '0e999999999999999999999')"),
        (["7", "9" * 5_000], f"choice(7, '{'9' * 5_000}')"),
        (["1", "2e3"], "uniform(1, 2000)"),
    ],
)  # fmt: skip
def test_values_are_drawn_like_those_seen(literals: list[str], expression: str) -> None:
    assert draw(values(*literals)).expression == expression


def test_of_many_texts_the_most_frequent_are_drawn() -> None:
    found = draw(values(*(f"'t{n}'" for n in range(200)), "'t7'"))
    assert found.expression.startswith("choice('t7', ") and found.expression.count(",") == CHOICES_MOST - 1
    assert found.words == "50 of 200 values"


def test_the_ends_are_those_of_all_values_however_many_were_seen() -> None:
    numbers = range(DISTINCT_MOST + 1)
    assert draw(values(*map(str, numbers))).expression == f"uniform(0, {DISTINCT_MOST})"
    tenths = draw(values(*map(str, numbers), "0.5")).expression
    assert tenths == f"uniform(0, {DISTINCT_MOST}0) / 10.0"
    first = datetime(2024, 1, 1)
    moments = [f"'{first + timedelta(minutes=number)}'" for number in numbers]
    expression = "timestamp('2024-01-01 00:00:00', '2024-01-07 22:40:00')"
    assert draw(values(*moments)).expression == expression
    assert draw(values(*moments, "'never'")).expression.startswith("choice('2024-01-01 00:00:00', ")
    texts = [f"'t{number}'" for number in numbers]
    assert draw(values(*texts, f"'{'x' * 300}'")).expression == "text(2, 300)"
    assert values(*texts).texts.distinct == DISTINCT_MOST


def test_a_place_that_never_changed_keeps_its_value() -> None:
    assert values("5", "5").constant and not values("5", "6").constant
    assert not values("$1").constant and not values("5", "'5'").constant


@given(some.text(max_size=30))
def test_a_quoted_text_is_read_back(text: str) -> None:
    doubled = text.replace("'", "''")
    assert unquoted(f"'{doubled}'", Dialect.POSTGRESQL) == text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    assert unquoted(f"'{escaped}'", Dialect.MYSQL) == text
    assert unquoted(f"E'{escaped}'", Dialect.POSTGRESQL) == text
    if "$" not in text:
        assert unquoted(f"$q${text}$q$", Dialect.POSTGRESQL) == text
