"""The files that engines are deployed by: what is written is what the engine's own reader finds in it."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st

from dbdyno.engines.engine import Engine
from dbdyno.engines.facts import (
    Production,
    SettingNeed,
    numbers,
    plan_lines,
    proved,
    titles,
    unmet,
    unmoved,
    viewed,
    without_values,
)
from dbdyno.engines.firebird import facts as firebird
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.mariadb import facts as mariadb
from dbdyno.engines.mysql import facts as mysql
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.engines.postgresql import facts as postgresql
from dbdyno.engines.registry import ENGINES
from dbdyno.engines.sqlite import facts as sqlite
from dbdyno.frozen import Level

NAMES = some.from_regex(r"q[a-z]{2,8}(_[a-z]{2,6})?", fullmatch=True)
WORDS = some.text("abcXYZ0189 _-+.,:=#;'$%()", min_size=1, max_size=20).filter(
    lambda text: text == text.strip() and not text.startswith(("/", "~", "."))
)
LEVELS = some.one_of(some.integers(-1000, 10**12), WORDS)


def production(engine: Engine) -> Production:
    assert engine.production is not None
    return engine.production


@pytest.mark.parametrize("engine", [MARIADB, POSTGRESQL], ids=lambda engine: engine.name)
@given(settings=some.dictionaries(NAMES, LEVELS, min_size=1, max_size=5))
def test_what_is_written_is_read_again(engine: Engine, settings: dict[str, Level]) -> None:
    text = production(engine).written(settings)
    found = engine.settings.configured(text, None)
    assert {line.name: line.level for line in found} == {name: str(level) for name, level in settings.items()}
    assert [line.untaken for line in found] == [""] * len(settings)


def test_a_log_whose_value_would_name_a_file_is_switched_by_its_name() -> None:
    written = production(MARIADB).written
    assert written({"log_bin": False}).splitlines() == ["[mysqld]", "skip_log_bin"]
    assert written({"log_bin": True}).splitlines() == ["[mysqld]", "log_bin"]


def test_switches_are_words_of_the_engine() -> None:
    texts = {name: production(ENGINES[name]).written({"a": True}) for name in ("postgresql", "firebird")}
    assert texts == {"postgresql": "a = ON\n", "firebird": "a = true\n"}


def test_statements_of_sqlite_have_their_effect() -> None:
    settings: dict[str, Level] = {"synchronous": "normal", "cache_size": "8M", "temp_store": "memory"}
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(production(ENGINES["sqlite"]).written(settings))
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    assert found == [1, -8192, 2]


@pytest.mark.parametrize(
    ("name", "level", "command"),
    [
        ("page_buffers", 5000, "gfix -buffers 5000 DATABASE"),
        ("forced_writes", False, "gfix -write async DATABASE"),
        ("forced_writes", "on", "gfix -write sync DATABASE"),
        ("sweep_interval", 0, "gfix -housekeeping 0 DATABASE"),
        ("reserve_space", True, "gfix -use reserve DATABASE"),
        ("reserve_space", False, "gfix -use full DATABASE"),
        ("page_size", 16384, "gbak -b DATABASE backup.fbk; gbak -c -p 16384 backup.fbk NEW_DATABASE"),
    ],
)
def test_what_stands_in_a_firebird_database_has_a_command(name: str, level: Level, command: str) -> None:
    assert production(ENGINES["firebird"]).in_data[name](level) == command


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_what_stands_in_the_data_are_settings_of_the_engine(engine: Engine) -> None:
    known = production(engine).in_data.keys()
    assert known <= engine.settings.CREATION | {"page_buffers", "forced_writes", "sweep_interval"}


@pytest.mark.parametrize(
    ("name", "version", "release"),
    [
        ("mariadb", "11.8.6-MariaDB-0+deb13u1 from Debian", "11.8"),
        ("mysql", "9.7.4", "9.7"),
        ("postgresql", "17.12 (Debian 17.12-1)", "17"),
        ("firebird", "5.0.4", "5"),
    ],
)
def test_a_release_is_the_beginning_of_a_version(name: str, version: str, release: str) -> None:
    assert production(ENGINES[name]).release(version) == release


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
    assert list(plan_lines(steps)) == [
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
    assert next(iter(plan_lines(steps))) == "sort: sort key o.d"


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
    assert list(plan_lines(mysql.read(json.dumps(second)))) == [
        "sort: t.c",
        "  index lookup on t using k_1: k = ?",
    ]


def test_sqlite_is_told_as_a_tree() -> None:
    rows = [[3, 0, "SEARCH t USING INDEX k_1 (k>? AND k<?)"], [9, 0, "USE TEMP B-TREE FOR ORDER BY"]]
    assert list(plan_lines(sqlite.read(json.dumps(rows)))) == [
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
    assert next(plan_lines(steps)) == "select expression"
    assert firebird.read("") == ()


@pytest.mark.parametrize("read", [postgresql.read, mariadb.read, mysql.read, sqlite.read])
@pytest.mark.parametrize("text", ["", "no plan", "[1]", '{"a"'])
def test_what_is_no_plan_is_refused_in_words(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(ValueError):
        assert read(text)  # a form without steps has none
        raise ValueError


NEEDS = (
    SettingNeed(("sync", "format"), "log", off=("OFF",), unset="OFF", why="so there is no log"),
    SettingNeed(("siblings",), "delay", off=("0",), unset="0", why="so nothing waits"),
)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"sync": 1}, {"sync": "log is OFF, so there is no log"}),
        ({"sync": 1, "log": False}, {"sync": "log is OFF, so there is no log"}),
        ({"sync": 1, "log": "/data/name"}, {}),
        ({"sync": 1, "log": True, "siblings": 5}, {"siblings": "delay is 0, so nothing waits"}),
        ({"siblings": 5, "delay": "10"}, {}),
        ({"log": False}, {}),
    ],
)
def test_a_setting_cannot_matter_while_what_it_needs_is_off(
    settings: dict[str, Level], found: dict[str, str]
) -> None:
    assert unmet(NEEDS, settings) == found


def test_what_is_no_number_is_left_out() -> None:
    rows: list[list[str | float | None]] = [
        ["a", "4"],
        ["b", "ON"],
        ["c", None],
        ["d", 2.5],
        ["e", "1", "more"],
    ]
    assert numbers(rows) == {"a": 4.0, "d": 2.5, "e": 1.0}


def test_a_view_sums_the_counters_it_has_in_its_own_unit() -> None:
    view = {"waits, us": (1000.0, ("first", "second")), "absent": (1.0, ("third",))}
    assert viewed(view, {"first": 1.5, "second": 0.5, "other": 9.0}) == {"waits, us": 2000.0}


@pytest.mark.parametrize(("setting", "counters"), [("unknown", {"hits": 1.0}), ("cache", {"other": 1.0})])
def test_a_setting_without_a_counter_is_not_proved(setting: str, counters: dict[str, float]) -> None:
    assert proved({"cache": ("hits",)}, setting, counters, counters, "the status") is None


def test_what_a_counter_gained_proves_the_use() -> None:
    reading = proved({"cache": ("hits", "misses")}, "cache", {"hits": 1.0}, {"hits": 4.0}, "the status")
    assert reading is not None
    assert reading.value == "hits +3"
    assert reading.source == "the status, after the load less before it"


@pytest.mark.parametrize(
    ("after", "partial", "told"),
    [
        ({"hits": 1.0, "misses": 0.0}, frozenset(), "hits, misses did not move during the load"),
        ({"hits": 1.0, "misses": 2.0}, frozenset(), ""),
        ({"hits": 1.0, "misses": 0.0}, frozenset({"cache"}), ""),
        ({"other": 1.0}, frozenset(), ""),
    ],
)
def test_a_setting_is_idle_where_all_its_counters_stand_still(
    after: dict[str, float], partial: frozenset[str], told: str
) -> None:
    before = {"hits": 1.0, "misses": 0.0, "other": 0.0}
    assert unmoved({"cache": ("hits", "misses")}, partial, "cache", before, after) == told
