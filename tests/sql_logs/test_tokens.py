"""Tokens lose nothing, whatever the statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.sql_logs.tokens import Dialect, Kind, tokens

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
        if token.kind in (Kind.NUMBER, Kind.TEXT)
    ]
    assert found == ["5", "'x'"]
