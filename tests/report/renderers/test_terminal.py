"""A document on a terminal: nothing steers it, nothing is wider than it, and each level shows its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dbdyno.report.document import (
    Column,
    ColumnKind,
    Document,
    Fitting,
    Notes,
    Section,
    Table,
    table,
)
from dbdyno.report.renderers import terminal
from tests.report.forms import on_terminal
from tests.report.renderers.every_element import HARMFUL


def printed(report: Document, width: int = 100, details: bool = False, colour: bool = False) -> str:
    return on_terminal(lambda console: terminal.render(report, console, details), width, colour)


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in printed(HARMFUL, width).split("\n")) <= width


def test_text_from_outside_steers_no_terminal() -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed(HARMFUL))
    assert "\x1b[31mred" not in printed(HARMFUL, colour=True)


def test_what_is_for_writing_or_a_page_is_not_printed() -> None:
    for details in (False, True):
        text = printed(HARMFUL, details=details)
        assert "only on a terminal" in text and "only in writing" not in text and "Of a page" not in text


def test_the_first_layout_that_has_room_is_taken() -> None:
    wide = table(["variant", *(f"figure {index}" for index in range(9))], [["one", *"123456789"]])
    narrow = Table((Column("variant", ColumnKind.NAME), Column("figure 0")), (("one", "1"),))
    report = Document("title", (), (Section("", (Fitting((wide, narrow)),)),))
    assert "figure 8" in printed(report, 120)
    assert "figure 0" in printed(report, 40) and "figure 8" not in printed(report, 40)


@given(st.sets(st.text("ab", max_size=40), min_size=2, max_size=9), st.integers(40, 120))
def test_names_that_are_cut_stay_different(middles: set[str], width: int) -> None:
    names = [f"config.innodb_flush = {middle}, config.sync_binlog = 0" for middle in middles]
    long = Table(
        (Column("variant", ColumnKind.NAME), Column("ratio")), tuple((name, "1.122") for name in names)
    )
    cut = terminal._with_short_names(long, Console(width=width)).rows
    assert len({str(row[0]) for row in cut}) == len(names)


def test_what_is_optional_and_has_no_room_is_left_out_with_its_section() -> None:
    wide = table(["variant", *(f"figure {index}" for index in range(9))], [["one", *"123456789"]])
    for optional, there in ((True, False), (False, True)):
        report = Document("title", (), (Section("Wide", (Fitting((wide,), optional), Notes(("note",)))),))
        assert all((word in printed(report, 40)) is there for word in ("Wide", "figure 8: 9", "note"))


def test_a_table_without_room_has_lines_for_each_row() -> None:
    wide = table(["variant", *(f"figure {index}" for index in range(9))], [["one", *"123456789"]])
    lines = printed(Document("title", (), (Section("", (wide,)),)), 40).split("\n")
    assert any(line.startswith("one") for line in lines)
    assert any("figure 8: 9" in line for line in lines)
