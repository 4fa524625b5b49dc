"""A document in every form, as tests read it."""

from __future__ import annotations

from dbdyno.report.document import Document
from dbdyno.report.renderers import html, markdown, terminal
from tests.report.browser import Outline
from tests.report.forms import on_terminal


def in_every_form(report: Document, width: int = 100, details: bool = True) -> tuple[str, str, str]:
    """On a terminal, what a page shows, and as Markdown."""
    return (
        on_terminal(lambda console: terminal.render(report, console, details), width=width),
        Outline(html.render(report)).shown,
        markdown.render(report),
    )
