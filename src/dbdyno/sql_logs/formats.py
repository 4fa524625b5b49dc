"""The kinds of files that Dyno reads statements from, what a log does not tell of a statement, and how a
server is made to tell it.

What a server counts by itself comes as CSV, between tabs or as JSON: PostgreSQL's view pg_stat_statements has
statements with `$1` where values stood, and performance_schema's digests have `?` there. Both tell how often
each was called, and how long all calls took. Values come from samples, or from whoever fills them in.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, Protocol

from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.sql_logs import lines as of_files
from dbdyno.sql_logs import wrapped
from dbdyno.sql_logs.digest import PLACE, Dialect, tokens
from dbdyno.sql_logs.groups import Group, Grouping, Traffic
from dbdyno.sql_logs.postgresql import entries
from dbdyno.sql_logs.postgresql.prefix import prefix_pattern
from dbdyno.sql_logs.seen import CUT_OFF, LogClock, LogReading, SeenStatement

Lines = Iterable[tuple[int, str]]
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""
HIDDEN = "<insufficient privilege>"
"""Stands for the statements of other users where one may not read them."""
CUT = "..."
"""Ends a statement that a server keeps the beginning of."""
LIST = re.compile(r"[(,] ?\.\.\.(?= ?[,)])")
"""Stands for values, however many they were."""
EXECUTE = "EXECUTE "
"""Stands before a statement that MySQL had prepared."""
BATCH_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}
DAY_S = 86_400.0

Row = Mapping[str, str]
"""A row of a view by the names of its columns, in small letters. NULL is empty."""


@dataclass(frozen=True)
class ServerView:
    """A table that a server keeps of its statements. Of the columns under `times` the first one that is there
    tells how long all calls took, and how much of a second one of it is. `first` and `last` are moments
    between which the calls were counted. `sample` is a column with one of the statements as it was sent."""

    text: str
    calls: str
    times: Mapping[str, float]
    databases: tuple[str, ...]
    how: str
    first: tuple[str, ...]
    last: tuple[str, ...]
    sample: str = ""

    def begins(self, head: str) -> bool:
        """Whether a file with this beginning holds such a table, as CSV, between tabs, or as JSON."""
        line = head.partition("\n")[0]
        told = re.findall(r'"(\w+)"\s*:', head) if line.lstrip()[:1] in ("[", "{") else _cells(line)
        return {self.text, self.calls} <= {name.lower() for name in told}

    def seen(self, line: int, row: Row) -> SeenStatement | None:
        """A row's statement; None for one that was never called. Raises KeyError or ValueError."""
        times, took_s = int(row[self.calls]), self._took_s(row)
        if times <= 0 or not (took_s is None or 0 <= took_s < float("inf")):
            return None
        text = self._statement(row)
        if why := _why_no_text(text):
            return SeenStatement("", line, took_s, times, why)
        database = next((row[name] for name in self.databases if name in row), "")
        return SeenStatement(text, line, took_s, times, database=database)

    def _took_s(self, row: Row) -> float | None:
        return next((float(row[name]) * unit for name, unit in self.times.items() if name in row), None)

    def _statement(self, row: Row) -> str:
        """The one that was sent, where the server kept it whole; else the one without its values."""
        text = row[self.text].strip()
        if not self.sample:
            return text
        sent = row.get(self.sample, "").strip().removeprefix(EXECUTE)
        told = sent and PLACE not in sent and not sent.endswith(CUT)
        return sent if told else _with_places(text.removeprefix(EXECUTE))

    def days(self, rows: Iterable[Row]) -> float | None:
        """How long the calls were counted; None where the table does not tell."""
        firsts, lasts = [], []
        for row in rows:
            firsts += [row[name] for name in self.first if row.get(name)]
            lasts += [row[name] for name in self.last if row.get(name)]
        try:
            spent = max(map(datetime.fromisoformat, lasts)) - min(map(datetime.fromisoformat, firsts))
        except (ValueError, TypeError):
            return None
        return spent.total_seconds() / DAY_S if spent.total_seconds() > 0 else None


def _why_no_text(text: str) -> str:
    if text in ("", "NULL"):
        return "statement whose text is lost"
    if text == HIDDEN:
        return "statement of another user"
    if text.endswith(CUT):
        return CUT_OFF
    if text.startswith("PREPARE "):
        return "statement that was prepared, and is counted where it was executed"
    return "statement with a list of values that is not told" if LIST.search(text) else ""


def _with_places(text: str) -> str:
    """A digest of MySQL with `$1` where values stood. It has blanks between all words, and a function's name
    must have none before its parenthesis."""
    found, number = list[str](), 0
    for token in tokens(text, Dialect.MYSQL):
        number += token.text == PLACE
        if token.text == "(" and len(found) > 1 and found[-1].isspace() and found[-2][-1:].isalnum():
            found.pop()
        found.append(f"${number}" if token.text == PLACE else token.text)
    return "".join(found)


PG_VIEW = ServerView(
    text="query",
    calls="calls",
    times={"total_exec_time": 0.001, "total_time": 0.001},
    databases=("datname", "database"),
    how='psql --csv -c "SELECT query, calls, total_exec_time, datname FROM pg_stat_statements'
    ' JOIN pg_database ON pg_database.oid = dbid" > FILE',
    first=("stats_since", "stats_reset"),
    last=("now", "current_timestamp"),
)
DIGEST_VIEW = ServerView(
    text="digest_text",
    calls="count_star",
    times={"sum_timer_wait": 1e-12},
    databases=("schema_name",),
    how='mysql --batch -e "SELECT * FROM performance_schema.events_statements_summary_by_digest" > FILE',
    first=("first_seen",),
    last=("last_seen",),
    sample="query_sample_text",
)


