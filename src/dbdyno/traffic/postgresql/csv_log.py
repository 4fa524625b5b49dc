"""PostgreSQL's log with `log_destination = csvlog`. An entry is a row, which can hold line breaks."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from dbdyno.traffic.lines import Body
from dbdyno.traffic.postgresql.entry import MOMENT, SEVERITY, Entry, moment_s

ROW = re.compile(rf'{MOMENT.pattern},(?:"|,|[^,"]*,)')
SEVERE = re.compile(SEVERITY)
DATABASE, SESSION, LABEL, MESSAGE, DETAIL, CONTEXT, LEAST = 2, 5, 11, 13, 14, 18, 19
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""


def begins(line: str) -> bool:
    """Whether a row begins here."""
    return ROW.match(line) is not None and line.count(",") >= 6


def entries(lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    """The entries of a log. A row that is cut off is an entry without a message."""
    start, rows = 0, Body()
    for number, line in lines:
        if begins(line):
            if rows:
                yield _entry(start, rows)
            start, rows = number, Body(line)
        elif rows:
            rows.append(line)
    if rows:
        yield _entry(start, rows)


def _entry(start: int, rows: Body) -> Entry:
    csv.field_size_limit(FIELD_CHARACTERS_MOST)
    text = "\n".join(rows)
    try:
        row = next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        row = []
    moment = MOMENT.match(text)
    if len(row) < LEAST or not SEVERE.fullmatch(row[LABEL]) or moment is None:
        return Entry(start, "", "")
    return Entry(
        start,
        row[LABEL],
        row[MESSAGE],
        row[DETAIL],
        row[CONTEXT],
        row[SESSION],
        row[DATABASE],
        moment_s(moment),
    )
