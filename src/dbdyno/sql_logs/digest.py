"""Statements that differ in their values alone, in one group.

SQL is cut into tokens, as far as telling values from the rest needs it (`crates/sql_log`).

A *shape* is a statement with a `?` in the place of each value. A *digest* is a shape whose lists of values
are cut to one: `IN (?, ?)` and `IN (?, ?, ?)` are two shapes of one digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from dbdyno.driver import _driver

TokenKind = Enum("TokenKind", "BLANK BINARY TEXT PARAMETER NUMBER NAME SYMBOL", start=0)
"""What a token is, in the order of `lexer.rs`. `BLANK` is white space or a comment; `BINARY` a value in
hexadecimal, bits or other characters than UTF-8; `PARAMETER` a value's place, `$1`."""


class Dialect(Enum):
    """Whose SQL it is: double quotes hold a text in MySQL's, and a name in PostgreSQL's."""

    MYSQL = auto()
    POSTGRESQL = auto()


@dataclass(frozen=True)
class Token:
    """A piece of a statement as it is written."""

    kind: TokenKind
    text: str


def tokens(statement: str, dialect: Dialect) -> Iterator[Token]:
    """The tokens of a statement; joined, they are the statement. What does not end goes to its end."""
    for kind, text, _ in _driver.sql_tokens(statement, dialect is Dialect.MYSQL):
        yield Token(TokenKind(kind), text)


def between_commas(parts: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands between commas outside of parentheses."""
    depth, begin = 0, 0
    for place, token in enumerate(parts):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            yield parts[begin:place]
            begin = place + 1
    yield parts[begin:]


PLACE = "?"
"""Stands for a value in shapes and digests."""


@dataclass(frozen=True)
class Shaped:
    """A statement taken apart: the `pieces` of its text stand around its `values`, one more than these. It is
    `cut` where a quote, a comment or a parenthesis does not end, so something of the text is missing."""

    pieces: tuple[str, ...]
    values: tuple[Token, ...]
    verb: str
    cut: bool
    digest: str


def shaped(statement: str, dialect: Dialect) -> Shaped:
    """Takes a statement apart. Comments are left out, and white space is one blank."""
    pieces, values, verb, cut, digest = _driver.sql_shaped(statement, dialect is Dialect.MYSQL)
    return Shaped(tuple(pieces), values_told(values), verb, cut, digest)


def values_told(values: Sequence[tuple[int, str]]) -> tuple[Token, ...]:
    """Values as the driver tells them."""
    return tuple(Token(TokenKind(kind), text) for kind, text in values)
