"""PostgreSQL's view pg_stat_statements as CSV: statements with `$1` where values stood, how often each was
called, and how long all calls took.

    psql --csv -c "SELECT query, calls, total_exec_time FROM pg_stat_statements" > statements.csv
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.traffic.seen import Seen

TIMES = ("total_exec_time", "total_time")
"""The column with the milliseconds of all calls: of PostgreSQL 13 and later, and of earlier versions."""
HOW = 'psql --csv -c "SELECT query, calls, total_exec_time FROM pg_stat_statements" > FILE'


def begins(line: str) -> bool:
    """Whether this is the head of such a table."""
    return {"query", "calls"} <= set(line.lower().replace('"', "").split(","))


def statements(path: Path) -> Iterator[Seen]:
    """A row each. Raises UserError with the line of one that is not what it should be."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        head = [name.strip().lower() for name in next(rows)]
        query, calls = head.index("query"), head.index("calls")
        took = next((head.index(name) for name in TIMES if name in head), None)
        line = rows.line_num + 1
        for row in rows:
            try:
                took_s = None if took is None else float(row[took]) / 1000
                times, text = int(row[calls]), row[query].strip()
            except (IndexError, ValueError):
                raise UserError(f"{path}, line {line}: this is no row of {', '.join(head)}", HOW) from None
            if text and times > 0:
                yield Seen(text, line, took_s, times)
            line = rows.line_num + 1
