"""How a result reaches its reader: printed, or written to a file, in the form that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import click

from dbdyno.cli import formats
from dbdyno.findings.results import RESULTS
from dbdyno.host import paths
from dbdyno.report.document import Document
from dbdyno.report.renderers import markdown, terminal

NO_OTHERS: Mapping[str, Callable[[], str]] = MappingProxyType({})


def deliver(
    kind: str,
    found: object,
    form: str,
    output: Path | None,
    others: Mapping[str, Callable[[], str]] = NO_OTHERS,
    details: bool = False,
    **given: object,
) -> None:
    """Prints a result of one of `RESULTS`, or writes it to `output` and prints where.

    `others` make it in forms that are no document's, such as JUnit. What is written has all details. The
    document may need more than what was found, which is `given`.
    """
    result = RESULTS[kind]
    texts: dict[str, Callable[[], str]] = {"json": partial(result.json, found), **others}
    if result.junit is not None:
        texts.setdefault("junit", partial(result.junit, found))
    if form in texts:
        formats.deliver_text(texts[form](), output)
        return
    report = result.document(found, **given)
    if form == "terminal":
        everything = details or output is not None
        formats.deliver_printed(partial(terminal.render, report, details=everything), output)
    else:
        formats.deliver_text(page_of(report) if form == "html" else markdown.render(report), output)


def page_beside(report: Document, run: str) -> Path:
    """Writes the page of a run among the reports and returns its path."""
    paths.data()  # Makes the folder, or says why it cannot.
    path = paths.page_of_run(run)
    formats.write(path, page_of(report))
    return path


def tell_page(page: Path | str, form: str) -> None:
    """Says where the page of a run is, or how it is made: beside what is printed for machines, on standard
    error."""
    click.echo(f"Page: {page}", err=form != "terminal")


def page_of(report: Document) -> str:
    """A document as a page."""
    # Here, because what draws a page takes long to import.
    from dbdyno.report.renderers import html

    return html.render(report)
