"""Every kind of page fits a narrow screen, and a browser shows it without a complaint."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

from dbdyno.analyse.compare import compare
from dbdyno.layers.registry import related_factors
from dbdyno.report import html
from dbdyno.report.figures import flame
from dbdyno.report.parts import profile as profile_words
from tests.analyse.test_compare import a_host, analysed
from tests.report.cases import CASES, fraction_of_seven
from tests.report.figures.test_flame import FAST, SLOW
from tests.report.figures.test_gate import GATE
from tests.report.forms import with_frontier
from tests.report.test_html import DARK, browse, needs_chromium


def comparison() -> str:
    sides = analysed(a_host(4)), analysed(a_host(8, 3300.0, thp="never"), speed=2.2, seed=2)
    return html.comparison(compare([sides[0]], [sides[1]], related=related_factors()))


def gap() -> str:
    found = fraction_of_seven().gap
    assert found is not None
    return html.explained(found, "Why is it slow?")


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: html.render(CASES["all_verdicts"]()),
    "factorial": lambda: html.render(CASES["file_systems"]()),
    "frontier": lambda: html.render(with_frontier()),
    "gap": gap,
    "comparison": comparison,
    "gate": lambda: html.gate(GATE),
    "profiles": lambda: flame.page("Cache", [SLOW, FAST], profile_words.notes([SLOW, FAST], embedded=False)),
}

FRAME = """<!doctype html>
<iframe style="border:0" width="{width}" height="900" srcdoc="{page}"></iframe><script>
addEventListener("load", () => setTimeout(() => {{
  document.title = document.querySelector("iframe").contentDocument.documentElement.scrollWidth;
}}, 500));</script>"""
"""A browser's window has a least width, which is more than that of a narrow screen; a frame has none."""


@needs_chromium
@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("width", [420, 800])
def test_no_page_is_wider_than_its_screen(kind: str, width: int, tmp_path: Path) -> None:
    path = tmp_path / "frame.html"
    path.write_text(FRAME.format(width=width, page=escape(PAGES[kind]())), encoding="utf-8")
    done = browse(path, tmp_path, DARK, "--dump-dom")
    told = re.search(r"<title>(\d+)</title>", done.stdout)
    assert told is not None and int(told[1]) <= width
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
