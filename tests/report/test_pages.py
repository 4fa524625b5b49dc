"""Every kind of page can be read on a phone and on a desk, in light and in dark: a browser looks at each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dbdyno.analyse.compare import compare
from dbdyno.findings import code, gate, matrix, museum, trend
from dbdyno.findings import compare as compare_part
from dbdyno.findings import gap as gap_part
from dbdyno.findings import profile as profile_words
from dbdyno.layers.registry import related_factors
from dbdyno.report.renderers import html as document_html
from tests.analyse.compare_cases import a_host, analysed
from tests.findings import code_cases, matrix_cases, museum_cases
from tests.report.browser import needs_chromium
from tests.report.cases import fraction_of_seven
from tests.report.figures.flame_cases import FAST, SLOW
from tests.report.figures.gate_cases import GATE
from tests.report.forms import as_page, over_days, page_of_case, with_frontier
from tests.report.look import WIDTHS, Faults, Look, look
from tests.report.picture import stored_analysis

pytestmark = needs_chromium


def comparison() -> str:
    sides = analysed(a_host(4)), analysed(a_host(8, 3300.0, thp="never"), speed=2.2, seed=2)
    found = compare([sides[0]], [sides[1]], related=related_factors())
    return document_html.render(compare_part.document(found))


def gap() -> str:
    found = fraction_of_seven().gap
    assert found is not None
    return document_html.render(gap_part.document(found, "Why is it slow?"))


def profiles() -> str:
    return document_html.render(profile_words.document([SLOW, FAST], "Cache", embedded=False))


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: page_of_case("all_verdicts"),
    "stored": lambda: as_page(stored_analysis()),
    "factorial": lambda: page_of_case("file_systems"),
    "many": lambda: page_of_case("many"),
    "frontier": lambda: as_page(with_frontier()),
    "gap": gap,
    "comparison": comparison,
    "trend": lambda: document_html.render(trend.document(over_days())),
    "matrix": lambda: document_html.render(matrix.document(matrix_cases.found())),
    "museum": lambda: document_html.render(museum.document(museum_cases.found())),
    "code": lambda: document_html.render(code.document(code_cases.found())),
    "gate": lambda: document_html.render(gate.document(GATE)),
    "profiles": profiles,
}

every_page = pytest.mark.parametrize("kind", PAGES)
every_width = pytest.mark.parametrize("width", WIDTHS)


@cache
def look_or_failure(kind: str) -> Look | Exception:
    """A failure is kept as well: a browser that does not start is not started anew for each test."""
    try:
        with TemporaryDirectory() as folder:
            return look(PAGES[kind](), Path(folder))
    except Exception as failure:
        return failure


def looked_at(kind: str) -> Look:
    found = look_or_failure(kind)
    if isinstance(found, Exception):
        raise found
    return found


def faults(kind: str, width: int) -> Faults:
    return looked_at(kind).faults[width]


@every_page
def test_a_browser_shows_every_page_without_a_complaint(kind: str) -> None:
    assert looked_at(kind).complaints == ()


@every_page
@every_width
def test_no_page_and_no_table_scrolls_sideways(kind: str, width: int) -> None:
    """Save the grid of two factors, which would be no grid in lines below each other."""
    found = faults(kind, width)
    assert found.wide == () and found.scrolled == ()


@every_page
@every_width
def test_no_words_of_a_figure_are_cut_or_lie_on_others(kind: str, width: int) -> None:
    found = faults(kind, width)
    assert found.cut == () and found.collisions == () and found.shrunk == ()


@every_page
@every_width
def test_every_word_stands_out_from_its_ground_in_both_themes(kind: str, width: int) -> None:
    assert faults(kind, width).pale == ()


@every_page
def test_every_page_has_a_button_for_its_theme(kind: str) -> None:
    assert {one.clicked for one in looked_at(kind).faults.values()} == {"light"}


FAULTY = """<!doctype html><style>body { margin: 0; background: #fff; }</style>
<button class="theme">Theme</button>
<p style="color: #aaa">pale</p><div style="width: 600px">wide</div>
<div class="scroll" style="width: 100px; overflow: auto"><div style="width: 300px">scrolled</div></div>
<div class="figure" id="small" style="width: 100px; overflow: hidden"><svg viewBox="0 0 300 40" width="100">
<text y="20">one</text><text y="20">two</text><text x="290" y="20">cut off</text></svg></div>"""


def test_each_fault_is_seen_where_there_is_one(tmp_path: Path) -> None:
    seen = look(FAULTY, tmp_path).faults
    narrow, wide = seen[420], seen[1200]
    assert narrow.wide == ("600",) and wide.wide == ()
    assert len(narrow.scrolled) >= 1 and "scrolled" in narrow.scrolled[0]
    assert narrow.collisions == ("one on two",) and narrow.shrunk == ("small",)
    assert any("cut off" in one for one in narrow.cut)
    assert [one for one in narrow.pale if one.startswith("light")] == ["light P : pale"]
    assert narrow.clicked == ""
