"""The kinds of files that Dyno reads statements from, what a log does not tell of a statement, and how a
server is made to tell it.

PostgreSQL's view pg_stat_statements comes as CSV: statements with `$1` where values stood, how often each was
called, and how long all calls took. `datname` names the database of each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.sql_logs import lines as of_files
from dbdyno.sql_logs import wrapped
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.groups import Group, Grouping, Traffic
from dbdyno.sql_logs.postgresql import entries
from dbdyno.sql_logs.postgresql.prefix import prefix_pattern
from dbdyno.sql_logs.seen import LogClock, LogReading, SeenStatement

TIMES = ("total_exec_time", "total_time")
"""The column with the milliseconds of all calls: of PostgreSQL 13 and later, and of earlier versions."""
DATABASES = ("datname", "database")
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""
VIEW_HOW = (
    'psql --csv -c "SELECT query, calls, total_exec_time, datname FROM pg_stat_statements'
    ' JOIN pg_database ON pg_database.oid = dbid" > FILE'
)
HIDDEN = "<insufficient privilege>"
"""Stands for the statements of other users where one may not read them."""


def view_begins(line: str) -> bool:
    """Whether this is the head of such a table."""
    return {"query", "calls"} <= {*_names(line.split(","))}


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


@dataclass(frozen=True)
class _Head:
    """Where each column stands; None for one that is not there."""

    names: list[str]

    def _place(self, *names: str) -> int | None:
        return next((self.names.index(name) for name in names if name in self.names), None)

    def seen(self, line: int, row: list[str]) -> SeenStatement | None:
        """A row's statement; None for one that was never called. Raises IndexError or ValueError."""
        took, named = self._place(*TIMES), self._place(*DATABASES)
        took_s = None if took is None else float(row[took]) / 1000
        times, text = int(row[self.names.index("calls")]), row[self.names.index("query")].strip()
        if times <= 0 or not (took_s is None or 0 <= took_s < float("inf")):
            return None
        if text in ("", HIDDEN):
            rest = "statement of another user" if text else "statement whose text is lost"
            return SeenStatement("", line, took_s, times, rest)
        return SeenStatement(text, line, took_s, times, database="" if named is None else row[named])


class StatementsView:
    """Reads tables of the view."""

    takes_bytes = False

    def __init__(self, reading: LogReading) -> None:
        """Takes what is known of every kind of file; nothing of it matters here."""

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[SeenStatement]:
        """What one file tells."""
        return statements_of_view(lines)

    def ended(self) -> Iterator[SeenStatement]:
        """Nothing goes on from file to file."""
        yield from ()

    def group(self, file: Iterable[Any], grouping: Grouping) -> None:
        """Hands over what one file tells."""
        grouping.take(statements_of_view(file))

    def group_rest(self, grouping: Grouping) -> None:
        """Nothing goes on from file to file."""


def statements_of_view(lines: Iterable[tuple[int, str]]) -> Iterator[SeenStatement]:
    """A row each. Raises UserError with the line of one that is not what it should be."""
    rows = _rows(lines)
    head = _Head(_names(next(rows)[1]))
    for line, row in rows:
        if not row:
            continue
        try:
            seen = head.seen(line, row)
        except (IndexError, ValueError):
            raise UserError(f"line {line}: this is no row of {', '.join(head.names)}", VIEW_HOW) from None
        if seen:
            yield seen


def _rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Each row, with the line on which it begins."""
    csv.field_size_limit(FIELD_CHARACTERS_MOST)
    rows, line = csv.reader(text if text.endswith("\n") else f"{text}\n" for _, text in lines), 1
    try:
        for row in rows:
            yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise UserError(f"line {line}: this is no row of CSV: {error}", VIEW_HOW) from None


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
    """So many lines at a time. A piece of a file stands alone, because as many of them are the whole file."""
    rest = iter(each)
    for first in rest:
        yield [first] if isinstance(first, bytes) else [first, *islice(rest, BATCH - 1)]


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


def _of_form(form: str) -> Callable[[LogReading], LogReader]:
    return lambda reading: DriverReader(form, reading)


PREFIX = "log_line_prefix = '%m [%p] %q%u@%d '; --prefix names the one of the log"
FORMATS = (
    LogFormat(
        "pg_stat_statements",
        Dialect.POSTGRESQL,
        view_begins,
        StatementsView,
        for_statements=VIEW_HOW,
        for_times=VIEW_HOW,
        for_values=f"give the server's log in its place: {LOGGED}; {TOLD}",
        for_databases=VIEW_HOW,
        in_head=True,
    ),
    _postgresql("PostgreSQL log as JSON", entries.json_begins, _of_form("json")),
    _postgresql("PostgreSQL log of CloudNativePG", wrapped.cluster_begins, _of_form("cluster")),
    _postgresql("PostgreSQL log as CSV", _driver.csv_log_begins, _of_form("csv")),
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


SLOW_LEAST_S = 0.05
"""Of a log in which no statement was faster than this, the server probably left the faster ones out."""


@dataclass(frozen=True)
class Lack:
    """Something that is missing, and how to get it."""

    what: str
    remedy: str


def lacks_of(group: Group, traffic: Traffic) -> tuple[Lack, ...]:
    """What is missing of the statements of a digest."""
    told = _format(traffic)
    found = [
        (group.cut, "the end of its text", "give the log as a whole, with the part that follows"),
        (group.unknown > 0, f"the values of $1 and its like{_of(group.unknown, group)}", told.for_values),
        (group.untimed > 0, f"its time{_of(group.untimed, group)}", told.for_times),
        (not group.database, "its database", told.for_databases),
    ]
    return tuple(Lack(what, remedy) for is_so, what, remedy in found if is_so)


def lacks_of_all(traffic: Traffic) -> tuple[Lack, ...]:
    """What is missing of the log itself."""
    if traffic.least_s is None or traffic.least_s < SLOW_LEAST_S:
        return ()
    what = (
        f"faster statements, it seems: none took less than {traffic.least_s * 1000:,.0f} ms, so the shares"
        " are those of slow statements alone"
    )
    return (Lack(what, _format(traffic).for_statements),)


def _of(count: int, group: Group) -> str:
    return "" if count == group.count else f" ({count:,} of {group.count:,} times)"


def _format(traffic: Traffic) -> LogFormat:
    return next(each for each in FORMATS if each.name == traffic.kind)
