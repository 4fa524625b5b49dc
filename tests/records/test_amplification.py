"""Rows are as long as the mean of their table, where an engine counts by table."""

from __future__ import annotations

import pytest

from dbdyno.records.amplification import ALL_TABLES, RowsHeld, all_of, changed_bytes

HELD = {
    "large": RowsHeld(rows=10, text_bytes=10_000),
    "small": RowsHeld(rows=90, text_bytes=900),
    "empty": RowsHeld(rows=0, text_bytes=0),
}


def test_changed_rows_weigh_by_their_table() -> None:
    assert changed_bytes({"large": 2, "small": 30, "empty": 0}, HELD) == 2 * 1_000 + 30 * 10


def test_rows_of_all_tables_together_have_the_mean_of_all() -> None:
    assert all_of(HELD) == RowsHeld(rows=100, text_bytes=10_900)
    assert changed_bytes({ALL_TABLES: 50}, HELD) == 50 * 109


@pytest.mark.parametrize(
    ("table", "where"), [("empty", "in the table empty"), ("dropped", "the table dropped")]
)
def test_rows_of_which_none_is_left_have_no_length(table: str, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        changed_bytes({table: 1}, HELD)


def test_nothing_is_told_of_rows_where_no_table_has_any() -> None:
    with pytest.raises(ValueError, match="none is left in any table"):
        changed_bytes({ALL_TABLES: 1}, {})
