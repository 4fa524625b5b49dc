"""Whatever stands in a log, reading it ends without an error, and what is read makes a script."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dbdyno.errors import UserError
from dbdyno.sql_logs.formats import FORMATS, LogFormat, format_of
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.script import script
from dbdyno.sql_logs.seen import LogReading, SeenStatement
from tests.sql_logs import mysql_cases
from tests.sql_logs.postgresql import logs
from tests.sql_logs.read_cases import DIGESTS, DIGESTS_AS_JSON, STATEMENTS

SAMPLES = [
    mysql_cases.SLOW_MARIADB,
    mysql_cases.SLOW_MYSQL,
    mysql_cases.GENERAL_MARIADB,
    mysql_cases.GENERAL_MYSQL,
    logs.STDERR,
    logs.CSV,
    logs.JSON,
    STATEMENTS,
    DIGESTS,
    DIGESTS_AS_JSON,
]
KINDS = {each.name: each for each in FORMATS}
HEADS = {
    "pg_stat_statements": "query,calls\n",
    "statement digests of performance_schema": "digest_text\tcount_star\n",
}
LOOSE = some.sampled_from(
    ["'", '"', "`", "(", "$1", "$$", ";", "\t", "\\", "# Time: ", "# Query_time: 9", "LOG:  ", "DETAIL:  ",
     "duration: 1.0 ms  ", "plan:\n", "execute x: ", "parameters: $1 = '", "{", ",,,", "SELECT ", "é",
     "\u2028", "99999999999999999999", "2026-11-24 21:50:00 UTC", "261124 21:50:00", "/*",
     "--", "0e99999999", ":p1"]
)  # fmt: skip
TEXTS = some.lists(LOOSE | some.text(max_size=8)).map("".join)


def read(kind: LogFormat, text: str) -> None:
    """Reads a log, and makes a script of it that TOML can hold."""
    lines = [(number, f"{line}\n") for number, line in enumerate(text.split("\n"), 1)]
    try:
        traffic = grouped(kind.name, kind.statements(lines, LogReading("%m [%p] %q%u@%d ")), kind.dialect)
    except UserError:
        assert kind.in_head, "a view is refused where it is no table"
        return
    taken = [group for group in traffic.groups if not group.why_not]
    tomllib.loads(script("a log", traffic, taken[:1], taken[1:]))


@pytest.mark.parametrize("name", KINDS)
@given(TEXTS)
@settings(deadline=None)
def test_no_text_is_an_error(name: str, text: str) -> None:
    head = HEADS.get(name, "")
    read(KINDS[name], head + text)


@pytest.mark.parametrize("sample", SAMPLES, ids=range(len(SAMPLES)))
@given(some.data())
@settings(deadline=None)
def test_a_log_that_was_cut_and_spoilt_is_read(sample: str, data: some.DataObject) -> None:
    kind = format_of(sample.splitlines())
    assert kind is not None
    places = some.integers(0, len(sample))
    first, middle, last = sorted((data.draw(places), data.draw(places), data.draw(places)))
    start = 0 if kind.in_head else first
    read(kind, sample[start:middle] + data.draw(TEXTS) + sample[middle:last])


EVENTS = (
    "SELECT 'it''s', 7 FROM item",
    "DELETE FROM item\n WHERE id = 5\n   AND name = 'a;b'",
    "UPDATE item SET a = 'ü' WHERE id = 7",
)
"""Statements of two sessions in turn."""
MORE = (
    "INSERT INTO note VALUES (1, 'x')",
    "UPDATE item\n SET b = 'y'\n WHERE id = 8",
    "DELETE FROM buyer WHERE name = 'z'",
    "SELECT a,\n b FROM item WHERE c = 'w'",
)
Writer = Callable[[Sequence[str]], str]


def slow(head: str, time: str = "# Time: 2026-03-01T10:00:0{n}.000000Z\n", use: str = "") -> Writer:
    def written(events: Sequence[str]) -> str:
        return "".join(
            f"{time.format(n=number)}{head.format(s=number % 2)}{'' if number else use}"
            f"SET timestamp=177235920{number};\n{text};\n"
            for number, text in enumerate(events)
        )

    return written


def general(line: str, again: str = "") -> Writer:
    """With a line of the second and later commands of a second, where that is another."""
    return lambda events: "".join(
        (again if n % 2 and again else line).format(n=n, s=n % 2, text=text) + "\n"
        for n, text in enumerate(events)
    )


def messages(events: Sequence[str], prefix: str) -> list[str]:
    """As the server hands them to whoever writes them, without the end of the last line."""
    return [
        f"{prefix.format(n=number, s=number % 2)}LOG:  duration: 1.500 ms  statement: {text}"
        for number, text in enumerate(events)
    ]


PREFIX = "2026-03-01 10:00:01.10{n} UTC [410{s}] app@shop "
LITERAL = re.compile(r"'(?:[^']|'')*'")


def text(prefix: str = PREFIX) -> Writer:
    return lambda events: "".join(
        message.replace("\n", "\n\t") + "\n" for message in messages(events, prefix)
    )


def parameters(events: Sequence[str]) -> str:
    """Texts of which the literals stand in a line of their own."""
    log = ""
    for message, prefix in zip(messages(events, PREFIX), messages([""] * len(events), PREFIX), strict=True):
        before, literal = prefix.partition("LOG:")[0], LITERAL.search(message)
        asked = LITERAL.sub("$1", message).replace("statement:", "execute <unnamed>:").replace("\n", "\n\t")
        log += f"{asked}\n" + (f"{before}DETAIL:  parameters: $1 = {literal[0]}\n" if literal else "")
    return log


def lines(wrap: Callable[[str], str]) -> Writer:
    """Each line of a text in a line of another log."""
    return lambda events: "".join(wrap(line) + "\n" for line in text()(events).splitlines())


def objects(made: Callable[[int, str], object]) -> Writer:
    return lambda events: "".join(
        json.dumps(made(number, each)) + "\n" for number, each in enumerate(messages(events, ""))
    )


def pieces(head: str) -> Writer:
    def written(events: Sequence[str]) -> str:
        log = ""
        for number, message in enumerate(messages(events, PREFIX)):
            for piece, line in enumerate(message.replace("\n", "\n\t").split("\n"), 1):
                log += f"{head.format(s=number % 2)}[{7 + number // 2}-{piece}] {line}\n".replace(
                    "\t", "#011"
                )
        return log

    return written


def rows(events: Sequence[str]) -> str:
    row = '2026-03-01 10:00:01.10{n} UTC,"me","shop",41{s},"[local]",67439a31.{s},3,"SELECT",'
    row += '2026-03-01 10:00:00 UTC,3/2,0,LOG,00000,"{text}",,,,,,,,,"psql","client backend",,0\n'
    return "".join(
        row.format(n=n, s=n % 2, text=each.removeprefix("LOG:  ").replace('"', '""'))
        for n, each in enumerate(messages(events, ""))
    )


MARIADB = (
    "# User@Host: a[a] @ b []\n# Thread_id: {s}  Schema: shop  QC_hit: No\n"
    "# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1\n# Rows_affected: 0  Bytes_sent: 8\n"
)
PERCONA = (
    "# User@Host: a[a] @ b []  Id:     {s}\n# Schema: shop  Last_errno: 0  Killed: 0\n"
    "# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1  Rows_affected: 0\n"
)
MYSQL = "# User@Host: a[a] @ b []  Id:     {s}\n# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 1\n"
FORMS: dict[str, Writer] = {
    "slow log of MariaDB": slow(MARIADB, "# Time: 260301 10:00:0{n}\n", "use shop;\n"),
    "slow log of MariaDB within a second": slow(MARIADB, "", "use shop;\n"),
    "slow log of MySQL 8": slow(MYSQL, use="use shop;\n"),
    "slow log of MySQL 5.6": slow(MYSQL, "# Time: 260301 10:00:0{n}\n", "use shop;\n"),
    "slow log of Percona Server": slow(PERCONA),
    "general log of MariaDB": general(
        "260301 10:00:0{n}\t     {s} Query\t{text}", "\t\t     {s} Query\t{text}"
    ),
    "general log of MySQL": general("2026-03-01T10:00:0{n}.000000Z\t    {s} Query\t{text}"),
    "PostgreSQL": text(),
    "PostgreSQL with sessions": text("2026-03-01 10:00:01 UTC:69a4.{s}:db=shop:"),
    "PostgreSQL with parameters": parameters,
    "PostgreSQL as CSV": rows,
    "PostgreSQL as JSON": objects(
        lambda n, each: {
            "timestamp": "2026-03-01 10:00:01.100 UTC", "session_id": f"69a4.{n % 2}",
            "error_severity": "LOG", "message": each.removeprefix("LOG:  "),
        }
    ),
    "CloudNativePG": objects(
        lambda n, each: {
            "level": "info", "logger": "postgres",
            "record": {"log_time": "2026-03-01 10:00:01.100 UTC", "session_id": f"69a4.{n % 2}",
                       "error_severity": "LOG", "message": each.removeprefix("LOG:  ")},
        }
    ),
    "syslog": pieces("Mar  1 10:00:01 db1 postgres[410{s}]: "),
    "RFC 5424": pieces("<134>1 2026-03-01T10:00:01.100Z db1 postgres 410{s} - - "),
    "Heroku": pieces("2026-03-01T10:00:01.100000+00:00 app[postgres.410{s}]: [DATABASE] "),
    "Docker": lines(lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "x"})),
    "Kubernetes": lines(lambda line: f"2026-03-01T10:00:01.1Z stderr F {line}"),
    "Cloud SQL": lines(lambda line: json.dumps({"textPayload": line})),
    "Azure": objects(
        lambda n, each: {"category": "PostgreSQLLogs",
                         "properties": {"message": PREFIX.format(n=n, s=n % 2) + each.replace("\n", "\n\t")}}
    ),
}  # fmt: skip
ENDED = frozenset({"PostgreSQL as CSV", "PostgreSQL as JSON", "CloudNativePG", "Azure"})
"""Forms in which an entry has an end of its own; those of slow logs have it too."""
PIECES = frozenset({"syslog", "RFC 5424", "Heroku"})


def seen_in(path: Path, log: bytes, whole: bool = False) -> list[SeenStatement]:
    """What a log tells; nothing where it is refused as a whole."""
    path.write_bytes(log)
    try:
        return list(log_of([path], LogReading(whole=whole)).statements)
    except UserError:
        return []


def statements(path: Path, log: bytes, whole: bool = False) -> list[str]:
    return [seen.text for seen in seen_in(path, log, whole) if not seen.rest]


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    """A file in memory where that is to be had, because a disk would write each of its many contents."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "log"


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_read_back_as_it_was_written(path: Path, form: str) -> None:
    every = (*EVENTS, *MORE)
    # Syslog's sessions end one after another.
    assert sorted(statements(path, FORMS[form](every).encode(), whole=True)) == sorted(every)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_may_be_cut_at_every_byte(path: Path, form: str) -> None:
    log = FORMS[form](EVENTS[1:]).encode()
    # Values that stand in a line behind the statement are missing where that is cut.
    allowed = {*EVENTS} | {LITERAL.sub("$1", each) for each in EVENTS if form == "PostgreSQL with parameters"}
    for at in range(len(log)):
        for part in (log[:at], log[at:]):
            assert set(statements(path, part)) <= allowed, (at, part)


