"""PostgreSQL's view pg_stat_statements as CSV: statements with `$1` where values stood, how often each was
called, and how long all calls took.

    psql --csv -c "SELECT query, calls, total_exec_time FROM pg_stat_statements" > statements.csv
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from dbdyno.errors import UserError
from dbdyno.traffic.seen import Seen

TIMES = ("total_exec_time", "total_time")
"""The column with the milliseconds of all calls: of PostgreSQL 13 and later, and of earlier versions."""
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""
HOW = 'psql --csv -c "SELECT query, calls, total_exec_time FROM pg_stat_statements" > FILE'


def begins(line: str) -> bool:
    """Whether this is the head of such a table."""
    return {"query", "calls"} <= set(line.lower().replace('"', "").split(","))


def statements(path: Path) -> Iterator[Seen]:
    """A row each. Raises UserError with the line of one that is not what it should be."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = _rows(path, file)
        head = [name.strip().lower() for name in next(rows)[1]]
        query, calls = head.index("query"), head.index("calls")
        took = next((head.index(name) for name in TIMES if name in head), None)
        for line, row in rows:
            try:
                took_s = None if took is None else float(row[took]) / 1000
                times, text = int(row[calls]), row[query].strip()
            except (IndexError, ValueError):
                raise UserError(f"{path}, line {line}: this is no row of {', '.join(head)}", HOW) from None
            if text and times > 0:
                yield Seen(text, line, took_s, times)


def _rows(path: Path, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Each row, with the line on which it begins."""
    csv.field_size_limit(FIELD_CHARACTERS_MOST)
    rows, line = csv.reader(file), 1
    try:
        for row in rows:
            yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {line}: this is no row of CSV: {error}", HOW) from None
