"""Entries of PostgreSQL's log, as Python hands them to the driver, which cuts texts, CSV and JSON itself
(`crates/sql_log`), and makes statements of all entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from dbdyno.sql_logs.postgresql.prefix import LINE, inferred, only_reading
from dbdyno.sql_logs.seen import LogReading

Lines = Iterable[tuple[int, str]]


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


JSON_BEGINS = '{"timestamp":'


def json_begins(line: str) -> bool:
    """Whether this is an entry."""
    return line.startswith(JSON_BEGINS) and '"error_severity":' in line


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that has each name once: pieces of two have some twice."""
    told = dict(pairs)
    if len(told) < len(pairs):
        raise ValueError
    return told


def of_json(text: str) -> dict[str, Any] | None:
    """An object; None for what is none."""
    try:
        told = json.loads(text, strict=False, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
