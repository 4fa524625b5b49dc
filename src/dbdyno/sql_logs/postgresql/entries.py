"""Entries of PostgreSQL's log: as text with a prefix, as CSV, and as JSON.

The driver cuts texts (`crates/sql_log`), and makes statements of all entries. A row of CSV ends with its
line, outside of quotes, and an object of JSON with its brace.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from dbdyno.sql_logs import lines as of_files
from dbdyno.sql_logs.postgresql.prefix import LINE, SEVERITY, ZONE, inferred, only_reading
from dbdyno.sql_logs.seen import CUT_OFF, NO_ENTRY, TOO_LONG, LogClock, LogReading

Lines = Iterable[tuple[int, str]]
MOMENT = re.compile(rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{{1,6}})?)(?: ?({ZONE}))?")
ROW = re.compile(
    rf'{MOMENT.pattern},(?:"(?:[^"]|"")*")?,(?:"(?:[^"]|"")*")?,\d*,(?:"(?:[^"]|"")*")?,[0-9a-f.]*,\d*,'
)
SEVERE = re.compile(SEVERITY)
DATABASE, SESSION, LABEL, MESSAGE, DETAIL, CONTEXT, LEAST = 2, 5, 11, 13, 14, 18, 23
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""


class LogEntry(NamedTuple):
    """What the server wrote at a time, as the driver takes it. `at_s` is when it wrote, in seconds since
    1970; `whole` says that this is a whole second. `lacks` says why an entry cannot be read; its message is
    empty then."""

    line: int
    severity: str
    message: str
    detail: str = ""
    context: str = ""
    session: str = ""
    database: str = ""
    at_s: float | None = None
    whole: bool = False
    lacks: str = ""


class Entries(Protocol):
    """Cuts a log of PostgreSQL into entries."""

    def read(self, lines: Lines) -> Iterator[LogEntry]: ...


def text_begins(line: str) -> bool:
    """Whether an entry begins here, whatever its prefix."""
    return not line.startswith(("\t", "{")) and LINE.match(line) is not None


def learnt(lines: Lines, reading: LogReading) -> LogReading:
    """With the prefix that a text's lines tell. Raises UserError where they can be read in two ways."""
    if reading.prefix is not None:
        return reading
    prefix = only_reading(inferred(lines))
    said = f"the log is read with the prefix that its lines tell: --prefix '{prefix}'"
    return LogReading(prefix, reading.zone, reading.whole, (said,), reading.key)


LINE_COSTS = 64
"""Bytes that a line of an entry takes beside its text."""


class Body(list[str]):
    """The lines of one entry. `over` tells that there was no room for all of them."""

    def __init__(self, *first: str) -> None:
        super().__init__(first)
        self._room = of_files.LINE_BYTES_MOST - sum(map(len, first))
        self.over = self._room < 0

    def append(self, line: str) -> None:
        self._room -= len(line) + LINE_COSTS
        if self._room < 0:
            self.over = True
        else:
            super().append(line)


def csv_begins(line: str) -> bool:
    """Whether a row begins here."""
    return ROW.match(line) is not None


class CsvEntries:
    """Reads CSV. A row that is cut off is an entry that lacks its end."""

    def __init__(self, reading: LogReading) -> None:
        self._clock = LogClock(reading.zone)

    def read(self, lines: Lines) -> Iterator[LogEntry]:
        """The entries of one file."""
        csv.field_size_limit(FIELD_CHARACTERS_MOST)
        start, rows, odd = 0, Body(), False
        for number, line in lines:
            begins = csv_begins(line)
            if rows and (begins or not odd):
                yield self._entry(start, rows)
                rows, odd = Body(), False
            if not rows and not begins:
                if not start or line.strip():
                    yield LogEntry(number, "", "", lacks=CUT_OFF if not start else NO_ENTRY)
                    start = start or number
                continue
            if not rows:
                start, rows = number, Body(line)
            else:
                rows.append(line)
            odd ^= line.count('"') % 2 == 1
        if rows:
            yield self._entry(start, rows)

    def _entry(self, start: int, rows: Body) -> LogEntry:
        text = "".join(rows)
        if rows.over:
            return LogEntry(start, "", "", lacks=TOO_LONG)
        try:
            [row] = csv.reader(rows, strict=True)
        except (csv.Error, ValueError):
            row = []
        moment = MOMENT.match(text)
        if not text.endswith("\n") or len(row) < LEAST or not SEVERE.fullmatch(row[LABEL]) or moment is None:
            return LogEntry(start, "", "", lacks=CUT_OFF)
        return LogEntry(
            start,
            row[LABEL],
            row[MESSAGE],
            row[DETAIL],
            row[CONTEXT],
            row[SESSION],
            row[DATABASE],
            self._clock.at_s(moment[1], moment[2] or ""),
        )


JSON_BEGINS = '{"timestamp":'


def json_begins(line: str) -> bool:
    """Whether this is an entry."""
    return line.startswith(JSON_BEGINS) and '"error_severity":' in line


def of_json(text: str) -> dict[str, Any] | None:
    """An object; None for what is none."""
    try:
        told = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


class JsonEntries:
    """Reads JSON, an object a line."""

    def __init__(self, reading: LogReading) -> None:
        self._clock = LogClock(reading.zone)

    def read(self, lines: Lines) -> Iterator[LogEntry]:
        """The entries of one file."""
        for number, line in lines:
            if line.strip():
                told = of_json(line)
                yield LogEntry(number, "", "", lacks=CUT_OFF) if told is None else self.entry(number, told)

    def entry(
        self, number: int, told: dict[str, Any], moment: str = "timestamp", database: str = "dbname"
    ) -> LogEntry:
        """Of an object whose time and database have these names."""

        def text(key: str) -> str:
            value = told.get(key, "")
            return value if isinstance(value, str) else ""

        found = MOMENT.match(text(moment))
        return LogEntry(
            number,
            text("error_severity"),
            text("message"),
            text("detail"),
            text("context"),
            text("session_id"),
            text(database),
            self._clock.at_s(found[1], found[2] or "") if found else None,
            lacks="" if text("error_severity") else NO_ENTRY,
        )
