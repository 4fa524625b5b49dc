"""`dyno museum`: what did not help in any run of the store, with its cause and its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from dbdyno.analyse.collection import Ending, RunOfMuseum, chosen, collection, run_of_museum
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import TABLE_FORMATS, format_of, table_format_options
from dbdyno.cli.options import store_option
from dbdyno.engines import registry
from dbdyno.errors import StudyError
from dbdyno.layers.registry import LAYERS
from dbdyno.records.place import store_url
from dbdyno.records.readings import Readings
from dbdyno.records.run import Run, SoakRun
from dbdyno.records.store import RunSummary, Store
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
    with Store(store_url(store)) as opened:
        summaries, unreadable = opened.runs_and_unreadable()
        unread = [one.run for one in unreadable]
        runs = list(_runs(opened, summaries, engine or "", study or "", unread))
    found = chosen(collection(runs, unread), layer, Ending(outcome) if outcome else None)
    deliver("museum", found, form, output, {"csv": partial(as_csv, found)})


def _runs(
    store: Store, summaries: Sequence[RunSummary], engine: str, study: str, unread: list[str]
) -> Iterator[RunOfMuseum]:
    """Of these runs those that have records, of this engine where one is named and of studies with that text
    in their path. Those that this Dyno cannot read are added to `unread`."""
    readings = Readings(store)
    for summary in summaries:
        run = summary.run
        if study not in run.study_path or not summary.outcomes or isinstance(run, SoakRun):
            continue
        if engine and run.installation.engine not in ("", engine):
            continue
        found = readings.of(summary, RunOfMuseum, partial(_read, store, run))
        if found is None:
            unread.append(run.run)
        elif engine in ("", found.engine):
            yield found


def _read(store: Store, run: Run) -> RunOfMuseum | None:
    """None where this Dyno cannot read the run's study or its records."""
    try:
        asked = study_of(run)
    except StudyError:
        return None
    records = store.readable_records(run.run)
    return run_of_museum(analysed(asked, run, records)) if records else None
