"""A document as Markdown: text stays text, and rows have as many cells as heads."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from dbdyno.report.renderers import markdown
from tests.report.renderers.every_element import HARMFUL


def as_html() -> str:
    text = markdown.render(HARMFUL)
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    shown = as_html()
    assert "<script" not in shown and "<em>" not in shown and "<code>" not in shown
    assert "alert(1)" in shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


def test_every_table_has_the_same_number_of_cells_in_each_row() -> None:
    tables = re.findall(r"<table>.*?</table>", as_html(), re.S)
    assert tables
    for table in tables:
        heads = len(re.findall(r"<th[ >]", table))
        rows = [row.count("<td") for row in re.findall(r"<tr>.*?</tr>", table, re.S)[1:]]
        assert rows and set(rows) == {heads}


def test_what_is_for_a_page_or_a_terminal_is_not_written() -> None:
    text = markdown.render(HARMFUL)
    assert "only in writing" in text and "only on a terminal" not in text and "Of a page" not in text
