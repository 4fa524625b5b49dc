"""Whatever stands in a log, reading it ends without an error, and what is read makes a script."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dbdyno.errors import UserError
from dbdyno.sql_logs import formats
from dbdyno.sql_logs.formats import FORMATS, LogFormat, format_of
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.script import script
from dbdyno.sql_logs.seen import LogReading
from tests.sql_logs import mysql_cases
from tests.sql_logs.postgresql import logs
from tests.sql_logs.read_cases import STATEMENTS

SAMPLES = [
    mysql_cases.SLOW_MARIADB,
    mysql_cases.SLOW_MYSQL,
    mysql_cases.GENERAL_MARIADB,
    mysql_cases.GENERAL_MYSQL,
    logs.STDERR,
    logs.CSV,
    logs.JSON,
    STATEMENTS,
]
KINDS = {each.name: each for each in FORMATS}
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
        assert kind.reader is formats.StatementsView
        return
    taken = [group for group in traffic.groups if not group.why_not]
    tomllib.loads(script("a log", traffic, taken[:1], taken[1:]))


@pytest.mark.parametrize("name", KINDS)
@given(TEXTS)
@settings(deadline=None)
def test_no_text_is_an_error(name: str, text: str) -> None:
    head = "query,calls\n" if KINDS[name].in_head else ""
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
"""Statements of three sessions, one after another."""
Writer = Callable[[Sequence[str]], str]


def slow(head: str, time: str = "# Time: 2026-03-01T10:00:0{n}.000000Z\n") -> Writer:
    def written(events: Sequence[str]) -> str:
        return "".join(
            f"{time.format(n=number)}{head.format(n=number)}SET timestamp=177235920{number};\n{text};\n"
            for number, text in enumerate(events)
        )

    return written


def general(line: str) -> Writer:
    return lambda events: "".join(line.format(n=n, text=text) + "\n" for n, text in enumerate(events))


def messages(events: Sequence[str], prefix: str) -> list[str]:
    """As the server hands them to whoever writes them, without the end of the last line."""
    return [
        f"{prefix.format(n=number)}LOG:  duration: 1.500 ms  statement: {text}"
        for number, text in enumerate(events)
    ]


PREFIX = "2026-03-01 10:00:01.10{n} UTC [410{n}] app@shop "


def text(prefix: str = PREFIX) -> Writer:
    return lambda events: "".join(
        message.replace("\n", "\n\t") + "\n" for message in messages(events, prefix)
    )


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
                log += f"{head.format(n=number)}[7-{piece}] {line}\n".replace("\t", "#011")
        return log

    return written


def rows(events: Sequence[str]) -> str:
    row = '2026-03-01 10:00:01.10{n} UTC,"me","shop",41{n},"[local]",67439a31.{n},3,"SELECT",'
    row += '2026-03-01 10:00:00 UTC,3/2,0,LOG,00000,"{text}",,,,,,,,,"psql","client backend",,0\n'
    return "".join(
        row.format(n=number, text=each.removeprefix("LOG:  ").replace('"', '""'))
        for number, each in enumerate(messages(events, ""))
    )


MARIADB = (
    "# User@Host: a[a] @ b []\n# Thread_id: {n}  Schema: shop  QC_hit: No\n"
    "# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1\n# Rows_affected: 0  Bytes_sent: 8\n"
)
PERCONA = (
    "# User@Host: a[a] @ b []  Id:     {n}\n# Schema: shop  Last_errno: 0  Killed: 0\n"
    "# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1  Rows_affected: 0\n"
)
MYSQL = "# User@Host: a[a] @ b []  Id:     {n}\n# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 1\n"
FORMS: dict[str, Writer] = {
    "slow log of MariaDB": slow(MARIADB, "# Time: 260301 10:00:0{n}\n"),
    "slow log of MySQL 8": slow(MYSQL),
    "slow log of MySQL 5.6": slow(MYSQL, "# Time: 260301 10:00:0{n}\n"),
    "slow log of Percona Server": slow(PERCONA),
    "general log of MariaDB": general("260301 10:00:0{n}\t     {n} Query\t{text}"),
    "general log of MySQL": general("2026-03-01T10:00:0{n}.000000Z\t    {n} Query\t{text}"),
    "PostgreSQL": text(),
    "PostgreSQL with sessions": text("2026-03-01 10:00:01 UTC:69a4.{n}:db=shop:"),
    "PostgreSQL as CSV": rows,
    "PostgreSQL as JSON": objects(
        lambda n, each: {
            "timestamp": "2026-03-01 10:00:01.100 UTC", "session_id": f"69a4.{n}", "error_severity": "LOG",
            "message": each.removeprefix("LOG:  "),
        }
    ),
    "CloudNativePG": objects(
        lambda n, each: {
            "level": "info", "logger": "postgres",
            "record": {"log_time": "2026-03-01 10:00:01.100 UTC", "session_id": f"69a4.{n}",
                       "error_severity": "LOG", "message": each.removeprefix("LOG:  ")},
        }
    ),
    "syslog": pieces("Mar  1 10:00:01 db1 postgres[410{n}]: "),
    "RFC 5424": pieces("<134>1 2026-03-01T10:00:01.100Z db1 postgres 410{n} - - "),
    "Heroku": pieces("2026-03-01T10:00:01.100000+00:00 app[postgres.410{n}]: [DATABASE] "),
    "Docker": lines(lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "x"})),
    "Kubernetes": lines(lambda line: f"2026-03-01T10:00:01.1Z stderr F {line}"),
    "Cloud SQL": lines(lambda line: json.dumps({"textPayload": line})),
    "Azure": objects(
        lambda n, each: {"category": "PostgreSQLLogs",
                         "properties": {"message": PREFIX.format(n=n) + each.replace("\n", "\n\t")}}
    ),
}  # fmt: skip


def statements(path: Path, log: bytes, whole: bool = False) -> list[str] | None:
    """What a log tells; None where it is refused as a whole."""
    path.write_bytes(log)
    try:
        return [seen.text for seen in log_of([path], LogReading(whole=whole)).statements if not seen.rest]
    except UserError:
        return None


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_read_back_as_it_was_written(tmp_path: Path, form: str) -> None:
    log = FORMS[form](EVENTS).encode()
    assert statements(tmp_path / "log", log, whole=True) == list(EVENTS)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_may_be_cut_at_every_byte(tmp_path: Path, form: str) -> None:
    log, path = FORMS[form](EVENTS).encode(), tmp_path / "log"
    for at in range(len(log)):
        for part in (log[:at], log[at:]):
            assert set(statements(path, part) or ()) <= {*EVENTS}, (at, part)
