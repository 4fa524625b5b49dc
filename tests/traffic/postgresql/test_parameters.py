"""Values of parameters, put into the statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.traffic.postgresql.parameters import of_detail, put_in

TEXTS = some.text(some.characters(codec="utf-8"), max_size=20)


@given(some.lists(TEXTS | some.none(), min_size=1, max_size=12))
def test_whatever_the_values_are_they_are_read_back(values: list[str | None]) -> None:
    written = ["NULL" if value is None else "'" + value.replace("'", "''") + "'" for value in values]
    listed = ", ".join(f"${number} = {literal}" for number, literal in enumerate(written, 1))
    found = of_detail(f"parameters: {listed}")
    if not any(value and (", $" in value or "'" in value) for value in values):
        assert list(found.values()) == written
    put_in("SELECT $1, $2", found)


@pytest.mark.parametrize(
    ("detail", "statement", "filled"),
    [
        ("parameters: $1 = '5', $2 = NULL", "SELECT $1, $2, '$1', a$1", "SELECT '5', NULL, '$1', a$1"),
        ("Parameters: $1 = 'it''s, $2 = ''x'''", "SELECT $1", "SELECT 'it''s, $2 = ''x'''"),
        ("parameters: $1 = 'a...', $2 = 'b'", "SELECT $1, $2", "SELECT $1, 'b'"),
        ("parameters: $1 = '1', $10 = '10'", "SELECT $10, $1, $2", "SELECT '10', '1', $2"),
        ("", "SELECT $1", "SELECT $1"),
        ("prepare: PREPARE p AS SELECT $1", "EXECUTE p(1)", "EXECUTE p(1)"),
    ],
)
def test_values_stand_in_the_place_of_their_parameters(detail: str, statement: str, filled: str) -> None:
    assert put_in(statement, of_detail(detail)) == filled
