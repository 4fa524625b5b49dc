"""The kinds of files that Dyno reads statements from, and how a server is made to tell what one lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dbdyno.traffic import general_log, pg_stat_statements, slow_log
from dbdyno.traffic.postgresql import csv_log, json_log, messages, stderr_log
from dbdyno.traffic.postgresql.entry import Entry
from dbdyno.traffic.seen import Seen
from dbdyno.traffic.tokens import Dialect

Lines = Iterable[tuple[int, str]]


@dataclass(frozen=True)
class Format:
    """A kind of file. `in_head` says that only its first line tells. What `for_...` names are instructions:
    for statements at all, and for their times, their values and their databases."""

    name: str
    dialect: Dialect
    begins: Callable[[str], bool]
    statements: Callable[[Lines], Iterator[Seen]]
    for_statements: str
    for_times: str = ""
    for_values: str = ""
    for_databases: str = ""
    in_head: bool = False


SLOW = "SET GLOBAL slow_query_log = ON, GLOBAL long_query_time = 0"
LOGGED = "ALTER SYSTEM SET log_min_duration_statement = 0, then SELECT pg_reload_conf()"
TOLD = "log_parameter_max_length = -1 (PostgreSQL 13 and later)"
PLANNED = "auto_explain.log_parameter_max_length = -1 (PostgreSQL 16 and later)"


def _postgresql(
    name: str,
    begins: Callable[[str], bool],
    entries: Callable[[Lines], Iterator[Entry]],
    prefix: str,
) -> Format:
    return Format(
        name,
        Dialect.POSTGRESQL,
        begins,
        lambda lines: messages.statements(entries(lines)),
        for_statements=f"{LOGGED}; messages must be in English: lc_messages = 'C'",
        for_times=f"{LOGGED}{prefix and ', and %p in log_line_prefix'}",
        for_values=f"{TOLD}; of plans: {PLANNED}",
        for_databases=prefix,
    )


FORMATS = (
    Format(
        "pg_stat_statements",
        Dialect.POSTGRESQL,
        pg_stat_statements.begins,
        pg_stat_statements.statements,
        for_statements=pg_stat_statements.HOW,
        for_times=pg_stat_statements.HOW,
        for_values=f"give the server's log in its place: {LOGGED}; {TOLD}",
        for_databases=pg_stat_statements.HOW,
        in_head=True,
    ),
    _postgresql("PostgreSQL log as JSON", json_log.begins, json_log.entries, ""),
    _postgresql("PostgreSQL log as CSV", csv_log.begins, csv_log.entries, ""),
    Format(
        "slow log",
        Dialect.MYSQL,
        slow_log.begins,
        slow_log.statements,
        for_statements=SLOW,
        for_databases="FLUSH SLOW LOGS, after which the log names it again",
    ),
    _postgresql(
        "PostgreSQL log",
        stderr_log.begins,
        stderr_log.entries,
        "log_line_prefix = '%m [%p] %q%u@%d '",
    ),
    Format(
        "general log",
        Dialect.MYSQL,
        general_log.begins,
        general_log.statements,
        for_statements="SET GLOBAL general_log = ON",
        for_times=f"give the slow log in its place: {SLOW}",
        for_databases="a log that holds the session's Connect: log for longer, or connect the clients anew",
    ),
)


MARIADB = re.compile(r".*-MariaDB|(# Time: )?\d{6} {1,2}\d{1,2}:\d\d:\d\d")
MYSQL = re.compile(r"(# Time: )?\d{4}-\d\d-\d\dT\d\d:|.*mysqld, Version: ")


def engine_of(kind: Format, head: list[str]) -> str:
    """The name of the engine whose server wrote a log that begins with these lines; empty where it does not
    tell."""
    if kind.dialect is Dialect.POSTGRESQL:
        return "postgresql"
    for line in head:
        if MARIADB.match(line):
            return "mariadb"
        if MYSQL.match(line):
            return "mysql"
    return ""


def format_of(head: list[str]) -> Format | None:
    """The kind of a file that begins with these lines; None for one that Dyno does not know."""
    for each in FORMATS:
        if any(map(each.begins, head[:1] if each.in_head else head)):
            return each
    return None
