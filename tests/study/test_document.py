"""The text of TOML that Dyno writes, and what it means when it is read."""

from __future__ import annotations

import tomllib

import pytest

from dbdyno.frozen import Level
from dbdyno.study.document import WIDTH, inline, line, rows, table_text, toml


@pytest.mark.parametrize("value", ['a "quoted"\n line', "a duck: 🦆", 3, 0.5, True, ["2M", 4]])
def test_a_value_is_read_back(value: Level | list[Level]) -> None:
    assert tomllib.loads(f"value = {toml(value)}\n") == {"value": value}


def test_comments_stand_beside_their_keys_or_above_them_where_the_line_would_be_too_long() -> None:
    told = "what a newcomer may want to know " * 4
    lines = table_text("goal", [("margin", '"2%"', "short"), ("response", '"p99_ms"', told.strip())])
    assert lines[:2] == ["[goal]", 'margin   = "2%"      # short']
    assert lines[2].startswith("# what a newcomer") and lines[-1] == 'response = "p99_ms"'
    assert all(len(line) <= WIDTH for line in lines)
    assert tomllib.loads("\n".join(lines)) == {"goal": {"margin": "2%", "response": "p99_ms"}}


def test_no_rows_are_no_lines() -> None:
    assert rows([]) == []


def test_a_row_by_itself_and_a_table_within_a_line_are_read_back() -> None:
    entries = [("a", "1", "why"), ('"b.c"', '"x"', "")]
    assert [line(entry) for entry in entries] == ["a = 1  # why", '"b.c" = "x"']
    assert tomllib.loads(f"t = {inline(entries)}") == {"t": {"a": 1, "b.c": "x"}}
