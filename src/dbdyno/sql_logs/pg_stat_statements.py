"""PostgreSQL's view pg_stat_statements as CSV: statements with `$1` where values stood, how often each was
called, and how long all calls took. `datname` names the database of each.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import UserError
from dbdyno.sql_logs.groups import Grouping
from dbdyno.sql_logs.seen import LogReading, SeenStatement

TIMES = ("total_exec_time", "total_time")
"""The column with the milliseconds of all calls: of PostgreSQL 13 and later, and of earlier versions."""
DATABASES = ("datname", "database")
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""
HOW = (
    'psql --csv -c "SELECT query, calls, total_exec_time, datname FROM pg_stat_statements'
    ' JOIN pg_database ON pg_database.oid = dbid" > FILE'
)
HIDDEN = "<insufficient privilege>"
"""Stands for the statements of other users where one may not read them."""


def begins(line: str) -> bool:
    """Whether this is the head of such a table."""
    return {"query", "calls"} <= {*_names(line.split(","))}


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


@dataclass(frozen=True)
class _Head:
    """Where each column stands; None for one that is not there."""

    names: list[str]

    def _place(self, *names: str) -> int | None:
        return next((self.names.index(name) for name in names if name in self.names), None)

    def seen(self, line: int, row: list[str]) -> SeenStatement | None:
        """A row's statement; None for one that was never called. Raises IndexError or ValueError."""
        took, named = self._place(*TIMES), self._place(*DATABASES)
        took_s = None if took is None else float(row[took]) / 1000
        times, text = int(row[self.names.index("calls")]), row[self.names.index("query")].strip()
        if times <= 0 or not (took_s is None or 0 <= took_s < float("inf")):
            return None
        if text in ("", HIDDEN):
            rest = "statement of another user" if text else "statement whose text is lost"
            return SeenStatement("", line, took_s, times, rest)
        return SeenStatement(text, line, took_s, times, database="" if named is None else row[named])


class View:
    """Reads tables of the view."""

    takes_bytes = False

    def __init__(self, reading: LogReading) -> None:
        """Takes what is known of every kind of file; nothing of it matters here."""

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[SeenStatement]:
        """What one file tells."""
        return statements(lines)

    def ended(self) -> Iterator[SeenStatement]:
        """Nothing goes on from file to file."""
        yield from ()

    def group(self, file: Iterable[Any], grouping: Grouping) -> None:
        """Hands over what one file tells."""
        grouping.take(statements(file))

    def group_rest(self, grouping: Grouping) -> None:
        """Nothing goes on from file to file."""


def statements(lines: Iterable[tuple[int, str]]) -> Iterator[SeenStatement]:
    """A row each. Raises UserError with the line of one that is not what it should be."""
    rows = _rows(lines)
    head = _Head(_names(next(rows)[1]))
    for line, row in rows:
        if not row:
            continue
        try:
            seen = head.seen(line, row)
        except (IndexError, ValueError):
            raise UserError(f"line {line}: this is no row of {', '.join(head.names)}", HOW) from None
        if seen:
            yield seen


def _rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Each row, with the line on which it begins."""
    csv.field_size_limit(FIELD_CHARACTERS_MOST)
    rows, line = csv.reader(text if text.endswith("\n") else f"{text}\n" for _, text in lines), 1
    try:
        for row in rows:
            yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise UserError(f"line {line}: this is no row of CSV: {error}", HOW) from None
