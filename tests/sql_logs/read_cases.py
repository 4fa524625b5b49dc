"""What the tests of read share with others."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.sql_logs.formats import AS_TOLD, LogFormat
from dbdyno.sql_logs.seen import LogReading, SeenStatement


@dataclass(frozen=True)
class Given:
    """A log of which the statements are given."""

    kind: LogFormat
    statements: list[SeenStatement]
    reading: LogReading = AS_TOLD


STATEMENTS = """\
query,calls,total_exec_time,rows
"SELECT a FROM t
WHERE b = $1 AND c = $2",300,1500.5,300
COMMIT,10,1.0,0
"UPDATE t SET a = $1",100,500,100
"""
