"""`dyno export`: a run for other tools, as tables of its trials or as the figures that they keep."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
import polars

from dbdyno.cli.stored_run import run_to_read
from dbdyno.errors import UserError
from dbdyno.export.exchange import Form, RepositoryOrigin, exchanged
from dbdyno.export.tables import csv_of, series_table, trials_table
from dbdyno.prepare_run.stored_run import analysis_of
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import Store

IN_PIPELINES = {
    "repository": ("CI_PROJECT_URL",),
    "branch": ("CI_COMMIT_REF_NAME", "GITHUB_REF_NAME"),
    "commit": ("CI_COMMIT_SHA", "GITHUB_SHA"),
}
"""The variables in which pipelines tell what they measure."""


def main(
    run: str, csv: Path | None, parquet: Path | None, tool: str | None, output: Path | None, store: str | None
) -> None:
    if output is not None and tool is None:
        raise UserError("--output is the file of a tool's form", f"add --for {'|'.join(Form)}")
    if csv is None and parquet is None and tool is None:
        raise UserError(
            "no folder to write into", "dyno export RUN --csv FOLDER, --parquet FOLDER or --for TOOL"
        )
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        if tool is not None:
            _deliver(Form(tool), exchanged(Form(tool), analysis_of(opened, found), _origin()), output)
        records = opened.records(found.run) if csv or parquet else []
    if csv is not None or parquet is not None:
        _write_tables(records, csv, parquet)


def _write_tables(records: Sequence[Record], csv: Path | None, parquet: Path | None) -> None:
    for name, table in (("trials", trials_table(records)), ("series", series_table(records))):
        if csv is not None:
            _write(csv / f"{name}.csv", partial(_write_csv, table))
        if parquet is not None:
            _write(parquet / f"{name}.parquet", table.write_parquet)


def _origin() -> RepositoryOrigin:
    """What the variables of a pipeline say."""
    told = {
        name: next((value for variable in variables if (value := os.environ.get(variable))), "")
        for name, variables in IN_PIPELINES.items()
    }
    server, path = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return RepositoryOrigin(**{**told, **({"repository": f"{server}/{path}"} if server and path else {})})


def _deliver(form: Form, text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text)
    else:
        _write(output, partial(_write_text, text, _rows_before(output, text) if form is Form.OTAVA else ""))


def _rows_before(output: Path, text: str) -> str:
    """What a file for Otava holds already. Raises UserError where its columns are others."""
    if not output.exists():
        return ""
    kept = output.read_text(encoding="utf-8").removesuffix("\n")
    if kept.partition("\n")[0] != text.partition("\n")[0]:
        raise UserError(f"{output} has other columns than this run", "give each study a file of its own")
    return kept


def _write_text(text: str, kept: str, path: Path) -> None:
    row = text if not kept else f"{kept}\n{text.partition(chr(10))[2]}"
    path.write_text(f"{row}\n", encoding="utf-8")


def _write_csv(table: polars.DataFrame, path: Path) -> None:
    path.write_text(csv_of(table), encoding="utf-8")


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error}", "choose another folder") from None
    click.echo(str(path))
