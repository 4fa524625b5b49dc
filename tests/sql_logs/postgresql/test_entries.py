"""Entries of PostgreSQL's log as text, CSV and JSON."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.driver._driver import csv_log_begins
from dbdyno.errors import UserError
from dbdyno.sql_logs.formats import FORMATS, DriverReader
from dbdyno.sql_logs.postgresql.entries import text_begins
from dbdyno.sql_logs.postgresql.prefix import (
    PrefixedLine,
    inferred,
    line_parts,
    only_reading,
    prefix_parts,
    prefix_pattern,
)
from dbdyno.sql_logs.seen import CUT_OFF, LAST, LogReading, SeenStatement
from tests.sql_logs.postgresql.logs import CSV, JSON, STDERR, asked, read

NO_ENTRY = "line that is no entry"
AT_S = datetime(2026, 11, 24, 21, 50, tzinfo=UTC).timestamp()


def statements(log: str, reading: LogReading) -> list[SeenStatement]:
    reader = DriverReader("postgresql", reading, reading.prefix)
    return [*reader.read(enumerate(log.splitlines(keepends=True), 1)), *reader.ended()]


def prefixes(log: str) -> list[str]:
    return inferred(enumerate(log.splitlines(keepends=True), 1))


def test_statements_have_their_values_their_time_and_where_they_ran() -> None:
    first, second = asked(STDERR)
    assert first.text == "SELECT name FROM customer WHERE id = '7'" and first.bound
    assert (first.line, first.session, first.database) == (5, "11", "shop")
    assert first.took_s == pytest.approx(0.25025)
    assert first.at_s == pytest.approx(AT_S + 1.5 - 0.25025)
    assert second.text == "SELECT 'a'\n  FROM t -- it's\n WHERE b = 'x: $1'" and not second.bound
    assert (second.took_s, second.at_s, second.database) == (0.5, AT_S + 1.5, "crm")


def test_what_is_no_statement_is_counted() -> None:
    rest = [seen.rest for seen in read(STDERR) if seen.rest]
    assert rest == ["message LOG", "parse of a statement", "bind of a statement", "message ERROR"]


@pytest.mark.parametrize(
    ("prefix", "written", "session", "database", "at_s"),
    [
        ("%m [%p] ", "2026-11-24 21:50:00.250 UTC [77] ", "77", "", AT_S + 0.25),
        ("%t:%r:%u@%d:[%p]:", "2026-11-24 21:50:00 UTC:10.0.0.1(5):me@my shop:[77]:", "77", "my shop", AT_S),
        ("%m [%p-%l] user=%u,db=%d,app=%a,client=%h ",
         "2026-11-24 22:50:00.250 +01 [77-3] user=me,db=shop,app=x y,client=10.0.0.1 ", "77", "shop",
         AT_S + 0.25),
        ("%n %c %u@%d ", "1795557000.250 6744a1b2.4d me@[unknown] ", "6744a1b2.4d", "", AT_S + 0.25),
        ("%m %e %p ", "2026-11-24 21:50:00.250 UTC 00000 77 ", "77", "", AT_S + 0.25),
        ("%-8p|%d|100%% ", "77      |shop|100% ", "77", "shop", None),
        ("%m [%p] %q%u@%d ", "2026-11-24 21:50:00.250 UTC [77] ", "77", "", AT_S + 0.25),
        ("%t-%c-", "2026-11-24 21:50:00 UTC-6744a1b2.4d-", "6744a1b2.4d", "", AT_S),
        ("", "", "", "", None),
    ],
)  # fmt: skip
def test_a_prefix_that_is_known_tells_what_it_holds(
    prefix: str, written: str, session: str, database: str, at_s: float | None
) -> None:
    log = f"{written}LOG:  00000: statement: SELECT 1\n"
    [seen] = statements(log, LogReading(prefix, whole=True))
    assert (seen.session, seen.database, seen.at_s) == (session, database, at_s)
    assert seen.text == "SELECT 1"


def test_a_prefix_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="%y is no escape"):
        prefix_pattern("%y")


def log_of(
    *lines: str, prefix: str = "2026-03-01 10:00:01.{n}00 UTC {f}LOG:  statement: SELECT {n}\n"
) -> str:
    return "".join(prefix.format(n=number, f=line) for number, line in enumerate(lines, 1))


@pytest.mark.parametrize(
    ("parts", "prefix"),
    [
        (("00000 4101 ", "00000 4102 ", "00000 4101 "), "%m %e %p "),
        (("[1] [4101] ", "[1] [4102] ", "[2] [4101] ", "[2] [4102] ", "[3] [4101] "), "%m [%l] [%p] "),
        (("[7] [4101] ", "[9] [4102] ", "[8] [4101] ", "[12] [4102] ", "[9] [4101] "), "%m [%l] [%p] "),
        (("[4101]: [7-1] ", "[4101]: [8-1] ", "[4102]: [3-1] "), "%m [%p]: [%l-%x] "),
        (("[4101] a@b ", "[4102] c@d "), "%m [%p] %u@%d "),
        (("4101 user=a,db=b,app=x,client=1.2.3.4 ", "4101 user=,db=c,app=,client= "),
         "%m %p user=%u,db=%d,app=%a,client=%h "),
        (("[11] ", "[12] ", "[13] "), "%m [%l] "),
        (("69a400c1.1005 a@b ", "69a400c1.1006 a@b "), "%m %c %u@%d "),
        (("a@b 1.2.3.4(5000) 4101 ", "a@b 1.2.3.5(5001) 4102 ", "a@b 1.2.3.4(5) 4101 "), "%m %u@%d %r %p "),
    ],
)  # fmt: skip
def test_a_prefix_is_found_where_the_lines_prove_it(parts: tuple[str, ...], prefix: str) -> None:
    assert prefixes(log_of(*parts)) == [prefix]


def test_what_connected_tells_which_word_is_the_database() -> None:
    line = "2026-03-01 10:00:01.100 UTC|{0}|{1}|69a400c1.{2}|LOG:  {3}\n"
    told = line.format("app", "shop", "1005", "connection authorized: user=app database=shop")
    log = (
        told
        + line.format("app", "shop", "1005", "statement: SELECT 1")
        + line.format("bot", "blog", "1006", "statement: SELECT 1")
    )
    assert prefixes(log) == ["%m|%u|%d|%c|"]
    both = prefixes(log.removeprefix(told))
    assert both == ["%m|%d|%u|%c|", "%m|%u|%d|%c|"]
    with pytest.raises(UserError) as asked_for:
        only_reading(both)
    assert all(each in asked_for.value.message for each in both) and "--prefix" in str(asked_for.value.hint)


def test_two_numbers_that_fit_are_both_shown() -> None:
    log = log_of("[7] [4101] ", "[7] [4102] ", "[9] [4102] ", "[9] [4101] ", "[7] [4102] ")
    assert prefixes(log) == ["%m [%p] [%x] ", "%m [%x] [%p] "]


def test_what_the_servers_own_processes_leave_out_stands_behind_q() -> None:
    assert prefixes(STDERR) == ["%m [%p] %q%u@%d "]


def test_a_line_of_a_statement_begins_no_entry() -> None:
    assert not text_begins("\tLOG:  statement: SELECT 1") and not text_begins(" WHERE id = 7")
    assert text_begins("LOG:  statement: SELECT 1")


def test_a_log_of_text_may_be_cut_anywhere() -> None:
    line = "2026-11-24 21:50:01.000 UTC [11] me@shop LOG:  duration: 0.125 ms  statement: {}\n"
    log = line.format("SELECT 1") + line.format("DELETE FROM item\n\t WHERE id = 7") + line.format("SELECT 2")
    whole = ["SELECT 1", "DELETE FROM item\n WHERE id = 7"]
    for at in range(len(log) + 1):
        [kind] = [kind for kind in FORMATS if kind.name == "PostgreSQL log"]
        lines = list(enumerate(log[:at].splitlines(keepends=True), 1))
        found = list(kind.statements(lines, LogReading("%m [%p] %u@%d ")))
        texts = [seen.text for seen in found if not seen.rest]
        assert texts == whole[: len(texts)]
        assert {seen.rest for seen in found if seen.rest} <= {LAST, CUT_OFF, NO_ENTRY}


def test_a_line_that_is_no_entry_makes_the_end_of_the_one_before_uncertain() -> None:
    lost = STDERR.replace("\t  FROM t", "  FROM t")
    found = read(lost)
    assert [seen.text for seen in found if not seen.rest] == ["SELECT name FROM customer WHERE id = '7'"]
    assert {NO_ENTRY, CUT_OFF} <= {seen.rest for seen in found}


def test_rows_of_csv_have_their_values_their_time_and_where_they_ran() -> None:
    first, second = asked(CSV)
    assert first.text == "SELECT \"name\"\n  FROM customer WHERE id = '7'" and first.bound
    assert (first.line, first.session, first.database) == (1, "67439a31.b", "shop")
    assert first.took_s == 0.25 and first.at_s == pytest.approx(1795557001.25)
    assert (second.text, second.line, second.took_s) == ("BEGIN", 3, None)


def test_a_log_of_csv_may_be_cut_anywhere() -> None:
    whole = [seen.text for seen in asked(CSV)]
    for at in range(len(CSV)):
        if csv_log_begins(CSV[:at]):
            texts = [seen.text for seen in asked(CSV[:at])]
            assert texts == whole[: len(texts)] and len(texts) < 2
    cut = CSV.splitlines(keepends=True)
    found = read("".join([*cut[1:], cut[0]]))
    assert [seen.text for seen in found if not seen.rest] == ["BEGIN"]
    assert [seen.rest for seen in found if seen.rest] == [CUT_OFF, CUT_OFF]


LINE = "2026-11-24 21:50:0{}.000 UTC [11] me@shop {}:  {}\n"


@pytest.mark.parametrize(
    "lines",
    [
        [(1, "DETAIL", "parameters: $1 = '7'"), (1, "DETAIL", "parameters: $1 = '8'")],
        [(2, "DETAIL", "parameters: $1 = '8'")],
        [(1, "STATEMENT", "x"), (1, "DETAIL", "parameters: $1 = '8'")],
    ],
)
def test_values_of_another_entry_are_not_taken(lines: list[tuple[int, str, str]]) -> None:
    asked_ = "duration: 1.000 ms  execute a: DELETE FROM t WHERE id = $1"
    log = "".join(LINE.format(*each) for each in [(1, "LOG", asked_), *lines, (3, "LOG", "checkpoint")])
    found = read(log * 2)
    assert not any(seen.text for seen in found) and CUT_OFF in [seen.rest for seen in found]


def test_values_without_their_statement_are_counted() -> None:
    lost = STDERR.splitlines(keepends=True)
    found = read("".join([*lost[:1], *lost[5:]]))
    assert [seen.rest for seen in found].count(CUT_OFF) == 2 and "SELECT 'a'" in "".join(
        seen.text for seen in found
    )


def test_an_entry_is_not_made_of_pieces_of_two() -> None:
    row = CSV.splitlines(keepends=True)[2]
    cut = row[: row.index("GIN")]
    assert asked(cut + row[row.index('","shop"') :]) == asked(cut + row[row.index('"[local]"') :]) == []
    for name in ("pid", "session_id", "error_severity"):
        spliced = JSON[: JSON.index(" FROM")] + JSON[JSON.index(f'"{name}"') - 2 :]
        assert [seen.rest for seen in read(spliced)] == [CUT_OFF]


def test_a_row_within_a_text_is_no_statement() -> None:
    inner = CSV.splitlines(keepends=True)[2].replace('"', '""').replace("BEGIN", "DROP TABLE item")
    outer = CSV.splitlines(keepends=True)[2].replace("BEGIN", f"INSERT INTO t VALUES ('\n{inner}')")
    assert "DROP TABLE item" not in [seen.text for seen in asked(CSV + outer + CSV)]


def test_objects_of_json_have_their_values_their_time_and_where_they_ran() -> None:
    [first] = asked(JSON)
    assert first.text == "SELECT \"name\"\n  FROM customer WHERE id = '7'" and first.bound
    assert (first.line, first.session, first.database) == (1, "67439a31.b", "shop")
    assert first.took_s == 0.25 and first.at_s == pytest.approx(1795557001.25)


@pytest.mark.parametrize("line", [JSON[:200], '{"timestamp":"2026', "null", "[" * 100_000])
def test_a_line_of_json_that_is_cut_off_is_counted(line: str) -> None:
    assert [seen.rest for seen in read(f"{JSON}{line}\n")] == [CUT_OFF, ""]


def test_clocks_that_are_put_back_are_followed() -> None:
    line = "2026-10-25 02:{}:00.000 {} [11] LOG:  statement: SELECT 1\n"
    log = line.format("50", "CEST") + line.format("10", "CET") + line.format("20", "CET")
    found = statements(log, LogReading("%m [%p] ", "Europe/Berlin", whole=True))
    moments = [seen.at_s or 0 for seen in found]
    assert [later - moments[0] for later in moments] == [0, 1200, 1800]
    with pytest.raises(UserError, match="in CEST and in CET"):
        statements(log, LogReading("%m [%p] "))


PIECES = st.sampled_from(
    ["2026-11-24 21:50:00.250 UTC", "2026-11-24 21:50:00 UTC", "1795557000.250", "6744a1b2.4d", "3/17",
     "h(5)", "user=", "db=", "[unknown]", "[77]", "00000", "77", "a-b", ":", "@", " ", "|", "7", "UTC"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=9).map("".join))
def test_a_line_has_the_parts_that_its_prefix_has(prefix: str) -> None:
    assert line_parts(prefix, "text") == PrefixedLine(*prefix_parts(prefix), "text")
