"""`dyno museum`: what did not help in any run of the store, with its cause and its evidence."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from dbdyno.analyse.collection import Ending, chosen
from dbdyno.begin.museum import museum_of
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import TABLE_FORMATS, format_of, table_format_options
from dbdyno.cli.options import store_option
from dbdyno.cli.patience import waiting
from dbdyno.engines import registry
from dbdyno.layers.registry import LAYERS
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.parts.museum import as_csv


@click.command()
@click.option("--engine", metavar="ENGINE", help="Only levels of this engine: mariadb, sqlite, ...")
@click.option(
    "--layer", type=click.Choice(list(LAYERS)), help="Only variants that change a level of this layer."
)
@click.option(
    "--outcome",
    type=click.Choice([str(ending) for ending in Ending]),
    help="Only variants that ended like this.",
)
@click.option("--study", metavar="TEXT", help="Only runs of studies that have TEXT in their path.")
@table_format_options
@store_option
def command(
    engine: str | None,
    layer: str | None,
    outcome: str | None,
    study: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    """Show what did not help in any run of the store: how it ended, why, and what the evidence is.

    Each level of an engine is listed once, with all runs that tried it. The latest comes first.
    """
    form = format_of(form, as_json, output, TABLE_FORMATS)
    if engine is not None:
        registry.engine(engine)
    with Store(store_url(store)) as opened, waiting("reading the runs of the store"):
        whole = museum_of(opened, engine or "", study or "")
    found = chosen(whole, layer, Ending(outcome) if outcome else None)
    deliver("museum", found, form, output, {"csv": partial(as_csv, found)})
