"""`dyno init workload`: a workload file from what a server was asked in production."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from dbdyno.cli.drawn import drawn_from, tell
from dbdyno.cli.formats import write
from dbdyno.cli.options import json_option
from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.report.words.numbers import plural
from dbdyno.report.words.safe import json_text
from dbdyno.traffic.formats import KNOWN
from dbdyno.traffic.groups import Group, Traffic
from dbdyno.traffic.inserts import draw_new_keys
from dbdyno.traffic.read import traffic_of
from dbdyno.traffic.script import script

DIGESTS_MOST = 50
"""Digests that are taken unless more are asked for."""


def log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is taken of which logs."""
    for option in reversed(
        (
            click.option(
                "--from",
                "sources",
                type=click.Path(path_type=Path),
                required=True,
                multiple=True,
                help=f"{KNOWN[0].upper()}{KNOWN[1:]}; compressed or not. Repeat the option for each"
                " further file.",
            ),
            click.option("--database", default="", help="Take only the statements of this database."),
            click.option(
                "--limit",
                type=click.IntRange(1),
                default=DIGESTS_MOST,
                show_default=True,
                help="How many digests to take, those that took longest first.",
            ),
        )
    ):
        function = option(function)
    return function


@click.command()
@log_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("workload.toml"),
    show_default=True,
    help="The file.",
)
@json_option
def command(sources: tuple[Path, ...], database: str, limit: int, output: Path, as_json: bool) -> None:
    """Make a workload file from a log of your server: the same statements with the same shares, and values
    like those in the log. `dyno load run FILE` then drives it."""
    if output.suffix != ".toml":
        raise UserError(f"{output} does not end in .toml, by which a workload file is known", "-o NAME.toml")
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    traffic = traffic_of(sources, database)
    taken = drawable(traffic, sources)[:limit]
    draw_new_keys(taken, None, traffic.dialect, "the log")
    write(output, script(source_of(sources), traffic, taken))
    drawn = drawn_from(traffic, taken, output, sources)
    if as_json:
        click.echo(json_text(drawn))
        return
    console = terminal()
    tell(drawn, console)
    if missing := sum(row.to_fill_in for row in drawn.taken):
        console.print(Text(f"  {missing} of them have values to fill in: look for fill_in() in the file"))
    console.print(Text(f"  then: dyno load run {output} --url URL"), soft_wrap=True)


def drawable(traffic: Traffic, sources: Sequence[Path]) -> list[Group]:
    """The digests that a script can draw. Raises UserError where there is none."""
    found = [group for group in traffic.groups if not group.why_not]
    if not found:
        raise UserError(
            f"{source_of(sources)} holds no statement that a script can draw: {traffic.groups[0].why_not}",
            "log SELECT, INSERT, UPDATE and DELETE",
        )
    return found


def source_of(sources: Sequence[Path]) -> str:
    """What the logs are called in the script and in messages."""
    first = sources[0].name
    return first if len(sources) == 1 else f"{first} and {plural(len(sources) - 1, 'more log')}"
