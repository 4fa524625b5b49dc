"""A script as psql reads it: where statements and commands of psql's own begin and end, and what is data.

The rules are those of psql's scanner (src/fe_utils/psqlscan.l of PostgreSQL) and of its reading of COPY
(handleCopyIn in src/bin/psql/copy.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import NamedTuple

LINE_BYTES_MOST = 8 << 20
"""A longer line is read in parts, because a dump that is packed can hold one larger than the memory."""
MARGIN_BYTES = 64 << 10
"""How much of such a line is known behind the place that is looked at: no token but a text is longer."""
STATEMENT_BYTES_MOST = 1 << 20
"""A longer statement is not told as one. None that a dump needs help with is so long."""
BOM = b"\xef\xbb\xbf"

TOKEN = re.compile(
    rb"""(?P<space>\n|[^\S\n]+)
    |(?P<comment>--)
    |(?P<block>/\*)
    |(?P<escaped>[eE]')
    |(?P<plain>[uU]&'|[bBxX]')
    |(?P<quote>')
    |(?P<identifier>")
    |(?P<dollar>\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$)
    |(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)
    |(?P<forced>\\[;:])
    |(?P<command>\\)
    |(?P<end>;)
    |(?P<opened>\()
    |(?P<closed>\))
    |(?P<other>[^\s'"$\\;()/A-Za-z_\x80-\xff-]+|.)""",
    re.VERBOSE | re.DOTALL,
)
PLAINEST = (
    rb"""(?:[^'"$\\;()/\-\nA-Za-z_\x80-\xff]|-(?!-)|/(?!\*)|'(?:[^'\\\n]++|'')*+'|"""
    rb"""[A-Za-z_\x80-\xff][\w$\x80-\xff]*+(?!['&]))"""
)
RUN = re.compile(rb"(?:%s|\(%s*+\))++" % (PLAINEST, PLAINEST))
"""Tokens that change nothing of how a statement is read, where its words do not matter."""
WORDS_MATTER = frozenset((b"", b"copy", b"create"))
QUOTES = re.compile(rb"['\\]")
BLOCKS = re.compile(rb"/\*|\*/")
ENDS = {"comment": re.compile(rb"[\r\n]"), "command": re.compile(rb"\n")}
DATA_END = re.compile(rb"^\\\.\r?\n", re.MULTILINE)
SET = re.compile(
    rb"SET\s+(?:SESSION\s+|LOCAL\s+)?(?:(standard_conforming_strings|client_encoding)\s*(?:=|TO)|(NAMES))\s*"
    rb"'?([\w-]+)'?\s*;",
    re.IGNORECASE,
)
OFF = frozenset((b"off", b"of", b"false", b"fals", b"fal", b"fa", b"f", b"no", b"n", b"0"))
PAIRS = re.compile(rb"[\x81-\xfe][^\n]")
PAIRS_OF_SJIS = re.compile(rb"[\x81-\x9f\xe0-\xfc][^\n]")
"""Letters of two bytes, the second of which may be a quote or a backslash of ASCII."""
IN_PAIRS = {
    name.encode(): PAIRS_OF_SJIS if name in ("sjis", "shiftjis", "mskanji", "win932", "windows932") else PAIRS
    for name in (
        *("sjis", "shiftjis", "mskanji", "win932", "windows932", "shiftjis2004", "big5", "win950"),
        *("windows950", "gbk", "win936", "windows936", "uhc", "win949", "windows949", "johab", "gb18030"),
    )
}
ROUTINE = ("cf", "cp", "corf", "corp")
"""The first letters of CREATE [OR REPLACE] FUNCTION or PROCEDURE, by which psql knows that a body may follow
BEGIN."""


class SegmentKind(Enum):
    """What a segment is: a whole statement; a command that begins a line where no statement is under way,
    without the end of its line; or anything else."""

    STATEMENT = 1
    COMMAND = 2
    OTHER = 3


class ScriptSegment(NamedTuple):
    """A part of a script. All of them in their order are the script."""

    kind: SegmentKind
    text: bytes


class ScannerState(Enum):
    """Where the scanner is."""

    CODE = 0
    PLAIN = 1
    ESCAPED = 2
    IDENTIFIER = 3
    DOLLAR = 4
    COMMENT = 5
    BLOCK = 6
    COMMAND = 7


BEGUN = {"plain": ScannerState.PLAIN, "escaped": ScannerState.ESCAPED, "identifier": ScannerState.IDENTIFIER}


class Script:
    """A script that is read piece by piece; a piece may end anywhere."""

    def __init__(self) -> None:
        self._text = self._seen = b""
        # All that is given out ends at `_given`, all that is read at `_at`; a line is read to its `_end`, and
        # what follows is known up to `_known`. The line begins at `_line`.
        self._given = self._at = self._end = self._known = self._line = 0
        self._state = ScannerState.CODE
        self._delimiter, self._depth = b"", 0
        self._continues = self._goes_on = False
        self._copies, self._is_data, self._is_within_line = 0, False, False
        self._pairs: re.Pattern[bytes] | None = None
        self._has_plain_strings = True
        # Of the statement under way: where it begins, whether it can be told, and what of it matters.
        self._has_begun, self._is_told, self._begins = False, True, 0
        self._parentheses = self._bodies = self._copying = 0
        self._first, self._letters, self._before = b"", "", b""

    def connected(self) -> None:
        """From here on psql has another session, whose settings are the server's own."""
        self._pairs, self._has_plain_strings = None, True
        self._see()

    def segments(self, pieces: Iterator[bytes]) -> Iterator[ScriptSegment]:
        """The segments of the script."""
        is_first = True
        for piece in chain(pieces, [None]):
            self._more(piece or b"")
            if is_first and piece is not None and len(self._text) < len(BOM):
                continue
            if is_first and self._text.startswith(BOM):
                self._at = self._line = len(BOM)
            is_first = False
            while self._next_line(is_last=piece is None):
                if self._is_data:
                    self._data()
                    continue
                while self._at < self._end:
                    yield from self._step()
                if self._text[self._at - 1 : self._at] == b"\n":
                    self._line_is_over()
            yield from self._passed()
        yield ScriptSegment(SegmentKind.OTHER, self._text[self._given :])

    def _line_is_over(self) -> None:
        """Data begin on the next line, whatever stands behind the semicolon of their statement."""
        self._line = self._at
        self._is_data = self._copies > 0
        self._copies -= self._is_data

    def _more(self, piece: bytes) -> None:
        self._text = self._text[self._given :] + piece
        self._at -= self._given
        self._line -= self._given
        self._begins -= self._given
        self._given = 0
        self._see()

    def _see(self) -> None:
        """Makes what is scanned: no letter of it holds a quote or a backslash."""
        self._seen = self._text
        if self._pairs is not None:
            self._seen = self._text[: self._at] + self._pairs.sub(b"\xff\xff", self._text[self._at :])

    def _next_line(self, is_last: bool) -> bool:
        """Sets how far to read. False where more must be known before."""
        if self._at >= len(self._text):
            return False
        if self._is_data:
            # Only the last line may be cut.
            self._end = self._known = len(self._text)
            return is_last or self._text.find(b"\n", self._at) >= 0 or self._end - self._at > LINE_BYTES_MOST
        newline = self._text.find(b"\n", self._at)
        if newline >= 0 or is_last:
            self._end = self._known = newline + 1 if newline >= 0 else len(self._text)
            return True
        self._end, self._known = len(self._text) - MARGIN_BYTES, len(self._text)
        return self._pairs is None and self._end - self._at > LINE_BYTES_MOST

    def _data(self) -> None:
        """Goes behind the data of COPY, or to the end of what is known."""
        if self._is_within_line:
            newline = self._text.find(b"\n", self._at)
            self._at = newline + 1 if newline >= 0 else len(self._text)
            self._is_within_line = newline < 0
            return
        found = DATA_END.search(self._text, self._at)
        if found is not None:
            self._at = found.end()
            self._line_is_over()
            return
        # What may be the beginning of the last line is looked at again.
        whole = self._text.rfind(b"\n", self._at) + 1
        if whole:
            self._at = whole
        else:
            self._at, self._is_within_line = len(self._text), True

    def _passed(self) -> Iterator[ScriptSegment]:
        """What is read, without a statement under way that may be told once it is whole."""
        if self._has_begun and self._at - self._begins > STATEMENT_BYTES_MOST:
            self._is_told = False
        upto = self._begins if self._has_begun and self._is_told else self._at
        if upto > self._given:
            yield ScriptSegment(SegmentKind.OTHER, self._text[self._given : upto])
            self._given = upto

    def _step(self) -> Iterator[ScriptSegment]:
        """Reads a token, or what is left of one."""
        if self._state is ScannerState.CODE:
            yield from self._token()
        elif self._state is ScannerState.PLAIN:
            self._behind(self._seen.find(b"'", self._at, self._known), 1, is_doubled=True)
        elif self._state is ScannerState.IDENTIFIER:
            self._behind(self._seen.find(b'"', self._at, self._known), 1)
        elif self._state is ScannerState.DOLLAR:
            found = self._seen.find(self._delimiter, self._at, self._known)
            self._behind(found, len(self._delimiter))
        elif self._state is ScannerState.ESCAPED:
            found_quote = QUOTES.search(self._seen, self._at, self._known)
            if found_quote is not None and found_quote[0] == b"\\" and found_quote.start() < self._end:
                self._at = found_quote.start() + 2
            else:
                # Behind the end of a line another part of the same text may follow.
                at = found_quote.start() if found_quote else -1
                self._continues = self._behind(at, 1, is_doubled=True)
        elif self._state is ScannerState.BLOCK:
            self._block()
        else:
            end = ENDS["comment" if self._state is ScannerState.COMMENT else "command"]
            found_end = end.search(self._seen, self._at, self._known)
            self._behind(found_end.start() if found_end else -1, 0)

    def _behind(self, found: int, size: int, is_doubled: bool = False) -> bool:
        """Goes behind what ends a state, or to the end of the line where that does not come before. Returns
        whether the state has ended."""
        if not 0 <= found < self._end:
            self._at = self._end
        elif is_doubled and self._seen[found + 1 : found + 2] == b"'":
            self._at = found + 2
        else:
            self._at, self._state = found + size, ScannerState.CODE
        return self._state is ScannerState.CODE

    def _block(self) -> None:
        """Comments of this kind lie within each other."""
        found = BLOCKS.search(self._seen, self._at, self._known)
        if found is None or found.start() >= self._end:
            self._at = self._end
            return
        self._at = found.end()
        self._depth += 1 if found[0] == b"/*" else -1
        if not self._depth:
            self._state = ScannerState.CODE

    def _token(self) -> Iterator[ScriptSegment]:
        if not self._continues and self._first not in WORDS_MATTER:
            run = RUN.match(self._seen, self._at, self._known)
            if run is not None and run.end() <= self._end:
                self._at, self._before = run.end(), b""
                return
        found = TOKEN.match(self._seen, self._at)
        assert found is not None and found.lastgroup is not None
        kind, begins, self._at = found.lastgroup, self._at, found.end()
        if kind == "space":
            self._goes_on |= b"\n" in found[0] or b"\r" in found[0]
        elif kind == "comment":
            self._state = ScannerState.COMMENT
        elif kind == "block":
            self._state, self._depth = ScannerState.BLOCK, 1
        elif kind == "command":
            yield from self._command(begins)
        else:
            if not self._has_begun:
                self._has_begun, self._begins = True, begins
            self._of_statement(kind, found[0])
            if kind == "end" and not self._parentheses and not self._bodies:
                yield from self._statement()

    def _of_statement(self, kind: str, token: bytes) -> None:
        """What a token means for the statement that it belongs to."""
        if kind == "quote":
            is_escaped = not self._has_plain_strings or (self._continues and self._goes_on)
            kind = "escaped" if is_escaped else "plain"
        self._continues = self._goes_on = False
        if kind in BEGUN:
            self._state = BEGUN[kind]
        elif kind == "dollar":
            self._state, self._delimiter = ScannerState.DOLLAR, token
        elif kind == "opened":
            self._parentheses += 1
        elif kind == "closed":
            self._parentheses = max(self._parentheses - 1, 0)
        elif kind == "word":
            self._word(token.lower())
        elif kind == "forced" and token == b"\\;":
            self._first, self._letters = b"", ""
        self._before = token.lower() if kind == "word" else b""

    def _word(self, word: bytes) -> None:
        self._first = self._first or word
        if self._first == b"copy" and self._before == b"from" and word in (b"stdin", b"stdout"):
            self._copying += not self._parentheses
        if len(self._letters) < len(ROUTINE[-1]):
            known = word in (b"create", b"or", b"replace", b"function", b"procedure")
            self._letters += word[:1].decode() if known else "-"
        if self._letters.startswith(ROUTINE) and not self._parentheses:
            if word == b"begin" or (word == b"case" and self._bodies):
                self._bodies += 1
            elif word == b"end":
                self._bodies = max(self._bodies - 1, 0)

    def _statement(self) -> Iterator[ScriptSegment]:
        """The statement that has ended, and what went before it."""
        self._copies += self._copying
        if self._is_told:
            if self._begins > self._given:
                yield ScriptSegment(SegmentKind.OTHER, self._text[self._given : self._begins])
            text = self._text[self._begins : self._at]
            self._given = self._at
            self._obey(text)
            yield ScriptSegment(SegmentKind.STATEMENT, text)
        self._end_statement()

    def _end_statement(self) -> None:
        self._has_begun, self._is_told, self._begins = False, True, 0
        self._parentheses = self._bodies = self._copying = 0
        self._first, self._letters, self._before = b"", "", b""

    def _obey(self, statement: bytes) -> None:
        """Follows settings by which psql reads what comes next."""
        found = SET.fullmatch(statement)
        if found is None:
            return
        name, names, value = (found[1] or b"").lower(), found[2], found[3].lower()
        if name == b"standard_conforming_strings":
            self._has_plain_strings = value not in OFF
        elif name or names:
            self._pairs = IN_PAIRS.get(re.sub(rb"[^a-z0-9]", b"", value))
            self._see()

    def _command(self, begins: int) -> Iterator[ScriptSegment]:
        """A command goes to the end of its line. Within a statement it is passed on with that."""
        self._state = ScannerState.COMMAND
        newline = self._seen.find(b"\n", begins, self._known)
        is_whole = newline >= 0 or self._known == self._end
        if self._has_begun or not is_whole or begins != self._line:
            self._is_told = False
            return
        if begins > self._given:
            yield ScriptSegment(SegmentKind.OTHER, self._text[self._given : begins])
        self._at, self._state = (newline if newline >= 0 else self._end), ScannerState.CODE
        self._given = self._at
        yield ScriptSegment(SegmentKind.COMMAND, self._text[begins : self._at])