def common(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


@dataclass(frozen=True)
class Written:
    """A log, and where the text of each of its statements begins and ends. What stands between its lines
    counts as text."""

    form: str
    events: tuple[str, ...]

    @cached_property
    def log(self) -> bytes:
        return FORMS[self.form](self.events).encode()

    @cached_property
    def spans(self) -> list[range]:
        found = []
        for number in range(len(self.events)):
            others = [*self.events[:number], "~", *self.events[number + 1 :]]
            other = FORMS[self.form](others).encode()
            start = common(self.log, other)
            rest = common(self.log[start:][::-1], other[start:][::-1])
            found.append(range(start, len(self.log) - rest))
        return found

    def inside(self, at: int, before: int = 0, behind: int = 0) -> bool:
        """Whether a place is within a text, or so many bytes before or behind it."""
        return any(span.start - before <= at <= span.stop + behind for span in self.spans)

    @property
    def is_open(self) -> bool:
        """Whether nothing tells where a statement ends but the begin of the next entry."""
        return self.form not in ENDED and not self.form.startswith("slow log")

    def texts(self) -> set[str]:
        """What may be told: values that stand in a line of their own may be lost with it, and a number tells
        which piece follows, but not which one is the last."""
        found = {*self.events}
        if self.form == "PostgreSQL with parameters":
            found |= {LITERAL.sub("$1", each) for each in self.events}
        if self.form in PIECES:
            every = [each.split("\n") for each in self.events]
            found |= {"\n".join(parts[:end]) for parts in every for end in range(1, len(parts))}
        return found


FEWER = settings().max_examples // 5
"""Each form is tried so often in each of three ways."""
HEAD_BYTES = 16
"""So few bytes of the begin of an entry's first line (` ms  statement: `) are no proof that it is one."""
LINE_BYTES = 90
"""No line's end and begin, wrapped in another log, take more than this."""


@pytest.mark.parametrize("form", FORMS)
@given(data=some.data())
@settings(max_examples=FEWER)
def test_two_logs_that_are_spliced_tell_no_statement_of_their_own(
    path: Path, form: str, data: some.DataObject
) -> None:
    """Only where the seam lies within the texts of both is what was made a log that the server could have
    written."""
    one, other = Written(form, EVENTS), Written(form, MORE)
    is_slow = form.startswith("slow log")
    # What stands before each statement is known as soon as one was read.
    least = one.spans[0].stop + 2 if is_slow else 0
    at, on = data.draw(some.integers(least, len(one.log))), data.draw(some.integers(0, len(other.log)))
    found = seen_in(path, one.log[:at] + other.log[on:])
    strange = [seen.text for seen in found if not seen.rest and seen.text not in one.texts() | other.texts()]
    within = one.inside(at, before=1, behind=LINE_BYTES if one.is_open else 0)
    # A line's end may be written in two bytes.
    goes_on = other.inside(on, before=0 if is_slow else HEAD_BYTES, behind=2)
    lines_lost = one.is_open and one.log[:at].endswith(b"\n")
    assert len(strange) <= int(within and (goes_on or lines_lost)), (at, on, strange)


@pytest.mark.parametrize("form", FORMS)
@given(data=some.data())
@settings(max_examples=FEWER)
def test_lines_that_are_lost_change_no_statement_of_which_they_are_no_part(
    path: Path, form: str, data: some.DataObject
) -> None:
    log = Written(form, (*EVENTS, *MORE))
    every = log.log.splitlines(keepends=True)
    first = data.draw(some.integers(0, len(every) - 1))
    last = data.draw(some.integers(first + 1, len(every)))
    found = seen_in(path, b"".join([*every[:first], *every[last:]]))
    strange = [seen.text for seen in found if not seen.rest and seen.text not in log.texts()]
    goes_on = [
        any(span.start <= sum(map(len, every[:number])) <= span.stop for span in log.spans)
        for number in (first, last)
    ]
    allowed = (goes_on[0] and log.is_open) or (goes_on[1] and form not in PIECES)
    assert len(strange) <= int(allowed), (first, last, strange)


@pytest.mark.parametrize("form", FORMS)
@given(data=some.data())
@settings(max_examples=FEWER)
def test_a_byte_that_is_another_changes_no_statement_but_its_own(
    path: Path, form: str, data: some.DataObject
) -> None:
    """No log tells that a byte within a statement's own text is another."""
    log = Written(form, (*EVENTS, *MORE))
    at, byte = data.draw(some.integers(0, len(log.log) - 1)), data.draw(some.integers(0, 255))
    found = seen_in(path, log.log[:at] + bytes([byte]) + log.log[at + 1 :])
    given_ = [seen.text for seen in found if not seen.rest]
    strange = [each for each in given_ if each not in log.texts()]
    assert len(strange) <= int(log.inside(at)), (at, bytes([byte]), strange)
    lost = len(log.events) - len(given_)
    assert not lost or any(seen.rest for seen in found) or not found, (at, bytes([byte]))
