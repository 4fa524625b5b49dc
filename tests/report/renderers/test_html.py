"""A document as a page: hostile text makes no element, and a figure that is drawn has its place."""

from __future__ import annotations

import re

from dbdyno.report.document import Document, Figure, Section
from dbdyno.report.renderers import html
from tests.report.browser import Outline
from tests.report.cases import HOSTILE, fraction_of_seven
from tests.report.renderers.every_element import HARMFUL


def test_hostile_text_makes_no_element_and_stays_readable() -> None:
    outline = Outline(html.render(HARMFUL))
    figures = sum("data-figure" in attributes for _, attributes in outline.elements)
    assert figures == 2 and outline.count("script") == 2
    assert "</script><script>alert(1)</script>" in outline.shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", outline.shown)
    assert HOSTILE not in outline.shown


def test_a_page_shows_every_level_and_nothing_in_the_place_of_another() -> None:
    shown = Outline(html.render(HARMFUL)).shown
    assert "Of a page" in shown and "only in writing" in shown and "only on a terminal" not in shown


def test_a_section_whose_figure_has_nothing_to_show_is_left_out() -> None:
    whole = fraction_of_seven()
    pages = []
    for each in (whole, whole.model_copy(update={"trials": ()})):
        drawing = Figure("dbdyno.report.figures.charts:trials", (each,))
        pages.append(Outline(html.render(Document("title", (), (Section("Drawn", (drawing,)),)))))
    assert ["Drawn" in page.shown for page in pages] == [True, False]
    # Nor does a page without figures carry the library that draws them.
    assert [page.count("script") for page in pages] == [2, 1]
