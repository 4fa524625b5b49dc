"""`dyno diff`: two builds compared function by function."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from dbdyno.analyse.code import compare_code
from dbdyno.cli.formats import deliver, format_of, format_options
from dbdyno.cli.kept_build import complete_build, program_of
from dbdyno.report import html, markdown
from dbdyno.report.parts import code as code_part
from dbdyno.report.words.safe import json_text


@click.command()
@click.argument("left", metavar="BUILD", shell_complete=complete_build)
@click.argument("right", metavar="BUILD", shell_complete=complete_build)
@format_options
def command(left: str, right: str, form: str | None, as_json: bool, output: Path | None) -> None:
    """Compare two builds function by function: is the code the same, and where is it not?

    A BUILD is the name of a kept one as `dyno builds` lists it, or the beginning of that name; or the path of
    a program or a shared library. Addresses do not count, so code that only moved is the same. Neither build
    is run.
    """
    # Here, because help and manual pages need no disassembler.
    from dbdyno.obtain.binary import read_pair

    form = format_of(form, as_json, output)
    found = compare_code(*read_pair(program_of(left), program_of(right)))
    deliver(
        form,
        output,
        partial(code_part.render, found),
        {
            "html": partial(html.code, found),
            "markdown": partial(markdown.code, found),
            "json": partial(json_text, found),
        },
    )
    if form == "terminal" and output is None:
        click.echo("the builds that are kept: dyno builds", err=True)
