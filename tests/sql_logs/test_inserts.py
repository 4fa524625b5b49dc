"""How rows are inserted whose keys a log tells."""

from __future__ import annotations

import io
import tomllib
from typing import Any

import pytest

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.groups import grouped
from dbdyno.sql_logs.inserts import draw_new_keys
from dbdyno.sql_logs.schema import Schema, SchemaReader
from dbdyno.sql_logs.script import script
from dbdyno.sql_logs.seen import SeenStatement

TABLES = """
CREATE TABLE customers (id int AUTO_INCREMENT PRIMARY KEY, email varchar(80) UNIQUE, short char(4) UNIQUE);
CREATE TABLE orders (id bigint PRIMARY KEY, customer int, note text,
    FOREIGN KEY (customer) REFERENCES customers (id));
CREATE TABLE items (`order` bigint, line int, sku varchar(9), PRIMARY KEY (`order`, line),
    FOREIGN KEY (`order`) REFERENCES orders (id));
CREATE TABLE tagged (a bigint, b bigint, PRIMARY KEY (a, b), FOREIGN KEY (a) REFERENCES orders (id),
    FOREIGN KEY (b) REFERENCES orders (id));
CREATE TABLE sessions (token varchar(20) PRIMARY KEY, at datetime);
CREATE TABLE days (day date PRIMARY KEY);
"""


def schema() -> Schema:
    reader = SchemaReader(Dialect.MYSQL)
    reader.take(io.BytesIO(TABLES.encode()))
    return reader.schema


def drawn(*statements: str, told: bool = True) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """The transactions of a workload that is made of statements, and which keys each of them may meet."""
    seen = [SeenStatement(text, line, 1.0 / line) for line, text in enumerate(statements, 1)]
    traffic = grouped("slow log", seen, Dialect.MYSQL)
    draw_new_keys(traffic.groups, schema() if told else None, Dialect.MYSQL, "dump.sql")
    found = tomllib.loads(script("log", traffic, traffic.groups))
    return found["transactions"], [group.shape.may_meet for group in traffic.groups]


def test_a_key_is_drawn_beyond_the_largest_also_where_one_value_alone_was_seen() -> None:
    [one], [met] = drawn("INSERT INTO orders (id, note) VALUES (7, 'x')")
    assert one["values"] == {"p1": "sequence(:orders__id__next)"} and not met
    assert one["statements"] == ["INSERT INTO orders (id, note) VALUES (:p1, 'x')"]


def test_rows_and_statements_that_write_to_one_table_share_its_numbers_out() -> None:
    transactions, _ = drawn(
        "INSERT INTO orders (id) VALUES (7), (8)", "INSERT INTO `orders` (note, `id`) VALUES ('a', 9)"
    )
    first, second = (each["values"] for each in transactions)
    assert first == {
        "p1": ":orders__id__next + 0 + 3 * sequence(0)",
        "p2": ":orders__id__next + 1 + 3 * sequence(0)",
    }
    assert second == {"p1": ":orders__id__next + 2 + 3 * sequence(0)"}


def test_what_a_foreign_key_leads_to_is_drawn_among_its_rows() -> None:
    [one], [met] = drawn("INSERT INTO items VALUES (5, 1, 'a')", "INSERT INTO items VALUES (6, 2, 'a')")
    assert one["values"] == {"p1": "pick(:orders__id)", "p2": "sequence(:items__line__next)"} and not met


def test_texts_are_drawn_as_long_as_their_column_allows() -> None:
    [one], [met] = drawn("INSERT INTO sessions VALUES ('abc', NOW())")
    assert one["values"] == {"p1": "text(20)"} and not met
    [one], [met] = drawn("INSERT INTO customers (email) VALUES ('me@x')")
    assert one["values"] == {"p1": "uuid()"} and not met


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("INSERT INTO tagged (a, b) VALUES (1, 2)", "tagged (a, b)"),
        ("INSERT INTO customers (short) VALUES ('ab')", "customers (short)"),
        ("INSERT INTO days SET day = '2026-01-01'", "days (day)"),
        ("INSERT INTO elsewhere VALUES (1)", "dump.sql has no table elsewhere, or several"),
        ("INSERT INTO days VALUES (1, 2)", "it has other columns than days of dump.sql"),
    ],
)
def test_keys_that_cannot_be_new_are_told(statement: str, key: str) -> None:
    _, [met] = drawn(statement)
    assert met == (key,)


def test_without_a_schema_no_key_is_known() -> None:
    [one], [met] = drawn("INSERT INTO orders (id) VALUES (7)", told=False)
    assert "values" not in one and met == ("dump.sql does not tell its keys",)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders (note) VALUES ('x')",
        "INSERT INTO orders VALUES (NULL, 1, 'x')",
        "INSERT INTO customers VALUES (0, UUID(), NULL)",
        "INSERT IGNORE INTO orders (id) VALUES (7)",
        "INSERT INTO orders (id) VALUES (7) ON DUPLICATE KEY UPDATE note = 'x'",
        "INSERT INTO orders SELECT 1, 2, 'x'",
        "REPLACE INTO orders (id) VALUES (7)",
        "UPDATE orders SET note = 'x' WHERE id = 7",
    ],
)
def test_what_meets_no_row_stays_as_it_is(statement: str) -> None:
    [one], [met] = drawn(statement)
    assert "values" not in one and one["statements"] == [statement] and not met
