"""An entry of PostgreSQL's log, whichever its format."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.traffic.clock import iso_s

MOMENT = re.compile(
    r"(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)"
    r"(?: ?(?P<zone>[+-]\d\d(?::?\d\d)?|[A-Z]{2,5}\b))?"
)
SEVERITY = "LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?"
NONE = "[unknown]"
"""Stands in a log for a database or a user that a session has not told yet."""


@dataclass(frozen=True)
class Entry:
    """What the server wrote at a time. `at_s` is when it wrote, in seconds since 1970."""

    line: int
    severity: str
    message: str
    detail: str = ""
    context: str = ""
    session: str = ""
    database: str = ""
    at_s: float | None = None


def moment_s(found: re.Match[str]) -> float | None:
    """Seconds since 1970 of a moment; one in a zone with a name counts as UTC."""
    zone = found["zone"] or ""
    offset = zone if zone[:1] in ("+", "-") else ""
    return iso_s(f"{found['moment']}{offset}")
