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
DIGESTS = (
    "SCHEMA_NAME\tDIGEST_TEXT\tCOUNT_STAR\tSUM_TIMER_WAIT\tFIRST_SEEN\tLAST_SEEN\n"
    "shop\tSELECT COUNT ( * ) FROM `t` WHERE `b` = ? AND `c` = ?\t300\t1500500000000\t"
    "2026-11-01 00:00:00.000000\t2026-11-03 12:00:00.000000\n"
    "shop\tSELECT `a` FROM `t` WHERE `b` IN (...)\t20\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
    "shop\tEXECUTE SELECT `a` FROM `t` WHERE `b` = ?\t40\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
    "shop\tPREPARE SELECT `a` FROM `t` WHERE `b` = ?\t2\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
    "shop\tINSERT INTO `t` VALUES ( ?, ... , NOW )\t3\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
    "NULL\tNULL\t7\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
    "shop\tSELECT `a` FROM ...\t5\t1000000\t2026-11-01 06:00:00\t2026-11-02 00:00:00\n"
)
"""As `mysql --batch` writes what MariaDB keeps."""
DIGESTS_AS_JSON = """\
[
{"DIGEST_TEXT": "SELECT `a` FROM `t` WHERE `b` IN (...)", "COUNT_STAR": 20, "SUM_TIMER_WAIT": 2000000000000,
 "QUERY_SAMPLE_TEXT": "SELECT a FROM t WHERE b IN (3, 4)"},
{"DIGEST_TEXT": "SELECT `a` FROM `t` WHERE `b` = ?", "COUNT_STAR": 9, "QUERY_SAMPLE_TEXT": "SELECT a FR..."}
]
"""
"""With a sample of each statement, as MySQL keeps it."""
VIEW_AS_JSON = """\
[{"query":"SELECT a FROM t WHERE b = $1","calls":40,"total_exec_time":80.0,
"stats_since":"2026-11-01T00:00:00+00:00","now":"2026-11-05T00:00:00+00:00"},
 {"query":"SELECT 1","calls":2,"total_exec_time":1.0}]
"""
