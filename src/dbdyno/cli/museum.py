"""`dyno museum`: what did not help in any run of the store, with its cause and its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from dbdyno.analyse import Analysis, analyse
from dbdyno.analyse.collection import Ending, Museum, chosen, collection
from dbdyno.cli.formats import TABLE_FORMATS, deliver, format_of, table_format_options
from dbdyno.cli.options import store_option
from dbdyno.cli.stored_study import study_of
from dbdyno.engines import registry
from dbdyno.errors import StudyError
from dbdyno.layers.registry import LAYERS
from dbdyno.records.store import Store, store_url
from dbdyno.report import as_json, html, markdown
from dbdyno.report.parts import museum as museum_part


@click.command()
@click.option("--engine", metavar="ENGINE", help="Levels of this engine alone: mariadb, sqlite, ...")
@click.option(
    "--layer", type=click.Choice(list(LAYERS)), help="Those alone that change a level of this layer."
)
@click.option(
    "--outcome", type=click.Choice([str(ending) for ending in Ending]), help="Those alone that ended so."
)
@click.option("--study", metavar="TEXT", help="Of studies alone that have TEXT in their path.")
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
    """Show what did not help in any run of the store: how it ended, why, and what shows it.

    A level of one engine stands once, with all runs that tried it. The latest comes first.
    """
    form = format_of(form, as_json, output, TABLE_FORMATS)
    if engine is not None:
        registry.engine(engine)
    with Store(store_url(store)) as opened:
        unread: list[str] = []
        analyses = list(_analyses(opened, engine or "", study or "", unread))
    found = chosen(collection(analyses, unread), layer, Ending(outcome) if outcome else None)
    deliver(
        form,
        output,
        partial(museum_part.render, found),
        {
            "html": partial(html.museum, found),
            "markdown": partial(markdown.museum, found),
            "json": partial(_document, found),
            "csv": partial(museum_part.as_csv, found),
        },
    )


def _analyses(store: Store, engine: str, study: str, unread: list[str]) -> Iterator[Analysis]:
    """The runs that have records, of this engine where one is named and of studies with that text in their
    path. Those of a study that this Dyno cannot read are added to `unread`."""
    for summary in store.runs():
        run = summary.run
        if study not in run.study_path or not summary.outcomes or run.soak is not None:
            continue
        try:
            asked = study_of(run)
        except StudyError:
            unread.append(run.run)
            continue
        if engine in ("", asked.engine.engine):
            yield analyse(asked, run, store.records(run.run))


def _document(found: Museum) -> str:
    return as_json.of_model(found)
