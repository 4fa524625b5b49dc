"""The general log, as MariaDB and MySQL write it."""

from __future__ import annotations

from dbdyno.traffic.general_log import begins, statements
from dbdyno.traffic.seen import Seen

MARIADB = """\
/usr/sbin/mariadbd, Version: 11.8.3-MariaDB (Debian). started with:
Tcp port: 0  Unix socket: /run/s
Time\t\t    Id Command\tArgument
261122 16:00:00\t     5 Connect\troot@localhost on shop using Socket
\t\t     6 Query\tSELECT name
  FROM customer
 WHERE id = 7
\t\t     5 Prepare\tSELECT ? FROM t
\t\t     5 Execute\tSELECT 4 FROM t
261122  6:00:01\t     5 Quit\t
"""
MYSQL = (
    "2026-11-22T16:00:00.000000Z\t    8 Query\tSELECT 1\n2026-11-22T16:00:00.000001Z\t    8 Close stmt\t\n"
)


def read(text: str) -> list[Seen]:
    return list(statements(enumerate(text.splitlines(), 1)))


def test_what_was_executed_is_a_statement_and_the_rest_is_counted() -> None:
    assert read(MARIADB) == [
        Seen("", 4, rest="command Connect"),
        Seen("SELECT name\n  FROM customer\n WHERE id = 7", 5),
        Seen("", 8, rest="command Prepare"),
        Seen("SELECT 4 FROM t", 9),
        Seen("", 10, rest="command Quit"),
    ]
    assert [seen.text for seen in read(MYSQL)] == ["SELECT 1", ""]


def test_a_line_of_a_statement_is_no_command() -> None:
    assert not begins(" WHERE id = 7") and not begins("  5 apples") and begins("\t\t     5 Quit\t")
