"""Which column a value is compared with."""

from __future__ import annotations

import pytest

from dbdyno.sql_logs.digest import Dialect, shaped
from dbdyno.sql_logs.keys import SqlColumn, column_of


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT a FROM t WHERE b = $1", ["t.b"]),
        ("SELECT a FROM t WHERE (b=$1 OR NOT c <> $2) AND d>=$3", ["t.b", "t.c", "t.d"]),
        ("SELECT a FROM s.t AS x WHERE x.b IN ($1, $2) AND x.c NOT IN ($3)", ["s.t.b", "s.t.b", "s.t.c"]),
        ("SELECT a FROM t WHERE b BETWEEN $1 AND $2 AND c = $3", ["t.b", "t.b", "t.c"]),
        ('SELECT a FROM "My T" m JOIN u ON u.id = m.id WHERE m."B" = $1 AND u.c = $2', ['"My T"."B"', "u.c"]),
        ("UPDATE t SET a = $1, b = b + $2 WHERE c = $3", ["", "", "t.c"]),
        ("DELETE FROM ONLY t WHERE t.a = $1", ["t.a"]),
        ("INSERT INTO t VALUES ($1, $2)", ["", ""]),
        ("SELECT a FROM t, u WHERE b = $1 AND t.c = $2", ["", "t.c"]),
        ("SELECT a FROM t JOIN u USING (id) WHERE b = $1", [""]),
        ("SELECT a FROM t WHERE b = (SELECT max(b) FROM u WHERE c = $1)", [""]),
        ("WITH w AS (SELECT 1) SELECT a FROM w WHERE b = $1", ["", ""]),
        ("SELECT a FROM f($1) WHERE b = $2", ["", ""]),
        ("SELECT a FROM t WHERE f(b) = $1 AND b + c = $2 AND d LIKE $3", ["", "", ""]),
        ("SELECT a FROM t WHERE f($1, $2) AND (b, c) = ($3, $4)", ["", "", "", ""]),
        ("SELECT a FROM t WHERE x.b = $1", [""]),
    ],
)
def test_a_value_belongs_to_the_column_that_it_is_compared_with(statement: str, columns: list[str]) -> None:
    taken = shaped(statement, Dialect.POSTGRESQL)
    found = [column_of(taken.pieces, place) for place in range(len(taken.values))]
    assert [each.words if each else "" for each in found] == columns


def test_each_column_has_a_name_of_its_own() -> None:
    columns = [
        SqlColumn("a", "b__c"),
        SqlColumn("a__b", "c"),
        SqlColumn("t", '"É"'),
        SqlColumn("t", '"È"'),
        SqlColumn("t", "b"),
    ]
    names = [column.name for column in columns]
    assert len({*names}) == len(names) and names[-1] == "t__b"
    assert all(name.isascii() and name.isidentifier() for name in names)
