"""The slow log, as MariaDB and MySQL write it."""

from __future__ import annotations

from datetime import UTC, datetime

from dbdyno.traffic.seen import Seen
from dbdyno.traffic.slow_log import statements
from tests.traffic.slow_log_cases import MARIADB, MYSQL

AT_S = datetime(2026, 11, 22, 16, tzinfo=UTC).timestamp()


def read(text: str) -> list[Seen]:
    return list(statements(enumerate(text.splitlines(), 1)))


def test_statements_have_their_time_and_their_line() -> None:
    assert [(seen.text, seen.line, seen.took_s, seen.rest) for seen in read(MARIADB)] == [
        ("SELECT name\n# a comment\nFROM customer WHERE id = 7", 11, 0.25, ""),
        ("", 18, 0.0001, "command Quit"),
        ("SET autocommit=0", 23, 0.5, ""),
    ]
    assert read(MYSQL) == [Seen("SELECT 1", 5, 0.0015, session="8", at_s=AT_S - 0.0015, rows=1)]


def test_each_statement_has_its_session_its_begin_and_its_database() -> None:
    found = [(seen.session, seen.at_s, seen.database) for seen in read(MARIADB)]
    assert found == [("5", AT_S, "shop"), ("6", AT_S, "shop"), ("", AT_S + 1, "shop")]


def test_a_database_stays_until_the_log_says_another() -> None:
    entry = MYSQL.partition("\n")[2]
    log = entry.replace("SET", "use a;\nSET") + entry + entry.replace("SET", "use `b`;\nSET") + entry
    assert [seen.database for seen in read(log)] == ["a", "a", "b", "b"]
    none = MARIADB.replace("Thread_id: 6  Schema: shop  QC_hit", "Thread_id: 6  Schema:   QC_hit")
    assert [seen.database for seen in read(none)] == ["shop", "", "shop"]


def test_a_moment_that_does_not_exist_is_none() -> None:
    head = "# Time: 991399 26:61:61\n# User@Host: a[a] @ b []\n"
    assert [seen.at_s for seen in read(f"{head}SELECT 1;\n")] == [None]


def test_a_log_that_begins_or_ends_in_the_midst_of_an_entry_is_read() -> None:
    whole = MARIADB.splitlines()
    assert [seen.text for seen in read("\n".join(whole[11:]))][-1] == "SET autocommit=0"
    assert [seen.text for seen in read("\n".join(whole[:11]))] == ["SELECT name"]
