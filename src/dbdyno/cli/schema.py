"""`dyno schema`: the JSON Schema of a study, for editors."""

from __future__ import annotations

import json

import click

from dbdyno.cli.study_file import catalogue
from dbdyno.study.schema import study_schema


@click.command()
def command() -> None:
    """Print the JSON Schema of a study: editors complete and check with it."""
    click.echo(json.dumps(study_schema(catalogue(ask_engines=False)), indent=2))
