"""Statements that differ in their values alone, in one group.

SQL is cut into tokens, as far as telling values from the rest needs it.

A *shape* is a statement with a `?` in the place of each value. A *digest* is a shape whose lists of values
are cut to one: `IN (?, ?)` and `IN (?, ?, ?)` are two shapes of one digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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


VALUES = (Kind.TEXT, Kind.NUMBER, Kind.BINARY, Kind.PARAMETER)
SIGN = re.compile(
    r"([(,=<>+*/%|&!-]|\b(select|and|or|not|where|between|limit|offset|then|else|when|case|like|on)) ?-$",
    re.I,
)
"""The end of a text whose minus belongs to the number behind it, not between two values."""
SIGN_CHARACTERS = 16
"""More than that end can have."""
QUOTED = re.compile(r"(?:[eEnN]|[uU]&|_\w+\s*)?['\"`]|\$\w*\$")
"""What a text or a name in quotes begins with."""
PLACE = "?"
"""Stands for a value in shapes and digests."""


@dataclass(frozen=True)
class Shaped:
    """A statement taken apart: the `pieces` of its text stand around its `values`, one more than these."""

    pieces: tuple[str, ...]
    values: tuple[Token, ...]
    verb: str
    cut: bool = False
    """Whether a quote, a comment or a parenthesis does not end, so something of the text is missing."""
    digest_: str = ""
    """The digest where it was made already."""

    @property
    def shape(self) -> str:
        return PLACE.join(self.pieces)

    @property
    def digest(self) -> str:
        return self.digest_ or digest_of(self.shape)


def shaped(statement: str, dialect: Dialect) -> Shaped:
    """Takes a statement apart. Comments are left out, and white space is one blank."""
    pieces, values, verb = list[str](), list[Token](), ""
    depth, ended = 0, True
    # A text of its own, because what a list holds is copied whenever something is added to it.
    piece = ""
    for token in tokens(statement.strip().rstrip(";").strip(), dialect):
        depth += (token.text == "(") - (token.text == ")")
        ended = _ends(token)
        if token.kind in VALUES:
            if token.kind is Kind.NUMBER and SIGN.search(piece[-SIGN_CHARACTERS:]):
                piece, token = piece[:-1], Token(Kind.NUMBER, f"-{token.text}")
            values.append(token)
            pieces.append(piece)
            piece = ""
            continue
        verb = verb or (token.text.upper() if token.kind is Kind.NAME else "")
        if token.kind is Kind.BLANK:
            piece += "" if piece.endswith(" ") else " "
        else:
            piece += token.text
    pieces.append(piece)
    pieces[0], pieces[-1] = pieces[0].lstrip(), pieces[-1].rstrip()
    return Shaped(tuple(pieces), tuple(values), verb, depth > 0 or not ended)


PLAIN = re.compile(r"((?<![\w$&])'[^'\\]*'|(?<![\w.$])[0-9]+(?![\w.$]))")
"""A value that stands as it is: a text without quotes within it, or a number of digits alone. A letter
before a text may say what it is, `x'1f'`, if it is that."""
KNOWN_MOST = 100_000
KNOWN_CHARACTERS_MOST = 4_096


@dataclass
class Shaper:
    """Takes statements apart, most of them without looking at each token: a log has millions that differ in
    plain values alone. What stands around these, and which of them are texts, tells all of the others once
    one was taken apart token by token and has the same values: each text ends where its quote does, so what
    follows it is read alike."""

    dialect: Dialect
    _known: dict[tuple[str, str], tuple[Shaped, tuple[bool, ...]] | None] = field(default_factory=dict)

    def of(self, statement: str) -> Shaped:
        """A statement taken apart, as `shaped` does it."""
        if len(statement) > KNOWN_CHARACTERS_MOST or "\0" in statement:
            return shaped(statement, self.dialect)
        parts = PLAIN.split(statement)
        values = parts[1::2]
        kinds = "".join(["t" if value[0] == "'" else "n" for value in values])
        key = ("\0".join(parts[::2]), kinds)
        if key in self._known:
            found = self._known[key]
            if found is None:
                return shaped(statement, self.dialect)
            like, signs = found
            tokens_ = tuple(
                Token(before.kind, f"-{value}" if sign else value)
                for before, value, sign in zip(like.values, values, signs, strict=True)
            )
            return Shaped(like.pieces, tokens_, like.verb, like.cut, like.digest_)
        if len(self._known) >= KNOWN_MOST:
            self._known.clear()
        taken = shaped(statement, self.dialect)
        self._known[key] = self._plain(statement, taken)
        return taken

    def _plain(self, statement: str, taken: Shaped) -> tuple[Shaped, tuple[bool, ...]] | None:
        """What serves for all statements with these values' places; None where another value is in it."""
        bare = statement.strip().rstrip(";").strip()
        if bare != statement:
            return None
        at, spans = 0, list[tuple[int, str]]()
        for token in tokens(bare, self.dialect):
            if token.kind in VALUES:
                spans.append((at, token.text))
            at += len(token.text)
        if spans != [(found.start(), found[0]) for found in PLAIN.finditer(bare)]:
            return None
        signs = tuple(value.text != text for value, (_, text) in zip(taken.values, spans, strict=True))
        return Shaped(taken.pieces, taken.values, taken.verb, taken.cut, taken.digest), signs


def _ends(token: Token) -> bool:
    """Whether a token that begins with a quote or opens a comment has its end; only a text's last one may
    lack it."""
    text = token.text
    if text.startswith("/*"):
        return len(text) >= 4 and text.endswith("*/")
    if token.kind not in (Kind.TEXT, Kind.NAME, Kind.BINARY) or not (marked := QUOTED.match(text)):
        return True
    end = marked[0] if marked[0].startswith("$") else marked[0][-1]
    return len(text) > len(marked[0]) and text.endswith(end)


_LIST = re.compile(r"\( ?\?(?: ?, ?\?)+ ?\)|(?i:(?<=\bin )\( ?\? ?\)|(?<=\bin)\( ?\? ?\))")
_ROWS = re.compile(r"(\(\?, \.\.\.\)|\( ?\? ?\))(?: ?, ?\1)+")


def digest_of(shape: str) -> str:
    """A shape with one list in the place of lists of any length, and one row in the place of several."""
    return _ROWS.sub(r"\1", _LIST.sub("(?, ...)", shape))
