"""The kinds of files that Dyno reads statements from, and how a server is made to tell what one lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from dbdyno.sql_logs import mysql_logs, pg_stat_statements, wrapped
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.postgresql import entries
from dbdyno.sql_logs.postgresql.messages import Messages
from dbdyno.sql_logs.seen import Reading, Seen

Lines = Iterable[tuple[int, str]]


class Reader(Protocol):
    """Reads the files of one log, one after another, and carries over what stays from file to file."""

    def read(self, lines: Lines) -> Iterator[Seen]:
        """What a file tells."""

    def ended(self) -> Iterator[Seen]:
        """What is left when all files are read."""


AS_TOLD = Reading()


def _as_it_is(_lines: Lines, reading: Reading) -> Reading:
    return reading


@dataclass(frozen=True)
class Format:
    """A kind of file. `in_head` says that only its first line tells. `learn` adds what all of a file's lines
    say of its form. What `for_...` names are instructions: for statements at all, and for their times, their
    values and their databases."""

    name: str
    dialect: Dialect
    begins: Callable[[str], bool]
    reader: Callable[[Reading], Reader]
    for_statements: str
    for_times: str = ""
    for_values: str = ""
    for_databases: str = ""
    in_head: bool = False
    learn: Callable[[Lines, Reading], Reading] = _as_it_is

    def statements(self, lines: list[tuple[int, str]], reading: Reading = AS_TOLD) -> Iterator[Seen]:
        """What the lines of one file tell."""
        reader = self.reader(self.learn(lines, reading))
        yield from reader.read(lines)
        yield from reader.ended()


SLOW = "SET GLOBAL slow_query_log = ON, GLOBAL long_query_time = 0"
LOGGED = "ALTER SYSTEM SET log_min_duration_statement = 0, then SELECT pg_reload_conf()"
TOLD = "log_parameter_max_length = -1 (PostgreSQL 13 and later)"
PLANNED = "auto_explain.log_parameter_max_length = -1 (PostgreSQL 16 and later)"


class _Entries(Protocol):
    """Cuts a log of PostgreSQL into entries."""

    def read(self, lines: Lines) -> Iterator[entries.Entry]: ...


class _PostgresqlLog:
    """The statements that entries tell of."""

    def __init__(self, cut: _Entries) -> None:
        self._entries, self._messages = cut, Messages()

    def read(self, lines: Lines) -> Iterator[Seen]:
        for entry in self._entries.read(lines):
            yield from self._messages.take(entry)

    def ended(self) -> Iterator[Seen]:
        yield from self._messages.ended()


def _postgresql(
    name: str,
    begins: Callable[[str], bool],
    cut: Callable[[Reading], _Entries],
    prefix: str = "",
    learn: Callable[[Lines, Reading], Reading] = _as_it_is,
) -> Format:
    return Format(
        name,
        Dialect.POSTGRESQL,
        begins,
        lambda reading: _PostgresqlLog(cut(reading)),
        for_statements=f"{LOGGED}; messages must be in English: lc_messages = 'C'",
        for_times=f"{LOGGED}{prefix and ', and %p in log_line_prefix'}",
        for_values=f"{TOLD}; of plans: {PLANNED}",
        for_databases=prefix,
        learn=learn,
    )


PREFIX = "log_line_prefix = '%m [%p] %q%u@%d '; --prefix names the one of the log"
FORMATS = (
    Format(
        "pg_stat_statements",
        Dialect.POSTGRESQL,
        pg_stat_statements.begins,
        pg_stat_statements.View,
        for_statements=pg_stat_statements.HOW,
        for_times=pg_stat_statements.HOW,
        for_values=f"give the server's log in its place: {LOGGED}; {TOLD}",
        for_databases=pg_stat_statements.HOW,
        in_head=True,
    ),
    _postgresql("PostgreSQL log as JSON", entries.json_begins, entries.JsonEntries),
    _postgresql("PostgreSQL log of CloudNativePG", wrapped.cluster_begins, wrapped.ClusterEntries),
    _postgresql("PostgreSQL log as CSV", entries.csv_begins, entries.CsvEntries),
    _postgresql(
        "PostgreSQL log in syslog",
        wrapped.syslog_begins,
        wrapped.SyslogEntries,
        PREFIX,
        lambda lines, reading: entries.learnt(wrapped.texts_of(lines), reading),
    ),
    Format(
        "slow log",
        Dialect.MYSQL,
        mysql_logs.slow_begins,
        mysql_logs.SlowLog,
        for_statements=SLOW,
        for_databases="FLUSH SLOW LOGS, after which the log names it again",
    ),
    _postgresql("PostgreSQL log", entries.text_begins, entries.TextEntries, PREFIX, entries.learnt),
    Format(
        "general log",
        Dialect.MYSQL,
        mysql_logs.general_begins,
        mysql_logs.GeneralLog,
        for_statements="SET GLOBAL general_log = ON",
        for_times=f"give the slow log in its place: {SLOW}",
        for_databases="a log that holds the session's Connect: log for longer, or connect the clients anew",
    ),
)


MARIADB = re.compile(r".*, Version: \S*-MariaDB|# Thread_id: \d+  Schema: .*  QC_hit: ")
MYSQL = re.compile(
    r".*, Version: (?!\S*-MariaDB).* started with:|(# Time: )?\d{4}-\d\d-\d\dT\d\d:|# User@Host: .*  Id: "
)


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
    """The kind of a file that begins with these lines, the one that most of them tell, because a statement
    can hold lines of any kind; None for one that Dyno does not know."""
    votes = {each.name: sum(map(each.begins, head[:1] if each.in_head else head)) for each in FORMATS}
    found = max(FORMATS, key=lambda each: (each.in_head and votes[each.name], votes[each.name]))
    return found if votes[found.name] else None
