"""The slow log, as MariaDB and MySQL write it."""

from __future__ import annotations

from dbdyno.traffic.seen import Seen
from dbdyno.traffic.slow_log import statements

MARIADB = """\
/usr/sbin/mariadbd, Version: 11.8.3-MariaDB-0+deb13u1 (Debian). started with:
Tcp port: 0  Unix socket: /run/s
Time\t\t    Id Command\tArgument
# Time: 261122 16:00:00
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000045  Rows_sent: 1  Rows_examined: 1
# Rows_affected: 0  Bytes_sent: 58
use shop;
SET timestamp=1795363200;
SELECT name
# a comment
FROM customer WHERE id = 7;
# User@Host: root[root] @ localhost []
# Thread_id: 6  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 0
SET timestamp=1795363200;
# administrator command: Quit;
# User@Host: root[root] @ localhost []
# Query_time: 0.500000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
SET timestamp=1795363201;
SET autocommit=0;
# Time: 261122 16:00:01
# User@Host: root[root] @ localhost []
"""

MYSQL = """\
# Time: 2026-11-22T16:00:00.000000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.001500  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 1
SET timestamp=1795363200;
SELECT 1;
"""


def read(text: str) -> list[Seen]:
    return list(statements(enumerate(text.splitlines(), 1)))


def test_statements_have_their_time_and_their_line() -> None:
    assert read(MARIADB) == [
        Seen("SELECT name\n# a comment\nFROM customer WHERE id = 7", 11, 0.25),
        Seen("", 18, 0.0001, rest="command Quit"),
        Seen("SET autocommit=0", 23, 0.5),
    ]
    assert read(MYSQL) == [Seen("SELECT 1", 5, 0.0015)]


def test_a_log_that_begins_or_ends_in_the_midst_of_an_entry_is_read() -> None:
    whole = MARIADB.splitlines()
    assert [seen.text for seen in read("\n".join(whole[11:]))][-1] == "SET autocommit=0"
    assert [seen.text for seen in read("\n".join(whole[:11]))] == ["SELECT name"]
