"""The report of a soak, as `dyno soak` and `dyno report` deliver it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dbdyno.analyse.soak import SoakResult
from dbdyno.cli.formats import deliver, write
from dbdyno.host import paths
from dbdyno.report import as_json, html, junit, markdown
from dbdyno.report.parts import soak as soak_part


def deliver_soak(found: SoakResult, form: str, output: Path | None) -> None:
    """Prints a soak, or writes it and prints where."""
    deliver(
        form,
        output,
        partial(soak_part.render, found),
        {
            "html": partial(html.soak, found),
            "markdown": partial(markdown.soak, found),
            "json": partial(_document, found),
            "junit": partial(junit.soak, found),
        },
    )


def _document(found: SoakResult) -> str:
    return as_json.of_model(found, {"run": as_json.OF_A_RUN}) + "\n"


def page_beside(found: SoakResult) -> Path:
    """Writes a soak's page among the reports and returns its path."""
    path = paths.data() / "reports" / f"{found.run.run}.html"
    write(path, html.soak(found))
    return path
