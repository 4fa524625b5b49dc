"""The statements of a log by digest: how often each was seen, for how long, and with which values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dbdyno.sql_logs.digest import PLACE, Dialect, Kind, Shaped, Shaper, Token
from dbdyno.sql_logs.draw import Draw, Range, Values
from dbdyno.sql_logs.keys import ranges_in
from dbdyno.sql_logs.seen import Seen, is_text

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
SHAPES_MOST = 32
"""Of a digest; further ones are counted, and their values are not kept."""
VALUES_MOST = 200
"""A statement with more values than this makes no script that can be read."""
SESSIONS_MOST = 100_000
"""Further connections are not counted."""
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
    values: tuple[Values, ...]
    dialect: Dialect
    ranges: tuple[Range, ...] = ()
    count: int = 0
    new: dict[int, Draw] = field(default_factory=dict)
    may_meet: tuple[str, ...] = ()

    def kept(self, place: int) -> bool:
        """Whether the value of a place stays in the text."""
        if self.first[place].kind is Kind.PARAMETER or place in self.new:
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
        if self.first[place].kind is not Kind.TEXT:
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
    def changes_binary(self) -> bool:
        """Whether a binary value, which no script can draw, changed in some place."""
        return any(values.binaries and not self.kept(place) for place, values in enumerate(self.values))


@dataclass
class Group:
    """The statements of one digest in one database. `took_s` is None where the log does not tell of times;
    `line` and `file` are where the first one stood. Of `cut` ones a part of the text is missing. `refused`
    is why the driver takes no script of it."""

    digest: str
    verb: str
    line: int
    file: str = ""
    database: str = ""
    cut: bool = False
    count: int = 0
    untimed: int = 0
    unknown: int = 0
    took_s: float | None = None
    refused: str = ""
    shapes: dict[str, Shape] = field(default_factory=dict)

    def add(self, seen: Seen, taken: Shaped, dialect: Dialect) -> None:
        self.count += seen.times
        self.unknown += seen.times * any(token.kind is Kind.PARAMETER for token in taken.values)
        if seen.took_s is None:
            self.untimed += seen.times
        else:
            self.took_s = (self.took_s or 0.0) + seen.took_s
        if len(taken.values) > VALUES_MOST or (taken.shape not in self.shapes and self._full):
            return
        shape = self.shapes.get(taken.shape)
        if shape is None:
            empty = tuple(Values() for _ in taken.values)
            ranges = tuple(Range(*ends) for ends in ranges_in(taken.pieces))
            shape = Shape(taken.pieces, taken.values, empty, dialect, ranges)
            self.shapes[taken.shape] = shape
        shape.count += seen.times
        for values, token in zip(shape.values, taken.values, strict=True):
            values.add(token, dialect, seen.bound)
        for ends in shape.ranges:
            ends.add(taken.values, dialect, seen.bound)

    @property
    def _full(self) -> bool:
        return len(self.shapes) >= SHAPES_MOST

    @property
    def shape(self) -> Shape:
        """The most frequent one."""
        return max(self.shapes.values(), key=lambda shape: shape.count)

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
            return f"it holds more than {VALUES_MOST} values"
        if any(PLACE in piece for piece in self.shape.pieces):
            return "it holds a ? outside of quotes"
        if self.refused:
            return f"its script is refused: {self.refused}"
        if self.shape.changes_syntax:
            return "a value changes that must stand in its text"
        if self.shape.changes_binary:
            return "it holds a binary value that changes"
        if not all(map(is_text, (*self.shape.pieces, *(token.text for token in self.shape.first)))):
            return "it holds bytes that are no UTF-8"
        if any(";" in piece for piece in self.shape.pieces):
            return "it is several statements in one"
        return ""


@dataclass
class Traffic:
    """All that a log tells. `rest` counts what is no statement, and `databases` the statements of each one,
    the most frequent first; "" stands for what the log does not tell. `least_s` is what the fastest took.

    `sessions` counts connections, and `span_s` is from the first begin to the last; both are 0 where the log
    does not tell. `engine` is the server's name, as far as the log tells which one wrote it.
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


@dataclass
class _Meter:
    """What is measured over all statements of a log."""

    least_s: float | None = None
    sessions: set[tuple[str, str]] = field(default_factory=set)
    ends_s: tuple[float, float] | None = None

    def add(self, seen: Seen) -> None:
        if seen.took_s is not None:
            each_s = seen.took_s / seen.times
            self.least_s = each_s if self.least_s is None else min(self.least_s, each_s)
        if seen.session and len(self.sessions) < SESSIONS_MOST:
            self.sessions.add((seen.file, seen.session))
        if seen.at_s is not None:
            first, last = self.ends_s or (seen.at_s, seen.at_s)
            self.ends_s = min(first, seen.at_s), max(last, seen.at_s)

    @property
    def span_s(self) -> float:
        return self.ends_s[1] - self.ends_s[0] if self.ends_s else 0.0


def grouped(kind: str, statements: Iterable[Seen], dialect: Dialect, database: str = "") -> Traffic:
    """The groups of a log, the one that took the longest first; without times the most frequent. With a
    `database`, the groups are those of its statements alone."""
    groups: dict[tuple[str, str], Group] = {}
    rest, databases, meter = Counter[str](), Counter[str](), _Meter()
    shaper = Shaper(dialect)
    for seen in statements:
        if seen.rest:
            rest[seen.rest] += seen.times
            continue
        databases[seen.database] += seen.times
        if database and seen.database != database:
            continue
        meter.add(seen)
        taken = shaper.of(seen.text)
        name = (seen.database, taken.digest)
        group = groups.get(name)
        if group is None:
            group = groups[name] = Group(
                taken.digest, taken.verb, seen.line, seen.file, seen.database, taken.cut
            )
        group.add(seen, taken, dialect)
    ordered = sorted(groups.values(), key=lambda group: (-(group.took_s or 0.0), -group.count, group.line))
    counted = dict(databases.most_common())
    return Traffic(kind, dialect, ordered, rest, counted, meter.least_s, len(meter.sessions), meter.span_s)
