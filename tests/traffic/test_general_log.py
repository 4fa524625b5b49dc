"""The general log, as MariaDB and MySQL write it."""

from __future__ import annotations

from datetime import UTC, datetime

from dbdyno.traffic.general_log import begins, statements
from dbdyno.traffic.seen import Seen
from tests.traffic.general_log_cases import MARIADB, MYSQL


def read(text: str) -> list[Seen]:
    return list(statements(enumerate(text.splitlines(), 1)))


def test_what_was_executed_is_a_statement_and_the_rest_is_counted() -> None:
    assert [(seen.text, seen.line, seen.rest) for seen in read(MARIADB)] == [
        ("", 4, "command Connect"),
        ("SELECT name\n  FROM customer\n WHERE id = 7", 5, ""),
        ("", 8, "command Prepare"),
        ("SELECT 4 FROM t", 9, ""),
        ("", 10, "command Quit"),
    ]
    assert [seen.text for seen in read(MYSQL)] == ["SELECT 1", ""]


def test_a_line_of_a_statement_is_no_command() -> None:
    assert not begins(" WHERE id = 7") and not begins("  5 apples") and begins("\t\t     5 Quit\t")


def test_each_statement_has_its_session_its_moment_and_its_database() -> None:
    at_s = datetime(2026, 11, 22, 16, tzinfo=UTC).timestamp()
    found = [(seen.session, seen.at_s, seen.database) for seen in read(MARIADB)]
    assert found[:4] == [("5", at_s, "shop"), ("6", at_s, ""), ("5", at_s, "shop"), ("5", at_s, "shop")]
    assert found[4][1] == datetime(2026, 11, 22, 6, 0, 1, tzinfo=UTC).timestamp()
    assert [(seen.session, seen.at_s) for seen in read(MYSQL)] == [("8", at_s), ("8", at_s + 1e-6)]


def test_a_database_is_that_which_the_session_chose_last() -> None:
    chosen = (
        "\t\t     5 Init DB\tshop\n\t\t     6 Query\tSELECT 1\n\t\t     5 Query\tSELECT 1\n"
        "\t\t     5 Query\tUSE `other`\n\t\t     5 Query\tSELECT 2\n"
        "\t\t     5 Quit\t\n\t\t     5 Query\tSELECT 3\n"
    )
    found = {(seen.session, seen.text): seen.database for seen in read(chosen) if seen.text}
    assert found[("6", "SELECT 1")] == "" and found[("5", "SELECT 1")] == "shop"
    assert found[("5", "SELECT 2")] == "other" and found[("5", "SELECT 3")] == ""


def test_a_moment_that_does_not_exist_is_none() -> None:
    assert [seen.at_s for seen in read("991399 26:61:61\t     5 Query\tSELECT 1\n")] == [None]
