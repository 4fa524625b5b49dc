"""`dyno schema`: the JSON Schema of a study, for editors, and of what verbs print with `--json`."""

from __future__ import annotations

import json

import click

from dbdyno.begin.catalogue import catalogue
from dbdyno.cli.outputs import OUTPUTS, schema_of
from dbdyno.study.format import study_schema

STUDY = "study"


@click.command()
@click.argument("output", type=click.Choice([STUDY, *OUTPUTS]), default=STUDY)
def command(output: str) -> None:
    """Print the JSON Schema of a study: editors complete and check with it. With the name of an OUTPUT, print
    the schema of what that verb prints with --json.
    """
    found = study_schema(catalogue(ask_engines=False)) if output == STUDY else schema_of(output)
    click.echo(json.dumps(found, indent=2))