class ViewReader:
    """Reads tables of a view."""

    takes_bytes = False

    def __init__(self, view: ServerView, reading: LogReading) -> None:
        """Takes what is known of every kind of file; nothing of it matters here."""
        self._view = view

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[SeenStatement]:
        """A row each. Raises UserError with the line of one that is not what it should be."""
        for line, row in _rows_of(lines, self._view):
            try:
                seen = self._view.seen(line, row)
            except (KeyError, ValueError):
                raise UserError(f"line {line}: this is no row of {', '.join(row)}", self._view.how) from None
            if seen:
                yield seen

    def ended(self) -> Iterator[SeenStatement]:
        """Nothing goes on from file to file."""
        yield from ()

    def group(self, file: Iterable[Any], grouping: Grouping) -> None:
        """Hands over what one file tells."""
        grouping.take(self.read(file))

    def group_rest(self, grouping: Grouping) -> None:
        """Nothing goes on from file to file."""


def _rows_of(lines: Iterable[tuple[int, str]], view: ServerView) -> Iterator[tuple[int, Row]]:
    """Each row, with the line on which it begins."""
    rest = iter(lines)
    number, head = next(rest)
    if head.lstrip()[:1] in ("[", "{"):
        yield from _of_json("".join((head, *(text for _, text in rest))), view)
        return
    tabs = "\t" in head
    cells = _between_tabs(rest) if tabs else _of_csv(chain([(number, head)], rest), view)
    names = _cells(head) if tabs else [name.strip().lower() for name in next(cells, (0, [""]))[1]]
    for line, row in cells:
        if row:
            yield line, dict(zip(names, row, strict=False))


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in re.split(r"[,\t]", line)]


def _between_tabs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """As the client of MySQL writes a table that nobody looks at."""
    for line, text in lines:
        cells = text.rstrip("\r\n").split("\t")
        plain = [
            re.sub(r"\\(.)", lambda found: BATCH_ESCAPES.get(found[1], found[1]), cell) for cell in cells
        ]
        yield line, ["" if cell == "NULL" else cell for cell in plain]


def _of_csv(lines: Iterable[tuple[int, str]], view: ServerView) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(FIELD_CHARACTERS_MOST)
    rows, line = csv.reader(text if text.endswith("\n") else f"{text}\n" for _, text in lines), 1
    try:
        for row in rows:
            yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise UserError(f"line {line}: this is no row of CSV: {error}", view.how) from None


def _of_json(text: str, view: ServerView) -> Iterator[tuple[int, Row]]:
    """One object a row: in a list, or one after the other."""
    decoder, place = json.JSONDecoder(), 0
    while found := re.compile(r"[^\s,\[\]]").search(text, place):
        line = text.count("\n", 0, found.start()) + 1
        try:
            row, place = decoder.raw_decode(text, found.start())
            told = {str(name).lower(): value for name, value in row.items()}
        except (ValueError, AttributeError):
            raise UserError(f"line {line}: this is no row of JSON", view.how) from None
        yield line, {name: str(value) for name, value in told.items() if value is not None}


def _learnt(view: ServerView, lines: Lines, reading: LogReading) -> LogReading:
    """How long the calls were counted, where the table tells."""
    try:
        days = view.days(row for _, row in _rows_of(lines, view))
    except (UserError, StopIteration):
        # Whoever reads the rows says what is wrong.
        return reading
    if days is None:
        return reading
    told = f"the calls are those of {days:.3g} days: divide them by that for a day"
    return replace(reading, notes=(*reading.notes, told))


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
    """A kind of file. `in_head` says that only its beginning tells, which `begins` is given as a whole.
    `learn` adds what all of a file's lines say of its form. What `for_...` names are instructions: for
    statements at all, and for their times, their values and their databases."""

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


def _view(name: str, dialect: Dialect, view: ServerView, for_values: str) -> LogFormat:
    return LogFormat(
        name,
        dialect,
        view.begins,
        partial(ViewReader, view),
        for_statements=view.how,
        for_times=view.how,
        for_values=for_values,
        for_databases=view.how,
        in_head=True,
        learn=partial(_learnt, view),
    )


def _of_form(form: str) -> Callable[[LogReading], LogReader]:
    return lambda reading: DriverReader(form, reading)


PREFIX = "log_line_prefix = '%m [%p] %q%u@%d '; --prefix names the one of the log"
FORMATS = (
    _view(
        "pg_stat_statements",
        Dialect.POSTGRESQL,
        PG_VIEW,
        for_values=f"give the server's log in its place: {LOGGED}; {TOLD}",
    ),
    _view(
        "statement digests of performance_schema",
        Dialect.MYSQL,
        DIGEST_VIEW,
        for_values="select QUERY_SAMPLE_TEXT as well, which MySQL has and MariaDB has not, or give the slow"
        f" log in its place: {SLOW}",
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
    if kind.in_head:
        return "mysql" if DIGEST_VIEW.sample in "".join(head).lower() else ""
    for line in head:
        if MARIADB.match(line):
            return "mariadb"
        if MYSQL.match(line):
            return "mysql"
    return ""


HEAD_LINES = 100
"""A row of JSON may have a line for each column."""


def format_of(head: list[str]) -> LogFormat | None:
    """The kind of a file that begins with these lines, the one that most of them tell, because a statement
    can hold lines of any kind; None for one that Dyno does not know."""
    first = ["\n".join(head[:HEAD_LINES])] if head else []
    votes = {each.name: sum(map(each.begins, first if each.in_head else head)) for each in FORMATS}
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
