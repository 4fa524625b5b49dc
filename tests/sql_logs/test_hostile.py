"""Whatever stands in a log, reading it ends without an error, and what is read makes a script."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dbdyno.errors import UserError
from dbdyno.sql_logs import pg_stat_statements
from dbdyno.sql_logs.formats import FORMATS, Format, format_of
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.script import script
from dbdyno.sql_logs.seen import Reading
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


def read(kind: Format, text: str) -> None:
    """Reads a log, and makes a script of it that TOML can hold."""
    lines = [(number, f"{line}\n") for number, line in enumerate(text.split("\n"), 1)]
    try:
        traffic = grouped(kind.name, kind.statements(lines, Reading("%m [%p] %q%u@%d ")), kind.dialect)
    except UserError:
        assert kind.reader is pg_stat_statements.View
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
