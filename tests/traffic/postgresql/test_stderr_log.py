"""PostgreSQL's log as text, with whatever stands before each line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dbdyno.traffic.postgresql.stderr_log import begins, entries
from tests.traffic.postgresql.logs import STDERR, asked, read

AT_S = datetime(2026, 11, 24, 21, 50, tzinfo=UTC).timestamp()


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
    ("prefix", "session", "database", "at_s"),
    [
        ("2026-11-24 21:50:00.250 UTC [77] ", "77", "", AT_S + 0.25),
        ("2026-11-24 21:50:00 UTC:10.0.0.1(5432):me@shop:[77]:", "77", "shop", AT_S),
        ("2026-11-24 22:50:00.250 +01 [77-3] user=me,db=shop,app=[unknown],client=10.0.0.1 ", "77", "shop",
         AT_S + 0.25),
        ("1795557000.250 6744a1b2.4d me@[unknown] ", "6744a1b2.4d", "", AT_S + 0.25),
        ("77 me shop ", "77", "", None),
        ("", "", "", None),
    ],
)  # fmt: skip
def test_what_a_prefix_tells_is_found_whatever_its_form(
    prefix: str, session: str, database: str, at_s: float | None
) -> None:
    [entry] = entries([(1, f"{prefix}LOG:  statement: SELECT 1")])
    assert (entry.session, entry.database, entry.at_s) == (session, database, at_s)
    assert entry.message == "statement: SELECT 1"


def test_a_line_of_a_statement_begins_no_entry() -> None:
    assert not begins("\tLOG:  statement: SELECT 1") and not begins(" WHERE id = 7")
    assert begins("LOG:  statement: SELECT 1")
