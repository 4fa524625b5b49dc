"""PostgreSQL's log with `log_destination = jsonlog` (15 and later): an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dbdyno.traffic.postgresql.entry import MOMENT, Entry, moment_s

BEGINS = '{"timestamp":'


def begins(line: str) -> bool:
    """Whether this is an entry."""
    return line.startswith(BEGINS) and '"error_severity":' in line


def entries(lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    """The entries of a log. A line that is cut off is an entry without a message."""
    for number, line in lines:
        try:
            told = json.loads(line, strict=False)
        except (ValueError, RecursionError):
            told = None
        yield _entry(number, told) if isinstance(told, dict) else Entry(number, "", "")


def _entry(number: int, told: dict[str, Any]) -> Entry:
    def text(key: str) -> str:
        value = told.get(key, "")
        return value if isinstance(value, str) else ""

    moment = MOMENT.match(text("timestamp"))
    return Entry(
        number,
        text("error_severity"),
        text("message"),
        text("detail"),
        text("context"),
        text("session_id"),
        text("dbname"),
        moment_s(moment) if moment else None,
    )
