"""PostgreSQL's log as CSV."""

from __future__ import annotations

import pytest

from tests.traffic.postgresql.logs import CSV, asked, read


def test_statements_have_their_values_their_time_and_where_they_ran() -> None:
    first, second = asked(CSV)
    assert first.text == "SELECT \"name\"\n  FROM customer WHERE id = '7'" and first.bound
    assert (first.line, first.session, first.database) == (1, "67439a31.b", "shop")
    assert first.took_s == 0.25 and first.at_s == pytest.approx(1795557001.25)
    assert (second.text, second.line, second.took_s) == ("BEGIN", 3, None)


def test_a_log_that_begins_and_ends_in_the_midst_of_a_row_is_read() -> None:
    cut = CSV.splitlines(keepends=True)
    found = read("".join([*cut[1:], cut[0]]))
    assert [seen.text for seen in found] == ["", "BEGIN"] and found[0].rest == "entry that is cut off"
