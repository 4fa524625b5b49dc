"""SQL cut into tokens, as far as telling values from the rest needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

CHARACTER_SETS = (
    "armscii8|ascii|big5|binary|cp\\d+|dec8|eucjpms|euckr|gb18030|gb2312|gbk|geostd8|greek|hebrew|hp8|keybcs2"
    "|koi8[ru]|latin[1257]|mac(?:ce|roman)|sjis|swe7|tis620|ucs2|ujis|utf(?:8|8mb3|8mb4|16|16le|32)"
)
"""Of MariaDB and MySQL, as `SHOW CHARACTER SET` lists them."""


class Kind(Enum):
    """What a token is. `BLANK` is white space or a comment; `BINARY` a value in hexadecimal or bits;
    `PARAMETER` a value's place, `$1`."""

    BLANK = auto()
    BINARY = auto()
    TEXT = auto()
    PARAMETER = auto()
    NUMBER = auto()
    NAME = auto()
    SYMBOL = auto()


class Dialect(Enum):
    """Whose SQL it is: double quotes hold a text in MySQL's, and a name in PostgreSQL's."""

    MYSQL = auto()
    POSTGRESQL = auto()


@dataclass(frozen=True)
class Token:
    """A piece of a statement as it is written."""

    kind: Kind
    text: str


def _quoted(quote: str, escapes: bool) -> str:
    """From quote to quote; a doubled quote stands for itself, and so does any letter behind a backslash."""
    letter = rf"[^{quote}\\]|\\." if escapes else f"[^{quote}]"
    return rf"{quote}(?:{letter}|{quote}{quote})*(?:{quote}|\Z)"


def _patterns(dialect: Dialect) -> Iterator[tuple[Kind, str]]:
    mysql = dialect is Dialect.MYSQL
    # MySQL takes two minuses for a comment only with white space behind them.
    comment = r"--(?=\s|\Z)[^\n]*|\#[^\n]*" if mysql else r"--[^\n]*"
    yield Kind.BLANK, rf"\s+|{comment}|/\*(?![!+]).*?(?:\*/|\Z)"
    binary = r"[xXbB]'[0-9A-Fa-f]*'|0x[0-9A-Fa-f]+(?!\w)|0b[01]+(?!\w)"
    if mysql:
        # A text may say its characters: `_utf8mb4'a'`. In others than UTF-8 its bytes mean something else.
        quoted = f"{_quoted(chr(39), True)}|{_quoted(chr(34), True)}"
        others = rf"_(?!utf8(?:mb[34])?\b)(?:{CHARACTER_SETS})\s*(?:{quoted})"
        said = rf"_(?:{CHARACTER_SETS})\s*(?:[xXbB]'[0-9A-Fa-f]*'|0x[0-9A-Fa-f]+)"
        yield Kind.BINARY, f"{binary}|{others}|{said}"
        yield Kind.TEXT, rf"(?:_utf8(?:mb[34])?\s*|[nN](?='))?(?:{quoted})"
    else:
        yield Kind.BINARY, rf"{binary}|[uU]&{_quoted(chr(39), False)}"
        yield (
            Kind.TEXT,
            rf"[eE]{_quoted(chr(39), True)}|[nN]?{_quoted(chr(39), False)}"
            r"|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)",
        )
    yield Kind.PARAMETER, r"\$\d+"
    yield Kind.NUMBER, r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$])"
    name = _quoted("`" if mysql else chr(34), False)
    yield Kind.NAME, rf"{name}|@{{0,2}}[^\W\d][\w$]*|\d[\w$]*"
    yield Kind.SYMBOL, r"/\*[!+].*?(?:\*/|\Z)|<=>|<>|!=|<=|>=|:=|\|\||&&|->>?|::|."


_TOKEN = {
    dialect: re.compile(
        "|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _patterns(dialect)), re.DOTALL
    )
    for dialect in Dialect
}


def tokens(statement: str, dialect: Dialect) -> Iterator[Token]:
    """The tokens of a statement; joined, they are the statement. What does not end goes to its end."""
    for found in _TOKEN[dialect].finditer(statement):
        kind = next(kind for kind in Kind if found[kind.name] is not None)
        yield Token(kind, found[0])


def between_commas(parts: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands between commas outside of parentheses."""
    depth, begin = 0, 0
    for place, token in enumerate(parts):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            yield parts[begin:place]
            begin = place + 1
    yield parts[begin:]
