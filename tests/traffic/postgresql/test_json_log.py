"""PostgreSQL's log as JSON."""

from __future__ import annotations

import pytest

from tests.traffic.postgresql.logs import JSON, asked, read


def test_statements_have_their_values_their_time_and_where_they_ran() -> None:
    [first] = asked(JSON)
    assert first.text == "SELECT \"name\"\n  FROM customer WHERE id = '7'" and first.bound
    assert (first.line, first.session, first.database) == (1, "67439a31.b", "shop")
    assert first.took_s == 0.25 and first.at_s == pytest.approx(1795557001.25)


@pytest.mark.parametrize("line", [JSON[:200], '{"timestamp":"2026', "null", "[" * 100_000])
def test_a_line_that_is_cut_off_is_counted(line: str) -> None:
    assert [seen.rest for seen in read(f"{JSON}{line}\n")] == ["entry that is cut off", ""]
