"""Statements of PostgreSQL's log, of which several settings may tell at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.formats import DriverReader
from dbdyno.sql_logs.groups import Grouping
from dbdyno.sql_logs.postgresql.entries import LogEntry
from dbdyno.sql_logs.seen import LogReading, SeenStatement


def statements(entries: list[LogEntry]) -> list[SeenStatement]:
    reader = DriverReader("entries", LogReading(), cut=lambda _: iter(entries))
    return [*reader.read(()), *reader.ended()]


def asked(*messages: str | tuple[str, str], session: str = "1") -> list[SeenStatement]:
    pairs = [message if isinstance(message, tuple) else (message, "") for message in messages]
    entries = [
        LogEntry(number, "LOG", message, detail, session=session, at_s=float(number))
        for number, (message, detail) in enumerate(pairs, 1)
    ]
    return [seen for seen in statements(entries) if not seen.rest]


def test_a_duration_alone_is_of_the_statement_before_it() -> None:
    found = asked(
        "duration: 9.000 ms", "statement: SELECT 1", "duration: 2.000 ms", "duration: 8.000 ms",
        "execute a: SELECT 2",
    )  # fmt: skip
    assert [(seen.text, seen.took_s, seen.at_s) for seen in found] == [
        ("SELECT 1", 0.002, 2.0),
        ("SELECT 2", None, 5.0),
    ]


def test_a_duration_is_not_given_to_a_statement_where_sessions_are_not_told() -> None:
    [found] = asked("statement: SELECT 1", "duration: 2.000 ms", session="")
    assert found.took_s is None


PLAN = "duration: 1.000 ms  plan:\nQuery Text: SELECT $1\nResult  (cost=0.00..0.01 rows=1 width=4)"
DETAIL = "parameters: $1 = '5'"


@pytest.mark.parametrize(
    ("messages", "took_s"),
    [
        ((PLAN,), 0.001),
        ((PLAN, ("duration: 3.000 ms  execute <unnamed>: SELECT $1", DETAIL)), 0.003),
        ((("duration: 3.000 ms  execute <unnamed>: SELECT $1", DETAIL), PLAN), 0.003),
        ((("execute <unnamed>: SELECT $1", DETAIL), PLAN), 0.001),
        ((("execute <unnamed>: SELECT $1", DETAIL), PLAN, "duration: 3.000 ms"), 0.003),
    ],
)
def test_a_statement_that_is_told_twice_counts_once(
    messages: tuple[str | tuple[str, str], ...], took_s: float
) -> None:
    [found] = asked(*messages)
    assert found.text == ("SELECT $1" if messages == (PLAN,) else "SELECT '5'")
    assert found.took_s == took_s


def test_the_same_statement_asked_twice_counts_twice() -> None:
    assert len(asked(PLAN, PLAN)) == 2 and len(asked("statement: SELECT 1", "statement: SELECT 1")) == 2
    assert len(asked("statement: SELECT 1;", PLAN)) == 2


def test_the_steps_of_a_statement_are_of_its_time() -> None:
    first, second = asked(
        "duration: 1.000 ms  parse S_1: SELECT 1", "duration: 2.000 ms  bind S_1: SELECT 1",
        "duration: 4.000 ms  execute S_1/C_2: SELECT 1", "duration: 4.000 ms  execute S_1/C_2: SELECT 1",
        "duration: 4.000 ms  execute fetch from S_1/C_2: SELECT 1",
    )  # fmt: skip
    assert first.took_s == pytest.approx(0.007) and second.took_s == pytest.approx(0.004)


def test_sessions_do_not_disturb_each_other() -> None:
    entries = [
        LogEntry(1, "LOG", "statement: SELECT 1", session="1"),
        LogEntry(2, "LOG", "statement: SELECT 2", session="2"),
        LogEntry(3, "LOG", "duration: 1.000 ms", session="1"),
        LogEntry(4, "LOG", "disconnection: session time: 0:00:01", session="1"),
        LogEntry(5, "LOG", "duration: 2.000 ms", session="2"),
    ]
    found = [(seen.text, seen.took_s) for seen in statements(entries) if not seen.rest]
    assert found == [("SELECT 1", 0.001), ("SELECT 2", 0.002)]


def test_a_plan_within_a_function_is_no_statement_of_a_client() -> None:
    [found] = statements([LogEntry(1, "LOG", PLAN, context="PL/pgSQL function f() line 3")])
    assert found.rest == "plan within a function"


TEXTS = some.text(some.characters(codec="utf-8"), max_size=20)


@given(some.lists(TEXTS | some.none(), min_size=1, max_size=12))
def test_whatever_the_values_are_they_are_read_back(values: list[str | None]) -> None:
    written = ["NULL" if value is None else "'" + value.replace("'", "''") + "'" for value in values]
    listed = ", ".join(f"${number} = {literal}" for number, literal in enumerate(written, 1))
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    [found] = asked((f"execute a: SELECT {places}", f"parameters: {listed}"))
    whole = [f"${number}" if text.endswith("...'") else text for number, text in enumerate(written, 1)]
    assert found.text == f"SELECT {', '.join(whole)}" and found.bound


@pytest.mark.parametrize(
    ("detail", "statement", "filled"),
    [
        ("parameters: $1 = '5', $2 = NULL", "SELECT $1, $2, '$1', a$1", "SELECT '5', NULL, '$1', a$1"),
        ("Parameters: $1 = 'it''s, $2 = ''x'''", "SELECT $1", "SELECT 'it''s, $2 = ''x'''"),
        ("parameters: $1 = 'a...', $2 = 'b'", "SELECT $1, $2", "SELECT $1, 'b'"),
        ("parameters: $1 = 'a', $2 = 'b", "SELECT $1, $2", "SELECT $1, $2"),
        ("parameters: $1 = ''', $2 = ''x''', $2 = '2'", "SELECT $1, $2", "SELECT ''', $2 = ''x''', '2'"),
        ("parameters: $1 = '1', $10 = '10'", "SELECT $10, $1, $2", "SELECT '10', '1', $2"),
        ("", "SELECT $1", "SELECT $1"),
        ("prepare: PREPARE p AS SELECT $1", "EXECUTE p(1)", "EXECUTE p(1)"),
    ],
)
def test_values_stand_in_the_place_of_their_parameters(detail: str, statement: str, filled: str) -> None:
    [found] = asked((f"execute a: {statement}", detail))
    assert found.text == filled


def test_an_execute_is_played_as_it_was_sent_and_drawn_as_what_it_stands_for() -> None:
    detail = "prepare: PREPARE q(int, text) AS SELECT a FROM t WHERE id = $1 AND b = $2;"
    asked_ = [
        LogEntry(n, "LOG", f"statement: EXECUTE q({n}, f('x,{n}'))", detail, session="1") for n in (1, 2)
    ]
    assert [seen.text for seen in statements(asked_)] == ["EXECUTE q(1, f('x,1'))", "EXECUTE q(2, f('x,2'))"]
    grouping = Grouping("log", Dialect.POSTGRESQL)
    reader = DriverReader("entries", LogReading(), cut=lambda _: iter(asked_))
    reader.group((), grouping)
    reader.group_rest(grouping)
    [group] = grouping.traffic().groups
    assert (group.digest, group.count) == ("SELECT a FROM t WHERE id = ? AND b = f(?)", 2)


ROWS = """\
duration: 1.000 ms  plan:
Query Text: UPDATE t SET a = 1 WHERE b BETWEEN 1 AND 9
Update on t  (cost=0.29..8.30 rows=0 width=0) (actual rows=0 loops=1)
  ->  Nested Loop  (cost=0.29..8.30 rows=9 width=4) (actual rows=18.00 loops=1)
        ->  Seq Scan on u  (cost=0.29..8.30 rows=9 width=4) (actual time=0.010..0.020 rows=2 loops=1)
              Filter: (c = 1)
              Rows Removed by Filter: 8
        ->  Bitmap Heap Scan on t  (cost=0.29..8.30 rows=9 width=4) (actual rows=9 loops=2)
              ->  Bitmap Index Scan on t_b  (cost=0.00..4.30 rows=9 width=0) (actual rows=9 loops=2)"""


def test_a_plan_that_was_executed_tells_its_rows() -> None:
    [found] = asked(ROWS)
    assert (found.rows, found.affected, found.examined) == (None, 18, 28)
    [found] = asked(ROWS.replace("Update on t", "Sort").replace("rows=0 loops", "rows=7 loops"))
    assert (found.rows, found.affected, found.examined) == (7, None, 28)
    [found] = asked(PLAN)
    assert (found.rows, found.affected, found.examined) == (None, None, None)


STATEMENT = 'SELECT "a"\n  FROM t\n WHERE b = $1'
WRITTEN = r"\"a\"\n  FROM t\n WHERE b = $1"
PLAN_TEXT = (
    f"Query Text: {STATEMENT}\n%s"
    "Index Scan using t_b on t  (cost=0.29..8.30 rows=1 width=4)\n  Index Cond: (b = 7)"
)
PLAN_JSON = '{\n  "Query Text": "SELECT ' + WRITTEN + '",\n%s  "Plan": {\n    "Node Type": "Seq Scan"\n  }\n}'
PLAN_YAML = 'Query Text: "SELECT ' + WRITTEN + '"\n%sPlan: \n  Node Type: "Seq Scan"'
PLAN_XML = (
    '<explain xmlns="http://www.postgresql.org/2009/explain">\n'
    "  <Query-Text>SELECT &quot;a&quot;\n  FROM t\n WHERE b = $1</Query-Text>\n"
    "%s  <Plan>\n  </Plan>\n</explain>"
)


@pytest.mark.parametrize(
    ("plan", "parameters"),
    [
        (PLAN_TEXT, "Query Parameters: $1 = 'it''s'\n"),
        (PLAN_JSON, "  \"Query Parameters\": \"$1 = 'it''s'\",\n"),
        (PLAN_YAML, "Query Parameters: \"$1 = 'it''s'\"\n"),
        (PLAN_XML, "  <Query-Parameters>$1 = &apos;it''s&apos;</Query-Parameters>\n"),
    ],
    ids=["text", "json", "yaml", "xml"],
)
def test_a_plan_tells_its_statement_and_its_parameters(plan: str, parameters: str) -> None:
    [without] = asked(f"duration: 1.000 ms  plan:\n{plan % ''}")
    [found] = asked(f"duration: 1.000 ms  plan:\n{plan % parameters}")
    assert without.text == STATEMENT and not without.bound
    assert found.text == STATEMENT.replace("$1", "'it''s'") and found.bound


@pytest.mark.parametrize("plan", ["Seq Scan on t", ""])
def test_what_is_no_plan_is_counted(plan: str) -> None:
    [found] = statements([LogEntry(1, "LOG", f"duration: 1.000 ms  plan:\n{plan}")])
    assert found.rest == "plan without its statement"
