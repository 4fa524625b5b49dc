"""The kinds of files that Dyno reads statements from, and how a server is made to tell what one lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from dbdyno.driver import _driver
from dbdyno.sql_logs import lines as of_files
from dbdyno.sql_logs import pg_stat_statements, wrapped
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.groups import Grouping
from dbdyno.sql_logs.postgresql import entries
from dbdyno.sql_logs.postgresql.prefix import prefix_pattern
from dbdyno.sql_logs.seen import LogClock, LogReading, SeenStatement

Lines = Iterable[tuple[int, str]]
BATCH = 4096
"""So many lines are handed over at a time."""


class LogReader(Protocol):
    """Reads the files of one log, one after another, and carries over what stays from file to file."""

    takes_bytes: bool

    def read(self, lines: Lines) -> Iterator[SeenStatement]:
        """What a file tells."""

    def ended(self) -> Iterator[SeenStatement]:
        """What is left when all files are read."""

    def group(self, file: Lines | Iterable[bytes], grouping: Grouping) -> None:
        """Hands over what a file tells, of which either lines are given or pieces of its bytes."""

    def group_rest(self, grouping: Grouping) -> None:
        """Hands over what is left when all files are read."""


class DriverReader:
    """Reads what the driver cuts into entries: the lines of a file or, with `cut`, what Python made of
    these."""

    takes_bytes: bool

    def __init__(
        self,
        form: str,
        reading: LogReading,
        prefix: str | None = None,
        cut: Callable[[Lines], Iterator[tuple[Any, ...]]] | None = None,
    ) -> None:
        lines = "" if prefix is None else prefix_pattern(prefix).pattern
        at_s = LogClock(reading.zone).at_s
        self._log = _driver.LogReader(form, lines, reading.whole, of_files.LINE_BYTES_MOST, at_s, reading.key)
        self._cut = cut
        self.takes_bytes = cut is None

    def read(self, lines: Lines) -> Iterator[SeenStatement]:
        """What a file tells."""
        for batch in _batches(lines if self._cut is None else self._cut(lines)):
            told = self._log.take(batch) if self._cut is None else self._log.parts(batch)
            yield from (SeenStatement(*each) for each in told)
        yield from (SeenStatement(*each) for each in self._log.end(False))

    def ended(self) -> Iterator[SeenStatement]:
        """What is left when all files are read."""
        yield from (SeenStatement(*each) for each in self._log.end(True))

    def group(self, file: Lines | Iterable[bytes], grouping: Grouping) -> None:
        """Hands over what a file tells, of which either lines are given or pieces of its bytes."""
        groups = grouping.groups
        for batch in _batches(file if self._cut is None else self._cut(file)):  # type: ignore[arg-type]
            if self._cut is not None:
                self._log.parts(batch, groups)
            elif isinstance(batch[0], bytes):
                for piece in batch:
                    self._log.feed(piece, groups)
            else:
                self._log.take(batch, groups)
        self._log.end(False, groups)

    def group_rest(self, grouping: Grouping) -> None:
        """Hands over what is left when all files are read."""
        self._log.end(True, grouping.groups)


def _batches(each: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(each)
    while batch := list(islice(rest, BATCH)):
        yield batch


AS_TOLD = LogReading()


def _as_it_is(_lines: Lines, reading: LogReading) -> LogReading:
    return reading


@dataclass(frozen=True)
class LogFormat:
    """A kind of file. `in_head` says that only its first line tells. `learn` adds what all of a file's lines
    say of its form. What `for_...` names are instructions: for statements at all, and for their times, their
    values and their databases."""

    name: str
    dialect: Dialect
    begins: Callable[[str], bool]
    reader: Callable[[LogReading], LogReader]
    for_statements: str
    for_times: str = ""
    for_values: str = ""
    for_databases: str = ""
    in_head: bool = False
    learn: Callable[[Lines, LogReading], LogReading] = _as_it_is

    def statements(
        self, lines: list[tuple[int, str]], reading: LogReading = AS_TOLD
    ) -> Iterator[SeenStatement]:
        """What the lines of one file tell."""
        reader = self.reader(self.learn(lines, reading))
        yield from reader.read(lines)
        yield from reader.ended()


SLOW = "SET GLOBAL slow_query_log = ON, GLOBAL long_query_time = 0"
LOGGED = "ALTER SYSTEM SET log_min_duration_statement = 0, then SELECT pg_reload_conf()"
TOLD = "log_parameter_max_length = -1 (PostgreSQL 13 and later)"
PLANNED = "auto_explain.log_parameter_max_length = -1 (PostgreSQL 16 and later)"


def _postgresql(
    name: str,
    begins: Callable[[str], bool],
    reader: Callable[[LogReading], LogReader],
    prefix: str = "",
    learn: Callable[[Lines, LogReading], LogReading] = _as_it_is,
) -> LogFormat:
    return LogFormat(
        name,
        Dialect.POSTGRESQL,
        begins,
        reader,
        for_statements=f"{LOGGED}; messages must be in English: lc_messages = 'C'",
        for_times=f"{LOGGED}{prefix and ', and %p in log_line_prefix'}",
        for_values=f"{TOLD}; of plans: {PLANNED}",
        for_databases=prefix,
        learn=learn,
    )


def _of_entries(cut: Callable[[LogReading], entries.Entries]) -> Callable[[LogReading], LogReader]:
    return lambda reading: DriverReader("entries", reading, cut=cut(reading).read)


PREFIX = "log_line_prefix = '%m [%p] %q%u@%d '; --prefix names the one of the log"
FORMATS = (
    LogFormat(
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
    _postgresql("PostgreSQL log as JSON", entries.json_begins, _of_entries(entries.JsonEntries)),
    _postgresql(
        "PostgreSQL log of CloudNativePG", wrapped.cluster_begins, _of_entries(wrapped.ClusterEntries)
    ),
    _postgresql("PostgreSQL log as CSV", entries.csv_begins, _of_entries(entries.CsvEntries)),
    _postgresql(
        "PostgreSQL log in syslog",
        wrapped.syslog_begins,
        lambda reading: DriverReader(
            "postgresql", reading, reading.prefix or "", wrapped.SyslogEntries(reading).read
        ),
        PREFIX,
        lambda lines, reading: entries.learnt(wrapped.texts_of(lines), reading),
    ),
    LogFormat(
        "slow log",
        Dialect.MYSQL,
        _driver.slow_log_begins,
        lambda reading: DriverReader("slow", reading),
        for_statements=SLOW,
        for_databases="FLUSH SLOW LOGS, after which the log names it again",
    ),
    _postgresql(
        "PostgreSQL log",
        entries.text_begins,
        lambda reading: DriverReader("postgresql", reading, reading.prefix or ""),
        PREFIX,
        entries.learnt,
    ),
    LogFormat(
        "general log",
        Dialect.MYSQL,
        _driver.general_log_begins,
        lambda reading: DriverReader("general", reading),
        for_statements="SET GLOBAL general_log = ON",
        for_times=f"give the slow log in its place: {SLOW}",
        for_databases="a log that holds the session's Connect: log for longer, or connect the clients anew",
    ),
)


MARIADB = re.compile(r".*, Version: \S*-MariaDB|# Thread_id: \d+  Schema: .*  QC_hit: ")
MYSQL = re.compile(
    r".*, Version: (?!\S*-MariaDB).* started with:|(# Time: )?\d{4}-\d\d-\d\dT\d\d:|# User@Host: .*  Id: "
)


def engine_of_log(kind: LogFormat, head: list[str]) -> str:
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


def format_of(head: list[str]) -> LogFormat | None:
    """The kind of a file that begins with these lines, the one that most of them tell, because a statement
    can hold lines of any kind; None for one that Dyno does not know."""
    votes = {each.name: sum(map(each.begins, head[:1] if each.in_head else head)) for each in FORMATS}
    found = max(FORMATS, key=lambda each: (each.in_head and votes[each.name], votes[each.name]))
    return found if votes[found.name] else None
