"""Statements that differ in their values alone, in one group.

A *shape* is a statement with a `?` in the place of each value. A *digest* is a shape whose lists of values
are cut to one: `IN (?, ?)` and `IN (?, ?, ?)` are two shapes of one digest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dbdyno.sql_logs.tokens import Dialect, Kind, Token, tokens

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
