"""`dyno engines`: what is here, what can be obtained, and fetching it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import json_option
from dbdyno.cli.preferences import PreferredOption
from dbdyno.engines import registry


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the engines that are here, and those that can be obtained."""
    if context.invoked_subcommand is not None:
        return
    offers = registry.offers()
    if as_json:
        click.echo(json.dumps([asdict(offer) for offer in offers], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("engine", "version", "here", "where, or how to get it"):
        table.add_column(heading, overflow="fold")
    for offer in offers:
        where = offer.source if offer.present or not offer.command else f"dyno engines fetch {offer.command}"
        table.add_row(offer.engine, offer.version, "yes" if offer.present else "no", Text(where))
    Console(highlight=False).print(table)


@command.command()
@click.argument("reference", metavar="ENGINE[@VERSION]")
@click.option(
    "--mirror",
    cls=PreferredOption,
    key="mirror",
    default="",
    metavar="URL",
    help="Take packages from here instead of the machine's mirror.",
)
def fetch(reference: str, mirror: str) -> None:
    """Obtain an engine into Dyno's own cache: no root, nothing installed on the host."""
    name, _, version = reference.partition("@")
    installation = registry.engine(name).obtaining.fetch(
        version, mirror, lambda line: click.echo(line, err=True)
    )
    click.echo(f"{installation.engine} {installation.version}: {installation.origin}")
