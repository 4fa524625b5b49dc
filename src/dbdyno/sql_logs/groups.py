"""The statements of a log by digest: how often each was seen, for how long, and with which values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from dbdyno.driver import _driver
from dbdyno.sql_logs.digest import PLACE, Dialect, Token, TokenKind, values_told
from dbdyno.sql_logs.draw import Draw, PlacesTogether, SeenValues
from dbdyno.sql_logs.keys import together_in
from dbdyno.sql_logs.seen import SeenStatement, is_text

READS = frozenset({"SELECT", "WITH", "VALUES"})
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "CALL"})
WRITES_WITHIN = re.compile(r'(?<![\w.@"`])(?:INTO|DELETE|(?<!\bFOR )(?<!\bKEY )UPDATE)\b', re.IGNORECASE)
"""Words of a SELECT or WITH that writes: `WITH ... DELETE`, `SELECT ... INTO`; `FOR UPDATE` only locks."""
TRANSACTION = frozenset(
    {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "END", "ABORT", "XA"}
)
SESSION = frozenset(
    {"SET", "USE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "RESET", "DISCARD", "FLUSH", "KILL"}
)
SCHEMA = frozenset(
    {"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "ANALYZE", "OPTIMIZE", "VACUUM", "GRANT"}
)
LENGTHS_MOST = 8
"""So many lengths of its lists stand for all of a digest, so that a reader can still read the script."""
KEPT_BEHIND = frozenset({"FROM", "AS", "BY", "ESCAPE", "COLLATE"})
"""Behind these words a value is part of the syntax, so no parameter can stand there."""
TYPED = {"DATE": "DATE", "TIME": "TIME(6)", "TIMESTAMP": "DATETIME(6)"}
"""What a text behind the word is cast to in MySQL's language. In PostgreSQL's it is the word, and `INTERVAL`
is one too."""


@dataclass
class Shape:
    """Statements that differ in their values alone. `values` has one entry for each place, with the first
    value that stood there in `first`. Places that are keys of new rows draw what is `new`; `may_meet` names
    the keys of which rows may exist already."""

    pieces: tuple[str, ...]
    first: tuple[Token, ...]
    values: tuple[SeenValues, ...]
    dialect: Dialect
    together: tuple[PlacesTogether, ...] = ()
    count: int = 0
    new: dict[int, Draw] = field(default_factory=dict)
    may_meet: tuple[str, ...] = ()

    @classmethod
    def of(cls, told: Any, dialect: Dialect) -> Shape:
        """A shape as the driver tells it."""
        pieces, first, values, together, count = told
        places = tuple(map(SeenValues.of, values))
        return cls(
            tuple(pieces), values_told(first), places, dialect, tuple(map(PlacesTogether.of, together)), count
        )

    def kept(self, place: int) -> bool:
        """Whether the value of a place stays in the text."""
        if self.first[place].kind is TokenKind.PARAMETER or place in self.new:
            return False
        return self.values[place].constant or self._is_syntax(place)

    def _is_syntax(self, place: int) -> bool:
        before = self.pieces[place]
        touches = before[-1:].isalnum() or before[-1:] in ("_", ".", "$")
        return touches or self._word(place) in KEPT_BEHIND

    def _word(self, place: int) -> str:
        found = re.search(r"(\w+)\s*$", self.pieces[place])
        return found[1].upper() if found else ""

    def cast(self, place: int) -> tuple[str, str]:
        """The word behind which a value is of a type, and that type in a cast; empty where there is none."""
        word = self._word(place)
        if self.first[place].kind is not TokenKind.TEXT:
            return "", ""
        if self.dialect is Dialect.MYSQL:
            return (word, TYPED[word]) if word in TYPED else ("", "")
        return (word, word) if word in (*TYPED, "INTERVAL") else ("", "")

    @property
    def changes_syntax(self) -> bool:
        """Whether a value changed that must stand in the text."""
        return any(
            self.kept(place) and not values.constant and not values.unknown
            for place, values in enumerate(self.values)
        )

    @property
    def why_not(self) -> str:
        """Why no script can hold such statements; empty where one can."""
        if any(PLACE in piece for piece in self.pieces):
            return "it holds a ? outside of quotes"
        if self.changes_syntax:
            return "a value changes that must stand in its text"
        if self.changes_binary:
            return "it holds a binary value that changes"
        if not all(map(is_text, (*self.pieces, *(token.text for token in self.first)))):
            return "it holds bytes that are no UTF-8"
        if any(";" in piece for piece in self.pieces):
            return "it is several statements in one"
        return ""

    @property
    def changes_binary(self) -> bool:
        """Whether a binary value, which no script can draw, changed in some place."""
        return any(values.binaries > 0 and not self.kept(place) for place, values in enumerate(self.values))


@dataclass(frozen=True)
class RowsEach:
    """Rows that a statement sent, changed and read on average, None where the log does not tell."""

    sent: float | None = None
    changed: float | None = None
    read: float | None = None


@dataclass
class Group:
    """The statements of one digest in one database. `took_s` is None where the log does not tell of times;
    `line` and `file` are where the first one stood. Of `cut` ones a part of the text is missing. `refused` is
    why the driver takes no script of it."""

    digest: str
    verb: str
    line: int
    file: str
    database: str
    cut: bool
    count: int
    untimed: int
    unknown: int
    took_s: float | None
    rows: RowsEach
    shapes: tuple[Shape, ...]
    refused: str = ""

    @classmethod
    def of(cls, told: Any, dialect: Dialect, files: Sequence[str]) -> Group:
        """A group as the driver tells it."""
        (
            (digest, verb, line, file),
            (database, cut, count, untimed, unknown),
            took_s,
            rows,
            shapes,
        ) = told
        name = files[file] if file < len(files) else ""
        made = tuple(Shape.of(each, dialect) for each in shapes)
        return cls(
            digest, verb, line, name, database, cut, count, untimed, unknown, took_s, RowsEach(*rows), made
        )

    @property
    def shape(self) -> Shape:
        """The most frequent one."""
        return max(self.shapes, key=lambda shape: shape.count)

    @property
    def longest(self) -> Shape:
        """The shape with the longest lists of those that stand for all."""
        return self.lengths[-1][0]

    @cached_property
    def lengths(self) -> tuple[tuple[Shape, int], ...]:
        """The shapes that stand for all of them, the shortest first, with how many statements each stands
        for: a digest's shapes differ in the lengths of their lists."""
        fit = sorted((shape for shape in self.shapes if not shape.why_not), key=lambda one: len(one.values))
        total, before = sum(shape.count for shape in fit), 0
        bins: dict[int, list[Shape]] = {}
        for shape in fit:
            place = len(bins) if len(fit) <= LENGTHS_MOST else before * LENGTHS_MOST // total
            bins.setdefault(place, []).append(shape)
            before += shape.count
        return tuple((_middle(each), sum(shape.count for shape in each)) for each in bins.values())

    @property
    def writes(self) -> bool:
        return self.verb in WRITES or (self.verb in READS and bool(WRITES_WITHIN.search(self.digest)))

    @property
    def why_not(self) -> str:
        """Why no script can hold such statements; empty where one can."""
        if self.cut:
            return "its text is cut off"
        for verbs, reason in (
            (TRANSACTION, "it begins or ends a transaction"),
            (SESSION, "it is about the session or the server"),
            (SCHEMA, "it changes the schema"),
        ):
            if self.verb in verbs:
                return reason
        if self.verb not in READS | WRITES:
            return "it is no SELECT, INSERT, UPDATE, DELETE, REPLACE, MERGE or CALL"
        if not self.shapes:
            return "it is one of more digests than are told apart"
        if why_not := self.shape.why_not:
            return why_not
        return f"its script is refused: {self.refused}" if self.refused else ""


