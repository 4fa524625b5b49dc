"""The formats of a report, spelled alike by every verb that prints one: `--format`, `--json`, `--output`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from dbdyno.cli.preferences import preferred
from dbdyno.cli.terminal import on_paper, terminal
from dbdyno.errors import UserError
from dbdyno.host.paths import made_whole
from dbdyno.study import excludes

FORMATS = ("terminal", "html", "markdown", "json")
VERDICT_FORMATS = (*FORMATS, "junit")
TABLE_FORMATS = (*FORMATS, "csv")
BY_ENDING = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".json": "json",
    ".txt": "terminal",
    ".xml": "junit",
    ".csv": "csv",
}

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def format_options(command: Decorated) -> Decorated:
    """Adds the three options, as `form`, `as_json` and `output`."""
    return _with_options(command, FORMATS, ".html, .md, .json or .txt")


def verdict_format_options(command: Decorated) -> Decorated:
    """The same for a verb that shows verdicts, which pipelines read as JUnit XML."""
    return _with_options(command, VERDICT_FORMATS, ".html, .md, .json, .xml (JUnit) or .txt")


def table_format_options(command: Decorated) -> Decorated:
    """The same for a verb whose rows a spreadsheet reads."""
    return _with_options(command, TABLE_FORMATS, ".html, .md, .json, .csv or .txt")


def _with_options(command: Decorated, formats: tuple[str, ...], endings: str) -> Decorated:
    for option in (
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            help=f"Write here instead of to standard output: {endings}.",
        ),
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            "--format",
            "form",
            type=click.Choice(formats),
            help="Default: by the ending of --output, else that of `dyno config`, else terminal.",
        ),
    ):
        command = option(command)
    return command


def format_of(form: str | None, as_json: bool, output: Path | None, offered: Sequence[str] = FORMATS) -> str:
    """The format that the three options mean. Raises UserError where they contradict each other or name none
    of those that are offered."""
    excludes.require(json=as_json, format=None if form == "json" else form)
    if as_json or form is not None:
        return form or "json"
    if output is None:
        return str(preferred("format"))
    named = BY_ENDING.get(output.suffix.lower())
    if named is None or named not in offered:
        raise UserError(
            f"the ending of {output} names no format of this command",
            f"add --format {', '.join(offered[:-1])} or {offered[-1]}",
        )
    return named


def verdict_format_of(form: str | None, as_json: bool, output: Path | None) -> str:
    """The same for a verb that shows verdicts."""
    return format_of(form, as_json, output, VERDICT_FORMATS)


def deliver(
    form: str,
    output: Path | None,
    render: Callable[[Console], None],
    texts: Mapping[str, Callable[[], str]],
) -> None:
    """Prints a report, or writes it to `output` and prints where. `render` shows it on a terminal; `texts`
    make it in every other format."""
    if form == "terminal":
        deliver_printed(render, output)
    else:
        deliver_text(texts[form](), output)


def deliver_printed(render: Callable[[Console], None], output: Path | None) -> None:
    """Prints what `render` shows on a terminal, or writes it and prints where."""
    if output is None:
        render(terminal())
    else:
        deliver_text(_printed(render), output)


def deliver_text(text: str, output: Path | None) -> None:
    """Prints a text, or writes it and prints where."""
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        write(output, text)
        click.echo(str(output))


def _printed(render: Callable[[Console], None]) -> str:
    """What `render` prints on a wide terminal, as text."""
    console = on_paper(width=120)
    render(console)
    return console.export_text()


def write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: a reader never meets half a report."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with made_whole(path) as making:
            making.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}", "choose another place with --output"
        ) from None
