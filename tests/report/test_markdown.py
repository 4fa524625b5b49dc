"""The Markdown report: snapshots, and text from outside stays text."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from tests.report.cases import CASES, masked
from tests.report.forms import as_markdown


@pytest.mark.parametrize("case", [case for case in CASES if case != "many"])
def test_as_written(case: str, snapshot: SnapshotAssertion) -> None:
    assert masked(as_markdown(CASES[case]())) == snapshot


@pytest.mark.parametrize("case", CASES)
def test_every_table_has_the_same_number_of_cells_in_each_row(case: str) -> None:
    html = MarkdownIt("commonmark").enable("table").render(as_markdown(CASES[case]()))
    tables = re.findall(r"<table>.*?</table>", html, re.S)
    assert tables
    for table in tables:
        heads = len(re.findall(r"<th[ >]", table))
        rows = [row.count("<td") for row in re.findall(r"<tr>.*?</tr>", table, re.S)[1:]]
        assert rows and set(rows) == {heads}


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    text = as_markdown(CASES["hostile"]())
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in html and "<em>" not in html and "<code>" not in html
    assert "alert(1)" in html
    assert "\x1b" not in text and "\u202e" not in text
