"""What is taken of a log, and why the rest is not."""

from __future__ import annotations

import pytest

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.script import statement_of
from dbdyno.sql_logs.seen import SeenStatement


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT 1", ""),
        ("WITH a AS (SELECT 1) SELECT * FROM a", ""),
        ("CALL p(1)", ""),
        ("BEGIN", "it begins or ends a transaction"),
        ("SET NAMES utf8mb4", "it is about the session or the server"),
        ("SHOW TABLES", "it is about the session or the server"),
        ("CREATE TABLE t (a INT)", "it changes the schema"),
        ("LOCK TABLES t READ", "it is no SELECT, INSERT, UPDATE, DELETE, REPLACE, MERGE or CALL"),
        ("SELECT a FROM t WHERE b ? 'c'", "it holds a ? outside of quotes"),
        ("SELECT 1; SELECT 2", "it is several statements in one"),
        (f"SELECT {', '.join('1' * 5000)}", ""),
    ],
)
def test_a_statement_is_taken_or_left_out_with_a_reason(statement: str, reason: str) -> None:
    [group] = grouped("", [SeenStatement(statement, 1)], Dialect.MYSQL).groups
    assert group.why_not == reason


@pytest.mark.parametrize(
    ("statement", "writes"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", True),
        ("WITH a AS (SELECT 1) update t SET b = 2", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", True),
        ("SELECT a INTO u FROM t", True),
        ("SELECT a FROM t WHERE b = 'x' INTO OUTFILE 'f'", True),
        ("SELECT a FROM t", False),
        ("SELECT a FROM t FOR UPDATE", False),
        ("SELECT a FROM t FOR NO KEY UPDATE OF t", False),
        ("SELECT last_update, t.delete, `insert` FROM t WHERE b = 'INTO'", False),
        ("SELECT INSERT('abc', 1, 1, 'd')", False),
    ],
)
def test_what_writes_is_marked(statement: str, writes: bool) -> None:
    [group] = grouped("", [SeenStatement(statement, 1)], Dialect.MYSQL).groups
    assert group.writes is writes


def test_a_binary_value_stays_where_it_never_changes_and_is_a_reason_where_it_does() -> None:
    constant = [SeenStatement("SELECT a FROM t WHERE b = 0xAB", line) for line in (1, 2)]
    [group] = grouped("", constant, Dialect.MYSQL).groups
    assert not group.why_not and statement_of(group.shape).sql == "SELECT a FROM t WHERE b = 0xAB"
    changing = [SeenStatement(f"SELECT a FROM t WHERE b = x'{line:02x}'", line) for line in range(1, 100)]
    [group] = grouped("", changing, Dialect.MYSQL).groups
    assert group.count == 99 and group.why_not == "it holds a binary value that changes"
    mixed = [
        SeenStatement("SELECT a FROM t WHERE b = 0xAB", 1),
        SeenStatement("SELECT a FROM t WHERE b = 7", 2),
    ]
    [group] = grouped("", mixed, Dialect.MYSQL).groups
    assert group.why_not == "it holds a binary value that changes"


def test_what_took_longest_comes_first_and_else_what_came_most_often() -> None:
    timed = [
        SeenStatement("SELECT a", 1, 0.1),
        SeenStatement("SELECT a", 2, 0.1),
        SeenStatement("SELECT b", 3, 0.5),
    ]
    assert [group.digest for group in grouped("", timed, Dialect.MYSQL).groups] == ["SELECT b", "SELECT a"]
    untimed = [SeenStatement("SELECT b", 3), SeenStatement("SELECT a", 1), SeenStatement("SELECT a", 2)]
    found = grouped("", untimed, Dialect.MYSQL)
    assert [group.digest for group in found.groups] == ["SELECT a", "SELECT b"] and found.took_s is None
