"""The statements of a log by digest: how often each was seen, for how long, and with which values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dbdyno.traffic.digest import PLACE, Shaped, shaped
from dbdyno.traffic.draw import Values
from dbdyno.traffic.seen import Seen
from dbdyno.traffic.tokens import Dialect, Kind, Token

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
KEPT_BEHIND = frozenset({"FROM", "DATE", "TIME", "TIMESTAMP", "INTERVAL", "AS", "BY", "ESCAPE", "COLLATE"})
"""Behind these words a value is part of the syntax, so no parameter can stand there."""


@dataclass
class Shape:
    """Statements that differ in their values alone. `values` has one entry for each place, with the first
    value that stood there in `first`."""

    pieces: tuple[str, ...]
    first: tuple[Token, ...]
    values: tuple[Values, ...]
    count: int = 0

    def kept(self, place: int) -> bool:
        """Whether the value of a place stays in the text."""
        if self.first[place].kind is Kind.PARAMETER:
            return False
        before = self.pieces[place]
        word = re.search(r"(\w+)\s*$", before)
        touches = before[-1:].isalnum() or before[-1:] in ("_", ".", "$")
        return self.values[place].constant or touches or bool(word and word[1].upper() in KEPT_BEHIND)

    @property
    def changes_binary(self) -> bool:
        """Whether a binary value, which no script can draw, changed in some place."""
        return any(values.binaries and not self.kept(place) for place, values in enumerate(self.values))


@dataclass
class Group:
    """The statements of one digest. `took_s` is None where the log does not tell of times; `line` is where
    the first one stood."""

    digest: str
    verb: str
    line: int
    count: int = 0
    took_s: float | None = None
    shapes: dict[str, Shape] = field(default_factory=dict)

    def add(self, seen: Seen, taken: Shaped, dialect: Dialect) -> None:
        self.count += seen.times
        if seen.took_s is not None:
            self.took_s = (self.took_s or 0.0) + seen.took_s
        if len(taken.values) > VALUES_MOST or (taken.shape not in self.shapes and self._full):
            return
        shape = self.shapes.setdefault(
            taken.shape, Shape(taken.pieces, taken.values, tuple(Values() for _ in taken.values))
        )
        shape.count += seen.times
        for values, token in zip(shape.values, taken.values, strict=True):
            values.add(token, dialect)

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
        if self.shape.changes_binary:
            return "it holds a binary value that changes"
        if any(";" in piece for piece in self.shape.pieces):
            return "it is several statements in one"
        return ""


@dataclass
class Traffic:
    """All that a log tells. `rest` counts what is no statement."""

    kind: str
    groups: list[Group]
    rest: Counter[str]

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def took_s(self) -> float | None:
        """None where the log does not tell of times."""
        times = [group.took_s for group in self.groups if group.took_s is not None]
        return sum(times) if times else None


def grouped(kind: str, statements: Iterable[Seen], dialect: Dialect) -> Traffic:
    """The groups of a log, the one that took the longest first; without times the most frequent."""
    groups: dict[str, Group] = {}
    rest: Counter[str] = Counter()
    for seen in statements:
        if seen.rest:
            rest[seen.rest] += seen.times
            continue
        taken = shaped(seen.text, dialect)
        group = groups.setdefault(taken.digest, Group(taken.digest, taken.verb, seen.line))
        group.add(seen, taken, dialect)
    ordered = sorted(groups.values(), key=lambda group: (-(group.took_s or 0.0), -group.count, group.line))
    return Traffic(kind, ordered, rest)
