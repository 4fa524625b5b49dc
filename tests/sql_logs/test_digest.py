"""Statements that differ in their values alone have one digest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.sql_logs.digest import Dialect, TokenKind, shaped, tokens

NUMBERS = some.integers(-(10**12), 10**12).map(str) | some.decimals(-1000, 1000, places=2).map(str)
TEXTS = some.text(some.characters(codec="utf-8", exclude_characters="'\\\0"), max_size=20).map(
    lambda text: f"'{text}'"
)


@given(
    some.lists(NUMBERS | TEXTS, min_size=2, max_size=6), some.lists(NUMBERS | TEXTS, min_size=2, max_size=6)
)
def test_neither_values_nor_the_length_of_a_list_matter(one: list[str], other: list[str]) -> None:
    made = [
        shaped(f"SELECT a FROM t WHERE b IN ({', '.join(values)}) AND c = {values[0]}", Dialect.MYSQL)
        for values in (one, other)
    ]
    assert made[0].digest == made[1].digest == "SELECT a FROM t WHERE b IN (?, ...) AND c = ?"
    assert [token.text for token in made[0].values] == [*one, one[0]]


@pytest.mark.parametrize(
    ("statement", "digest", "verb"),
    [
        ("select  1 -- why\n from\tt;", "select ? from t", "SELECT"),
        ("INSERT INTO t VALUES (1,'a'), (2,'b')", "INSERT INTO t VALUES (?, ...)", "INSERT"),
        ("/* app */ UPDATE t SET a = a + 1", "UPDATE t SET a = a + ?", "UPDATE"),
        ("SELECT a FROM t WHERE b in (5)", "SELECT a FROM t WHERE b in (?, ...)", "SELECT"),
        ("SELECT 5 -3, 5-3, 5 * -3", "SELECT ? -?, ?-?, ? * ?", "SELECT"),
        ("UPDATE t SET a = a + -5", "UPDATE t SET a = a + ?", "UPDATE"),
        ("SELECT f(5)", "SELECT f(?)", "SELECT"),
        ("(SELECT 1)", "(SELECT ?)", "SELECT"),
        ("SELECT 0xAB, x'ab', b'01'", "SELECT ?, ?, ?", "SELECT"),
        ("SELECT a FROM t WHERE b IN (0x01, 0x02)", "SELECT a FROM t WHERE b IN (?, ...)", "SELECT"),
        ("", "", ""),
    ],
)
def test_a_statement_has_this_digest(statement: str, digest: str, verb: str) -> None:
    found = shaped(statement, Dialect.MYSQL)
    assert (found.digest, found.verb) == (digest, verb)


PIECES = some.sampled_from(
    ["SELECT", " ", "\n", "'it''s'", r"'a\'b'", '"x"', "`a``b`", "1.5e3", "0x1F", "x'ab'", "$1", "$$q$$",
     "?", "9a", "/* ? */", "/*! X */", "-- a\n", "# a\n", "(", ",", ")", "::", ":=", "@@a",
     "é", "t1", "'open"]
)  # fmt: skip


@given(some.lists(PIECES).map("".join) | some.text(), some.sampled_from(list(Dialect)))
def test_the_tokens_joined_are_the_statement(statement: str, dialect: Dialect) -> None:
    assert "".join(token.text for token in tokens(statement, dialect)) == statement


@pytest.mark.parametrize(
    ("statement", "dialect", "kinds"),
    [
        ("a1=-1.5e-3", Dialect.MYSQL, "NAME SYMBOL SYMBOL NUMBER"),
        ("1a 2", Dialect.MYSQL, "NAME BLANK NUMBER"),
        ("@@x @y", Dialect.MYSQL, "NAME BLANK NAME"),
        ("0xFF x'ff' b'01'", Dialect.MYSQL, "BINARY BLANK BINARY BLANK BINARY"),
        ('"a"', Dialect.MYSQL, "TEXT"),
        ('"a"', Dialect.POSTGRESQL, "NAME"),
        ("# a", Dialect.MYSQL, "BLANK"),
        ("5--3", Dialect.MYSQL, "NUMBER SYMBOL SYMBOL NUMBER"),
        ("5--3", Dialect.POSTGRESQL, "NUMBER BLANK"),
        ("$1 $$a'b$$ $t$x$$y$t$", Dialect.POSTGRESQL, "PARAMETER BLANK TEXT BLANK TEXT"),
        (r"'a\' 'b'", Dialect.POSTGRESQL, "TEXT BLANK TEXT"),
        (r"'a\' b'", Dialect.MYSQL, "TEXT"),
        ("/* a */ /*+ b */", Dialect.MYSQL, "BLANK BLANK SYMBOL"),
        ("x::int", Dialect.POSTGRESQL, "NAME SYMBOL NAME"),
    ],
)
def test_each_token_has_its_kind(statement: str, dialect: Dialect, kinds: str) -> None:
    assert " ".join(token.kind.name for token in tokens(statement, dialect)) == kinds


def test_a_value_is_a_text_or_a_number() -> None:
    found = [
        token.text
        for token in tokens("id = 5 AND n = 'x'", Dialect.MYSQL)
        if token.kind in (TokenKind.NUMBER, TokenKind.TEXT)
    ]
    assert found == ["5", "'x'"]
