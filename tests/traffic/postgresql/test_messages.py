"""Statements of PostgreSQL's log, of which several settings may tell at once."""

from __future__ import annotations

import pytest

from dbdyno.traffic.postgresql.entry import Entry
from dbdyno.traffic.postgresql.messages import statements
from dbdyno.traffic.seen import Seen


def asked(*messages: str | tuple[str, str], session: str = "1") -> list[Seen]:
    pairs = [message if isinstance(message, tuple) else (message, "") for message in messages]
    entries = [
        Entry(number, "LOG", message, detail, session=session, at_s=float(number))
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
        Entry(1, "LOG", "statement: SELECT 1", session="1"),
        Entry(2, "LOG", "statement: SELECT 2", session="2"),
        Entry(3, "LOG", "duration: 1.000 ms", session="1"),
        Entry(4, "LOG", "disconnection: session time: 0:00:01", session="1"),
        Entry(5, "LOG", "duration: 2.000 ms", session="2"),
    ]
    found = [(seen.text, seen.took_s) for seen in statements(entries) if not seen.rest]
    assert found == [("SELECT 1", 0.001), ("SELECT 2", 0.002)]


def test_a_plan_within_a_function_is_no_statement_of_a_client() -> None:
    [found] = statements([Entry(1, "LOG", PLAN, context="PL/pgSQL function f() line 3")])
    assert found.rest == "plan within a function"
