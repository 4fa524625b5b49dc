"""The formats of a report, spelled alike by every verb that prints one: `--format`, `--json`, `--output`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dbdyno.errors import UserError

FORMATS = ("terminal", "html", "markdown", "json")
BY_ENDING = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".txt": "terminal"}

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def format_options(command: Decorated) -> Decorated:
    """Adds the three options, as `form`, `as_json` and `output`."""
    for option in (
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            help="Write here instead of to standard output: .html, .md, .json or .txt.",
        ),
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            help="Default: by the ending of --output, else terminal.",
        ),
    ):
        command = option(command)
    return command


def format_of(form: str | None, as_json: bool, output: Path | None) -> str:
    """The format that the three options mean. Raises UserError where they contradict each other or say
    nothing."""
    if as_json and form not in (None, "json"):
        raise UserError(f"--json and --format {form} contradict each other", "leave one of the two out")
    if as_json or form is not None:
        return form or "json"
    if output is None:
        return "terminal"
    if output.suffix.lower() not in BY_ENDING:
        raise UserError(
            f"the ending of {output} names no format",
            f"add --format {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
        )
    return BY_ENDING[output.suffix.lower()]
