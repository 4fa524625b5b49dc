"""`dyno export`: a run's trials as tables for other tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import polars

from dbdyno.cli.options import store_option
from dbdyno.cli.stored_run import run_to_read
from dbdyno.errors import UserError
from dbdyno.export.tables import csv_of, series_table, trials_table
from dbdyno.records.place import store_url
from dbdyno.records.store import Store


@click.command()
@click.argument("run", default="last")
@click.option(
    "--csv", type=click.Path(path_type=Path, file_okay=False), help="Write CSV files into this folder."
)
@click.option("--parquet", type=click.Path(path_type=Path, file_okay=False), help="Write Parquet files.")
@store_option
def command(run: str, csv: Path | None, parquet: Path | None, store: str | None) -> None:
    """Write RUN as tables: `trials`, one row per trial with every metric, and `series`, one row per
    second."""
    if csv is None and parquet is None:
        raise UserError("no folder to write into", "dyno export RUN --csv FOLDER, or --parquet FOLDER")
    with Store(store_url(store)) as opened:
        records = opened.records(run_to_read(opened, run).run)
    for name, table in (("trials", trials_table(records)), ("series", series_table(records))):
        if csv is not None:
            _write(csv / f"{name}.csv", partial(_write_csv, table))
        if parquet is not None:
            _write(parquet / f"{name}.parquet", table.write_parquet)


def _write_csv(table: polars.DataFrame, path: Path) -> None:
    path.write_text(csv_of(table), encoding="utf-8")


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error}", "choose another folder") from None
    click.echo(str(path))
