"""The workload file, which the driver accepts as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.read import log_of, traffic_of
from dbdyno.sql_logs.record import record
from dbdyno.sql_logs.script import script, weights_of
from dbdyno.sql_logs.seen import LogReading, SeenStatement
from tests.sql_logs.mysql_cases import SLOW_MARIADB as MARIADB

SEEN = [
    *(SeenStatement(f"SELECT a FROM t WHERE b = {n} AND c = 'it''s' LIMIT 10", n, 0.5) for n in range(1, 4)),
    SeenStatement("SELECT a FROM t WHERE b IN (1, 2)", 4, 0.1),
    SeenStatement("SELECT a FROM t WHERE b IN (5, 6)", 5, 0.1),
    SeenStatement("SELECT a FROM t WHERE b IN (1, 2, 3)", 6, 0.1),
    SeenStatement("UPDATE t SET a = _utf8'x' WHERE d > DATE '2024-01-01' AND e = 1.5", 7, 2.0),
    SeenStatement("UPDATE t SET a = _utf8'y' WHERE d > DATE '2024-01-02' AND e = 2", 8, 2.0),
    SeenStatement("COMMIT", 9, 0.1),
]


def made(
    seen: list[SeenStatement], dialect: Dialect = Dialect.MYSQL
) -> tuple[str, dict[str, dict[str, object]]]:
    traffic = grouped("slow log", seen, dialect)
    text = script("slow.log", traffic, [group for group in traffic.groups if not group.why_not])
    return text, {each["name"]: each for each in tomllib.loads(text)["transactions"]}


def test_each_digest_is_a_transaction_with_the_share_that_was_seen() -> None:
    text, found = made(SEEN)
    assert {name: each["weight"] for name, each in found.items()} == {
        "update_1": 2,
        "select_2": 3,
        "select_3": 3,
    }
    assert "# 2 times, 22.2 % of the statements, 67.8 % of the time, WRITES." in text
    assert "2 of 2 lengths of its lists" in text
    assert "# 8 of the 9 statements in slow.log (slow log): 3 of 4 digests." in text


def test_the_file_says_that_it_holds_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "slow.log"
    path.write_text(MARIADB.replace("id = 7", "card = '4929 1234'"))
    traffic = traffic_of([path])
    text = script("slow.log", traffic, [group for group in traffic.groups if not group.why_not])
    assert "4929 1234" in text and "use shop" not in text
    head = " ".join(text.partition("title = ")[0].replace("#", "").split())
    assert "holds real values of production" in head and "ran in the database shop" in head


def test_what_varied_is_drawn_and_what_never_changed_stays() -> None:
    _, found = made(SEEN)
    assert found["select_2"]["values"] == {"p1": "uniform(1, 3)"}
    assert found["select_2"]["statements"] == ["SELECT a FROM t WHERE b = :p1 AND c = 'it''s' LIMIT 10"]


def test_lists_are_drawn_by_their_length_and_rows_of_a_key_as_they_stood_together() -> None:
    _, found = made(SEEN)
    assert found["select_3"]["atomic"] is False
    assert found["select_3"]["values"] == {
        "drawn": "uniform(1, 3)",
        "length": "case when :drawn <= 2 then 1 when :drawn <= 3 then 2 end",
    }
    assert found["select_3"]["statements"] == [
        {
            "if": ":length = 1",
            "sql": "SELECT a FROM t WHERE b IN (:p1, :p2)",
            "values": {"p1": "uniform(1, 5)", "p2": "uniform(2, 6)"},
        },
        {"if": ":length = 2", "sql": "SELECT a FROM t WHERE b IN (1, 2, 3)"},
    ]


@pytest.mark.parametrize(
    ("statement", "first", "second"),
    [
        ("SELECT a FROM t WHERE b = {0} AND c = {1}", "p1", "p2"),
        ("SELECT a FROM t WHERE d > 0 LIMIT {0} OFFSET {1}", "p1", "p2"),
        ("INSERT INTO t (a, b) VALUES ({0}, {1})", "p1", "p2"),
        ("INSERT INTO t (a, b) VALUES (7, 'x'), ({0}, {1})", "p1", "p2"),
    ],
)
def test_values_that_belong_together_are_drawn_as_they_stood(statement: str, first: str, second: str) -> None:
    seen = [SeenStatement(statement.format(*pair), 1) for pair in ((1, 10), (2, 20), (2, 20))]
    _, found = made(seen)
    [drawn] = found.values()
    assert drawn["values"] == {
        f"{first}n": "uniform(1, 2)",
        first: f"case when :{first}n = 1 then 2 when :{first}n = 2 then 1 end",
        second: f"case when :{first}n = 1 then 20 when :{first}n = 2 then 10 end",
    }


def test_what_says_the_type_of_a_text_stays_with_a_value_that_is_drawn() -> None:
    _, found = made(SEEN)
    assert found["update_1"]["statements"] == ["UPDATE t SET a = :p1 WHERE d > CAST(:p2 AS DATE) AND e = :p3"]


def test_values_that_nobody_knows_are_to_be_filled_in() -> None:
    text, found = made([SeenStatement("SELECT a FROM t WHERE f(b) = $1", 2, 0.5, 300)], Dialect.POSTGRESQL)
    assert found["select_1"]["values"] == {"p1": "fill_in()"} and "# TO BE FILLED IN" in text
    assert found["select_1"]["weight"] == 300


@given(some.lists(some.text(some.characters(codec="utf-8"), max_size=40), min_size=1, max_size=5))
def test_whatever_was_asked_the_file_is_toml(texts: list[str]) -> None:
    made([SeenStatement(f"SELECT {text}", 1) for text in ["1", *texts]])


def test_weights_keep_their_proportion_where_a_file_cannot_hold_them() -> None:
    traffic = grouped(
        "",
        [
            SeenStatement("SELECT a", 1, times=4_000_000_000),
            SeenStatement("SELECT b", 2, times=1_000_000_000),
        ],
        Dialect.MYSQL,
    )
    assert weights_of(traffic.groups) == [1_000_000_000, 250_000_000]


def test_values_that_nobody_knows_are_drawn_from_the_column_that_they_are_compared_with() -> None:
    asked = "SELECT a FROM t WHERE b = $1 AND c BETWEEN $2 AND $3 ORDER BY a LIMIT $4"
    text, found = made([SeenStatement(asked, 2, 0.5, 300)], Dialect.POSTGRESQL)
    values = found["select_1"]["values"]
    assert values == {
        "p1": "pick(:t__b)",
        "p2a": "pick(:t__c)",
        "p2b": "pick(:t__c)",
        "p2": "case when :p2a <= :p2b then :p2a else :p2b end",
        "p3": "case when :p2a <= :p2b then :p2b else :p2a end",
        "p4": "10",
    }
    start = tomllib.loads(text)["start"]["statements"]
    assert [each["list"] for each in start] == ["t__b", "t__c"]
    assert "# TO BE FILLED IN" not in text and "LIMIT 10, which no log tells" in text


def test_a_number_that_was_bound_is_drawn_as_a_number_and_stays_a_text_where_it_never_changes() -> None:
    seen = [
        SeenStatement(f"SELECT a FROM t WHERE b = '{n}' OR c = '0{n}' OR d = '7'", n, bound=True)
        for n in (1, 9)
    ]
    _, found = made(seen, Dialect.POSTGRESQL)
    assert found["select_1"]["values"] == {"p1": "uniform(1, 9)", "p2": "choice('01', '09')"}
    assert found["select_1"]["statements"] == ["SELECT a FROM t WHERE b = :p1 OR c = :p2 OR d = '7'"]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("b BETWEEN {0} AND {1}", {"p1": "uniform(1, 9001)", "p2": ":p1 + uniform(9, 19)"}),
        ("b >= {0} AND b < {1}", {"p1": "uniform(1, 9001)", "p2": ":p1 + uniform(9, 19)"}),
        ("b < {1} AND b > {0}", {"p2": "uniform(1, 9001)", "p1": ":p2 + uniform(9, 19)"}),
        ("b >= {0} AND c < {1}", {"p1": "uniform(1, 9001)", "p2": "uniform(10, 9020)"}),
    ],
)
def test_the_ends_of_a_range_are_drawn_together(condition: str, found: dict[str, str]) -> None:
    ranges = ((1, 10), (5001, 5010), (9001, 9020))
    seen = [SeenStatement(f"SELECT a FROM t WHERE {condition.format(*ends)}", 1) for ends in ranges]
    assert made(seen)[1]["select_1"]["values"] == found


def test_ends_that_are_texts_are_those_that_were_seen_together() -> None:
    days = (("2024-01-01", "2024-02-01"), ("2024-03-01", "2024-03-05"))
    seen = [
        SeenStatement(f"SELECT a FROM t WHERE d BETWEEN DATE '{one}' AND DATE '{other}'", 1)
        for one, other in days
    ]
    _, found = made(seen)
    assert found["select_1"]["statements"] == [
        "SELECT a FROM t WHERE d BETWEEN CAST(:p1 AS DATE) AND CAST(:p2 AS DATE)"
    ]
    assert found["select_1"]["values"] == {
        "p1n": "uniform(1, 2)",
        "p1": "case when :p1n = 1 then '2024-01-01' when :p1n = 2 then '2024-03-01' end",
        "p2": "case when :p1n = 1 then '2024-02-01' when :p1n = 2 then '2024-03-05' end",
    }


@pytest.mark.parametrize(
    ("dialect", "texts", "sql", "values"),
    [
        (Dialect.MYSQL, ("_utf8mb4'a'", "_utf8mb4 'b'"), "SELECT :p1", {"p1": "choice('a', 'b')"}),
        (Dialect.MYSQL, ("N'a'", "N'b'"), "SELECT :p1", {"p1": "choice('a', 'b')"}),
        (Dialect.MYSQL, ("TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-02'"),
         "SELECT CAST(:p1 AS DATETIME(6))", {"p1": "date('2024-01-01', '2024-01-02')"}),
        (Dialect.POSTGRESQL, ("INTERVAL '1 day'", "INTERVAL '2 days'"), "SELECT CAST(:p1 AS INTERVAL)",
         {"p1": "choice('1 day', '2 days')"}),
        (Dialect.POSTGRESQL, ("tags[lo:hi], 1", "tags[lo:hi], 2"), "SELECT tags[lo: hi], :p1",
         {"p1": "uniform(1, 2)"}),
        (Dialect.POSTGRESQL, ("tags[1:3]::text", "tags[2:4]::text"), "SELECT tags[:p1: :p2]::text",
         {"p1": "uniform(1, 2)", "p2": "uniform(3, 4)"}),
    ],
)  # fmt: skip
def test_what_stands_before_a_text_goes_with_it(
    dialect: Dialect, texts: tuple[str, str], sql: str, values: dict[str, str]
) -> None:
    _, found = made([SeenStatement(f"SELECT {text}", 1) for text in texts], dialect)
    assert found["select_1"]["statements"] == [sql] and found["select_1"]["values"] == values


def test_a_value_that_must_stand_in_its_text_is_never_another_one_without_a_word() -> None:
    for one, other in (("_latin1'a'", "_latin1'b'"), ("x'00'", "x'01'"), ("a COLLATE 'b'", "a COLLATE 'c'")):
        traffic = grouped(
            "", [SeenStatement(f"SELECT {one}", 1), SeenStatement(f"SELECT {other}", 2)], Dialect.MYSQL
        )
        assert traffic.groups[0].why_not in (
            "it holds a binary value that changes", "a value changes that must stand in its text"
        )  # fmt: skip


HIDDEN = ("customers", "hostess", "shopping", "4929123", "secretly", "weekday", "2019-07-04", "0xdeadbeef")


@pytest.mark.parametrize("form", ["workload", "recording"])
def test_nothing_that_somebody_may_not_know_stands_in_an_anonymous_file(tmp_path: Path, form: str) -> None:
    entry = (
        "# User@Host: customers[customers] @ hostess [10.9.8.7]\n"
        "# Thread_id: 7  Schema: shopping  QC_hit: No\n# Query_time: 0.1  Lock_time: 0.0\n"
        "SET timestamp=1795363200;\n{};\n"
    )
    asked = (
        "SELECT a FROM shopping.t /* weekday */ WHERE card = 4929123 AND name = 'secretly'",
        "INSERT INTO t VALUES (4929123, '2019-07-04', 0xdeadbeef, \"secretly\") -- weekday",
        "/*!40001 SELECT 'secretly' */ FROM t WHERE made > '2019-07-04 10:00:00'",
    )
    path = tmp_path / "slow.log"
    path.write_text("".join(entry.format(text) for text in asked))
    log = log_of([path], LogReading(whole=True, key=b"a key"))
    if form == "workload":
        traffic = log.traffic("shopping")
        text = script("slow.log", traffic, [group for group in traffic.groups if not group.why_not])
    else:
        record(log, "slow.log", tmp_path / "log.replay", "shopping")
        text = (tmp_path / "log.replay").read_bytes().decode("utf-8", "replace")
    assert "INSERT INTO t VALUES" in text and not [word for word in HIDDEN if word in text]
