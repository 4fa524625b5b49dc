"""`dyno report`: shows a run again, from the store alone."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from dbdyno.analyse import Analysis, analyse
from dbdyno.cli.exit_codes import GATE_FAILS_ON, exit_code, fail_on_option, verdicts_of
from dbdyno.cli.formats import format_of, verdict_format_options
from dbdyno.cli.options import store_option
from dbdyno.cli.study_file import study_of
from dbdyno.errors import UserError
from dbdyno.host import paths
from dbdyno.records.record import Run
from dbdyno.records.store import Store, store_url
from dbdyno.report import as_json, html, junit, markdown, terminal


@click.command()
@click.argument("run", default="last")
@verdict_format_options
@click.option(
    "--details",
    is_flag=True,
    help="On the terminal, where the time of operations and of trials goes as well.",
)
@fail_on_option
@store_option
def command(
    run: str,
    form: str | None,
    as_json: bool,
    output: Path | None,
    details: bool,
    fail_on: tuple[str, ...],
    store: str | None,
) -> None:
    """Show RUN again: its name, the start of its name, or `last` (the default)."""
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = opened.run(run)
        analysis = _analysis(opened, found)
    deliver(analysis, form, output, details, fail_on)
    if fail_on:
        sys.exit(exit_code(analysis, fail_on))


def deliver(
    analysis: Analysis,
    form: str,
    output: Path | None,
    details: bool = False,
    fail_on: tuple[str, ...] = (),
) -> None:
    """Prints a run's report, or writes it and prints where."""
    if output is not None:
        write(output, _text(analysis, form, fail_on))
        click.echo(str(output))
    elif form == "terminal":
        terminal.render(analysis, Console(highlight=False), details)
    else:
        click.echo(_text(analysis, form, fail_on))


def html_beside(analysis: Analysis) -> Path:
    """Writes a run's HTML report among the reports and returns its path."""
    path = paths.data() / "reports" / f"{analysis.run.run}.html"
    write(path, html.render(analysis))
    return path


def _analysis(store: Store, run: Run) -> Analysis:
    records = store.records(run.run)
    if not records:
        raise UserError(f"run {run.run} has no trial yet", f"dyno run --resume {run.run}")
    return analyse(study_of(run), run, records)


def _text(analysis: Analysis, form: str, fail_on: tuple[str, ...]) -> str:
    if form == "junit":
        return junit.render(analysis, verdicts_of(fail_on or GATE_FAILS_ON))
    if form == "html":
        return html.render(analysis)
    if form == "markdown":
        return markdown.render(analysis)
    if form == "json":
        return as_json.render(analysis)
    return printed(lambda console: terminal.render(analysis, console, details=True))


def printed(render: Callable[[Console], None]) -> str:
    """What `render` prints on a wide terminal, as text."""
    console = Console(record=True, highlight=False, width=120, file=io.StringIO())
    render(console)
    return console.export_text()


def write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: a reader never meets half a report."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}", "choose another place with --output"
        ) from None
