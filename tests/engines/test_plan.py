"""What all readers of plans share, and each reader on plans as its engine tells them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.engines.firebird import plans as firebird
from dbdyno.engines.mariadb import plans as mariadb
from dbdyno.engines.mysql import plans as mysql
from dbdyno.engines.plan import lines, titles, without_values
from dbdyno.engines.postgresql import plans as postgresql
from dbdyno.engines.sqlite import plans as sqlite

JOIN = [
    {
        "Plan": {
            "Node Type": "Sort",
            "Total Cost": 1.5,
            "Sort Key": ["o.day"],
            "Plans": [
                {
                    "Node Type": "Hash Join",
                    "Join Type": "Left",
                    "Hash Cond": "(o.user_id = u.id)",
                    "Plans": [
                        {
                            "Node Type": "Seq Scan",
                            "Relation Name": "orders",
                            "Alias": "o",
                            "Filter": "(n > 7)",
                        },
                        {
                            "Node Type": "Hash",
                            "Plans": [
                                {
                                    "Node Type": "Index Scan",
                                    "Relation Name": "users",
                                    "Alias": "u",
                                    "Index Name": "users_pkey",
                                    "Scan Direction": "Forward",
                                    "Index Cond": "(id = 42)",
                                }
                            ],
                        },
                    ],
                }
            ],
        }
    }
]


def test_postgresql_is_told_as_a_tree_and_in_the_order_in_which_it_is_done() -> None:
    steps = postgresql.read(json.dumps(JOIN))
    assert list(lines(steps)) == [
        "sort: sort key o.day",
        "  hash left join: hash cond (o.user_id = u.id)",
        "    seq scan orders o: filter (n > ?)",
        "    hash",
        "      index scan users_pkey: index cond (id = ?)",
    ]
    assert list(titles(steps)) == [
        "seq scan orders o",
        "index scan users_pkey",
        "hash",
        "hash left join",
        "sort",
    ]


@given(costs=st.floats(0, 1e9), rows=st.integers(0, 10**9), value=st.integers(-(10**9), 10**9))
def test_costs_estimates_and_values_are_no_part_of_a_plan(costs: float, rows: int, value: int) -> None:
    def plan(costs: float, rows: int, value: str) -> str:
        node = {
            "Node Type": "Index Scan",
            "Relation Name": "t",
            "Index Name": "t_k",
            "Total Cost": costs,
            "Plan Rows": rows,
            "Plan Width": 4,
            "Index Cond": f"((k >= {value}) AND (c = 'x{value}'::bpchar))",
        }
        return json.dumps([{"Plan": node}])

    assert postgresql.read(plan(costs, rows, str(value))) == postgresql.read(plan(1.0, 1, "5"))


@pytest.mark.parametrize(
    "left, right",
    [
        ("(id = 7)", "(id = $1)"),
        ("(id = '-7'::integer)", "(id = $2)"),
        ("((c)::text = 'a''b'::text)", "((c)::text = $1)"),
        ("(id = ANY ('{1,2,3}'::integer[]))", "(id = ANY ($1))"),
        ("(d > '2020-01-01 00:00:00'::timestamp without time zone)", "(d > $1)"),
        ("(n = '1.50'::numeric(6,2))", "(n = 1.5)"),
        ("(x IN (1, 2, 3))", "(x IN ($1, $2))"),
        ("`d`.`t1`.`k` between 5 and 10", "`d`.`t1`.`k` between 500 and 1e3"),
    ],
)
def test_a_value_is_a_question_mark_however_it_is_written(left: str, right: str) -> None:
    assert without_values(left) == without_values(right)


@pytest.mark.parametrize("kept", ["(t1.c2 = t3.c4)", "`sbtest1`.`k`", '("t 5".c = u.d)', "(a$1 = b)"])
def test_names_with_numbers_stay(kept: str) -> None:
    assert without_values(kept) == kept


def test_mariadb_is_told_as_a_tree() -> None:
    plan = {
        "query_block": {
            "select_id": 1,
            "cost": 0.2,
            "filesort": {
                "sort_key": "o.d",
                "temporary_table": {
                    "nested_loop": [
                        {
                            "table": {
                                "table_name": "o",
                                "access_type": "ALL",
                                "rows": 9,
                                "cost": 0.1,
                                "filtered": 100,
                                "attached_condition": "o.n > 7",
                            }
                        },
                        {
                            "block-nl-join": {
                                "table": {"table_name": "u", "access_type": "ALL", "rows": 9},
                                "buffer_type": "flat",
                                "buffer_size": "65",
                                "join_type": "BNLH",
                            }
                        },
                    ]
                },
            },
        }
    }
    steps = mariadb.read(json.dumps(plan))
    assert list(titles(steps)) == [
        "full scan o",
        "full scan u",
        "hash join",
        "nested loop",
        "temporary table",
        "sort",
    ]
    assert next(iter(lines(steps))) == "sort: sort key o.d"


def test_an_index_of_mariadb_is_named() -> None:
    table = {
        "table_name": "t1",
        "access_type": "range",
        "possible_keys": ["k_1"],
        "key": "k_1",
        "key_length": "4",
        "used_key_parts": ["k"],
        "rows": 100,
        "attached_condition": "t1.k between 5 and 6",
        "using_index": True,
    }
    [step] = mariadb.read(json.dumps({"query_block": {"select_id": 1, "table": table}}))
    assert step.title == "range scan t1.k_1"
    assert step.details == ("by k", "attached condition t1.k between ? and ?", "covering")


def test_both_formats_of_mysql_are_read() -> None:
    first = {
        "query_block": {
            "ordering_operation": {
                "using_filesort": False,
                "table": {"table_name": "t", "access_type": "range", "key": "PRIMARY"},
            }
        }
    }
    assert list(titles(mysql.read(json.dumps(first)))) == ["range scan t.PRIMARY", "sort by an index"]
    second = {
        "query": "...",
        "query_plan": {
            "operation": "Sort: t.c",
            "inputs": [{"operation": "Index lookup on t using k_1 (k = 5)", "estimated_rows": 1.0}],
        },
    }
    assert list(lines(mysql.read(json.dumps(second)))) == [
        "sort: t.c",
        "  index lookup on t using k_1: k = ?",
    ]


def test_sqlite_is_told_as_a_tree() -> None:
    rows = [[3, 0, "SEARCH t USING INDEX k_1 (k>? AND k<?)"], [9, 0, "USE TEMP B-TREE FOR ORDER BY"]]
    assert list(lines(sqlite.read(json.dumps(rows)))) == [
        "search t using index k_1: k>? AND k<?",
        "use temp B-tree for order by",
    ]


def test_firebird_is_told_as_a_tree() -> None:
    plan = """
Select Expression (line 1, column 1)
    -> Filter
        -> Table "PUBLIC"."T" Access By ID
            -> Bitmap
                -> Index "RDB$PRIMARY1" Unique Scan
"""
    steps = firebird.read(plan)
    assert next(titles(steps)) == "index RDB$PRIMARY1 unique scan"
    assert next(lines(steps)) == "select expression"
    assert firebird.read("") == ()


@pytest.mark.parametrize("read", [postgresql.read, mariadb.read, mysql.read, sqlite.read])
@pytest.mark.parametrize("text", ["", "no plan", "[1]", '{"a"'])
def test_what_is_no_plan_is_refused_in_words(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(ValueError):
        assert read(text)  # a form without steps has none
        raise ValueError
