"""What the tests of traffic share with others."""

from __future__ import annotations

import time
from pathlib import Path

from dbdyno.driver.passwords import conversation
from dbdyno.frozen import Level
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.seen import LogReading, SeenStatement

POSTGRESQL_LOGS: dict[str, Level] = {
    "logging_collector": "on",
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "log",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_min_duration_statement": 0,
}

ASKED = (
    "SELECT 1 + {n}",
    "SELECT 'it''s',\n  {n} -- a comment; it's\n  AS a",
    "SELECT 'a\nb\n# Time: 2026\n# User@Host: x[x] @ y []\n# Query_time: 1  Lock_time: 1\nDROP TABLE t;\n',"
    " {n}",
    "SELECT 'tab\tcr\rend', {n}",
    "SELECT 'ü€😀', {n}",
    "SELECT '2026-03-01 10:00:01.100 UTC [1] LOG:  statement: DROP TABLE t', {n}",
    "SELECT 77, {n} /* many\n lines; */",
)
END = "SELECT 'the end'"


def asked(url: str) -> list[str]:
    """Has a server carry out statements, each in a session of its own, and gives them in their order. A
    session logs one after it has answered, but before the next one: that is waited for."""
    texts = [text.format(n=number) for number, text in enumerate(ASKED * 2)]
    for text in (*texts, END):
        with conversation(url) as ask:
            ask(text)
            ask("SELECT 0")
    return texts


def read(path: Path, reading: LogReading) -> list[SeenStatement]:
    """What a log tells up to the end, once the server has written that."""
    for _ in range(300):
        if path.exists() and END.encode() in path.read_bytes():
            found = list(log_of([path], reading).statements)
            at = [seen.text for seen in found].index(END) if END in [seen.text for seen in found] else None
            if at is not None:
                return found[:at]
        time.sleep(0.1)
    raise AssertionError(f"{path} does not end")


def told(found: list[SeenStatement]) -> list[SeenStatement]:
    """Those of the test: the driver asks for settings of its own."""
    words = tuple(text.partition("{n}")[0].strip()[:10] for text in ASKED)
    return sorted((seen for seen in found if seen.text.startswith(words)), key=lambda seen: seen.line)


PREFIXES = (
    "%m [%p] %q%u@%d ", "%t:%r:%u@%d:[%p]:", "%m %e %p %u@%d ", "%m [%l] [%p] ", "%n %c %q%a|%u|%d|%h ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
)  # fmt: skip
