"""A document in every form, as tests read it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

from dbdyno.report import document
from dbdyno.report.document import Document, Row
from dbdyno.report.renderers import html, markdown, terminal
from tests.report.browser import Outline
from tests.report.forms import on_terminal


def printed(report: Document, width: int = 100, details: bool = True) -> str:
    """On a terminal without colours."""
    return on_terminal(lambda console: terminal.render(report, console, details), width)


def figures(row: Row) -> list[str]:
    """The texts of a row's cells, each line by itself."""
    cells = map(document.cell, row)
    return [document.plain(words) for cell in cells for words in (cell.words, *cell.below)]


def in_every_form(report: Document, width: int = 100, details: bool = True) -> tuple[str, str, str]:
    """On a terminal, what a page shows, and as Markdown."""
    return (
        printed(report, width, details),
        Outline(html.render(report)).shown,
        markdown.render(report),
    )


def packed_in(page: str) -> dict[str, Any]:
    """The figures that lie packed in a page, by their key."""
    found = re.search(r'id="packed">([^<]*)<', page)
    assert found is not None
    content = zlib.decompress(base64.b64decode(found[1]), -zlib.MAX_WBITS).decode()
    figures: dict[str, Any] = json.loads(content.partition("\0")[2])
    return figures