def _middle(shapes: Sequence[Shape]) -> Shape:
    """The one whose length is nearest to the mean of all statements."""
    count = sum(shape.count for shape in shapes)
    mean = sum(len(shape.values) * shape.count for shape in shapes) / count
    return min(shapes, key=lambda shape: abs(len(shape.values) - mean))


@dataclass
class Traffic:
    """All that a log tells. `rest` counts what is no statement, and `databases` the statements of each one,
    the most frequent first; "" stands for what the log does not tell. `least_s` is what the fastest took.

    `sessions` counts connections, and `span_s` is from the first begin to the last; both are 0 where the log
    does not tell. `engine` is the server's name, as far as the log tells which one wrote it. In an
    `anonymous` one values are replaced.
    """

    kind: str
    dialect: Dialect
    groups: list[Group]
    rest: Counter[str]
    databases: dict[str, int] = field(default_factory=dict)
    least_s: float | None = None
    sessions: int = 0
    span_s: float = 0.0
    engine: str = ""
    notes: tuple[str, ...] = ()
    anonymous: bool = False

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def at_a_time(self) -> float | None:
        """How many statements ran at a time on average; None where the log does not tell."""
        return self.took_s / self.span_s if self.took_s is not None and self.span_s > 0 else None

    @property
    def took_s(self) -> float | None:
        """None where the log does not tell of times."""
        times = [group.took_s for group in self.groups if group.took_s is not None]
        return sum(times) if times else None


BATCH = 4096
"""So many statements that Python read are handed over at a time."""


class Grouping:
    """Takes in the statements of a log. With a `database`, the groups are those of its statements alone. With
    a `key`, values are replaced by its hash."""

    def __init__(
        self, kind: str, dialect: Dialect, database: str = "", files: Sequence[str] = (), key: bytes = b""
    ) -> None:
        self._kind, self._dialect, self._files = kind, dialect, files
        self.groups = _driver.LogGroups(dialect is Dialect.MYSQL, database, together_in, key)

    def take(self, statements: Iterable[SeenStatement]) -> None:
        """Takes statements that Python read."""
        rest = iter(statements)
        while batch := list(islice(rest, BATCH)):
            self.groups.take(batch)

    def traffic(self) -> Traffic:
        """What was taken, the group that took the longest first; without times the most frequent."""
        told, rest, databases, least_s, sessions, ends_s = self.groups.finish()
        groups = [Group.of(each, self._dialect, self._files) for each in told]
        return Traffic(
            self._kind,
            self._dialect,
            sorted(groups, key=lambda group: (-(group.took_s or 0.0), -group.count, group.line)),
            Counter(dict(rest)),
            dict(Counter(dict(databases)).most_common()),
            least_s,
            sessions,
            ends_s[1] - ends_s[0] if ends_s else 0.0,
        )


def grouped(kind: str, statements: Iterable[SeenStatement], dialect: Dialect, database: str = "") -> Traffic:
    """The groups of statements that Python read."""
    grouping = Grouping(kind, dialect, database)
    grouping.take(statements)
    return grouping.traffic()
