"""Values that no log tells, drawn from the data: which column the value of a place is compared with, and how
a script asks for the values of that column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from dbdyno.sql_logs.digest import PLACE

NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
COLUMN = (
    r"\b(?:WHERE|AND|OR|NOT|ON|HAVING)\s*\(*\s*"
    rf"(?:(?:{NAME}\s*\.\s*)?(?P<table>{NAME})\s*\.\s*)?(?P<column>{NAME})\s*"
)
COMPARED = re.compile(COLUMN + r"(?:=|<>|!=|<=|>=|<|>|(?:NOT\s+)?IN\s*\()\s*$", re.IGNORECASE)
RANGE = re.compile(COLUMN + r"(?:NOT\s+)?BETWEEN\s*$", re.IGNORECASE)
PART = re.compile(r"\b(LIMIT|OFFSET)\s*$", re.IGNORECASE)
NO_ALIAS = (
    "WHERE|ON|SET|JOIN|INNER|LEFT|RIGHT|FULL|CROSS|NATURAL|USING|ORDER|GROUP|HAVING|LIMIT|OFFSET|FETCH|FOR"
    "|UNION|EXCEPT|INTERSECT|RETURNING|TABLESAMPLE|WINDOW|AS"
)
TABLE = re.compile(
    rf"\b(?:FROM|JOIN|UPDATE|USING)\s+(?:ONLY\s+)?(?P<table>(?:{NAME}\s*\.\s*)?{NAME})(?P<call>\s*\()?"
    rf"(?:\s+(?:AS\s+)?(?!(?:{NO_ALIAS})\b)(?P<alias>{NAME}))?(?P<more>\s*,)?",
    re.IGNORECASE,
)
NEEDLESS = re.compile(r'"([a-z_][a-z0-9_]*)"')
"""A name in quotes that means the same without them."""
VALUES_MOST = 100_000
"""So many values of a column are drawn among at most, evenly spaced in its order: all clients share them."""


@dataclass(frozen=True)
class SqlColumn:
    """A column of a table, both as the statement writes them. A script asks for its values as a `list`."""

    table: str
    column: str
    capture: ClassVar[str] = "list"

    @property
    def words(self) -> str:
        return NEEDLESS.sub(r"\1", f"{self.table}.{self.column}").replace("`", "")

    @property
    def name(self) -> str:
        """What the list of its values is called in a script: a name of its own for each column."""
        plain = re.sub(r"\W+", "_", self.own, flags=re.ASCII).lower()
        if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*__[a-z][a-z0-9]*(_[a-z0-9]+)*", self.own):
            return plain
        return f"list_{plain.strip('_')}_{crc32(self.words.encode()):08x}"

    @property
    def own(self) -> str:
        return NEEDLESS.sub(r"\1", f"{self.table}__{self.column}").replace("`", "")

    @property
    def sql(self) -> str:
        """Asks for its values in their order, so that the same data give the same draws."""
        every = f"SELECT DISTINCT {self.column} FROM {self.table} WHERE {self.column} IS NOT NULL"
        placed = f"row_number() OVER (ORDER BY {self.column}) AS dyno_place, count(*) OVER () AS dyno_known"
        # Not every server's division of whole numbers gives a whole one.
        each = f"(dyno_known - dyno_known % {VALUES_MOST}) / {VALUES_MOST} + 1"
        return (
            f"SELECT {self.column} FROM (SELECT {self.column}, {placed} FROM ({every}) AS dyno_every)"
            f" AS dyno_placed WHERE dyno_place % ({each}) = 0 ORDER BY {self.column}"
        )


@dataclass(frozen=True)
class Beyond:
    """The number after the largest one of a column."""

    column: SqlColumn
    capture: ClassVar[str] = "into"

    @property
    def name(self) -> str:
        return f"{self.column.name}__next"

    @property
    def sql(self) -> str:
        return f"SELECT coalesce(max({self.column.column}), 0) + 1 FROM {self.column.table}"


def column_of(pieces: Sequence[str], place: int) -> SqlColumn | None:
    """What the value of a place is compared with; None where that is no column of a table, or unclear."""
    while place > 0 and pieces[place].strip() == ",":
        place -= 1
        if place == 0 or pieces[place].strip() != ",":
            return _found(COMPARED, pieces, place) if re.search(r"\($", pieces[place].rstrip()) else None
    if is_upper_end(pieces, place):
        return range_of(pieces, place - 1)
    return range_of(pieces, place) or _found(COMPARED, pieces, place)


def range_of(pieces: Sequence[str], place: int) -> SqlColumn | None:
    """The column of `BETWEEN`, where the value of this place is the lower end and another value the upper."""
    upper = place + 1 < len(pieces) - 1 and pieces[place + 1].strip().upper() == "AND"
    return _found(RANGE, pieces, place) if upper else None


def is_upper_end(pieces: Sequence[str], place: int) -> bool:
    return place > 0 and pieces[place].strip().upper() == "AND" and bool(RANGE.search(pieces[place - 1]))


_TYPE = r"\s*(?:\b(?:DATE|TIME|TIMESTAMP)\s*)?\Z"
LOWER = re.compile(r"(?P<column>[\w.\"`]+)\s*>=?" + _TYPE, re.IGNORECASE)
UPPER = re.compile(r"(?P<column>[\w.\"`]+)\s*<=?" + _TYPE, re.IGNORECASE)
BETWEEN = re.compile(r"\bBETWEEN" + _TYPE, re.IGNORECASE)
BOTH, UPPER_END = re.compile(r"\s*AND\s", re.IGNORECASE), re.compile(r"\s*AND" + _TYPE, re.IGNORECASE)


def ranges_in(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """The places of the lower and the upper end of each range: `BETWEEN`, or two comparisons of one column
    side by side."""
    found = list[tuple[int, int]]()
    place = 0
    while place + 2 < len(pieces):
        before, between = pieces[place], pieces[place + 1]
        ends = None
        if BETWEEN.search(before) and UPPER_END.match(between):
            ends = (place, place + 1)
        elif BOTH.match(between):
            for one, other, order in ((LOWER, UPPER, (0, 1)), (UPPER, LOWER, (1, 0))):
                first, second = one.search(before), other.search(between)
                if first and second and first["column"] == second["column"]:
                    ends = (place + order[0], place + order[1])
        if ends:
            found.append(ends)
        place += 2 if ends else 1
    return found


EQUAL = re.compile(r"(?P<column>[\w.\"`]+)\s*=" + _TYPE, re.IGNORECASE)
NEXT_EQUAL = re.compile(r"\s*AND\s+[\w.\"`]+\s*=" + _TYPE, re.IGNORECASE)
LIMIT, OFFSET = re.compile(r"\bLIMIT\s*\Z", re.IGNORECASE), re.compile(r"\s*(?:OFFSET|,)\s*\Z", re.IGNORECASE)
VALUES_BEGIN = re.compile(r"\bVALUES?\s*\(\s*\Z", re.IGNORECASE)
CELL, ROW = re.compile(r"\s*,\s*\Z"), re.compile(r"\s*\)\s*,\s*\(\s*\Z")


def together_in(pieces: Sequence[str]) -> list[tuple[bool, list[int]]]:
    """The places whose values belong together: the ends of a range, of which the distance counts; the parts
    of a key that are compared side by side; LIMIT and OFFSET; the cells of each row of an INSERT."""
    ranges = ranges_in(pieces)
    taken = {place for ends in ranges for place in ends}
    found = [(True, list(ends)) for ends in ranges]
    found += [(False, run) for run in _runs(pieces) if len(run) > 1 and not taken & {*run}]
    return found


def _runs(pieces: Sequence[str]) -> Iterator[list[int]]:
    """Places side by side that one row's values stand in."""
    run, kind = list[int](), ""
    for place in range(len(pieces) - 1):
        before = pieces[place]
        goes_on = {"key": NEXT_EQUAL, "part": OFFSET, "cell": CELL}.get(kind)
        if goes_on is not None and goes_on.fullmatch(before):
            run.append(place)
            continue
        yield run
        if kind == "cell" and ROW.fullmatch(before):
            run = [place]
            continue
        begins = {"key": EQUAL, "part": LIMIT, "cell": VALUES_BEGIN}
        kind = next((name for name, pattern in begins.items() if pattern.search(before)), "")
        run = [place] if kind else []
    yield run


def part_of(pieces: Sequence[str], place: int) -> str:
    """`LIMIT` or `OFFSET` where the value of a place is that of one; empty elsewhere."""
    found = PART.search(pieces[place])
    return found[1].upper() if found else ""


def _found(pattern: re.Pattern[str], pieces: Sequence[str], place: int) -> SqlColumn | None:
    found = pattern.search(pieces[place])
    if found is None or re.match(r"\s*WITH\b", pieces[0], re.IGNORECASE):
        return None
    table = _table(PLACE.join(pieces), found["table"])
    return SqlColumn(table, found["column"]) if table else None


def _table(statement: str, named: str | None) -> str:
    """The table that a column's prefix stands for; without a prefix, the only one. Empty where it is
    unclear."""
    tables: dict[str, str] = {}
    for found in TABLE.finditer(statement):
        own = found["alias"] or found["table"].rpartition(".")[2].strip()
        if found["call"] or tables.setdefault(own.lower(), found["table"]) != found["table"]:
            return ""
        if found["more"] and named is None:
            return ""
    if named is not None:
        return tables.get(named.lower(), "")
    return next(iter(tables.values())) if len(tables) == 1 else ""
