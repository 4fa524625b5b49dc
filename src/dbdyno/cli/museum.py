"""`dyno museum`: what did not help in any run of the store, with its cause and its evidence."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dbdyno.analyse import Ending
from dbdyno.analyse.museum import chosen_pieces
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import TABLE_FORMATS, format_of
from dbdyno.cli.patience import waiting
from dbdyno.engines import registry
from dbdyno.findings.museum import as_csv
from dbdyno.prepare_run.stored_run import museum_of
from dbdyno.records.place import store_url
from dbdyno.records.store import Store


def main(
    engine: str | None,
    layer: str | None,
    outcome: str | None,
    study: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    form = format_of(form, as_json, output, TABLE_FORMATS)
    if engine is not None:
        registry.engine(engine)
    with Store(store_url(store)) as opened, waiting("reading the runs of the store"):
        whole = museum_of(opened, engine or "", study or "")
    found = chosen_pieces(whole, layer, Ending(outcome) if outcome else None)
    deliver("museum", found, form, output, {"csv": partial(as_csv, found)})
