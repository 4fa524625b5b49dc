"""`dyno runs`: what is in the store."""

from __future__ import annotations

import json
import time

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import json_option, store_option
from dbdyno.records.store import RunSummary, Store, store_url


@click.command()
@store_option
@json_option
def command(store: str | None, as_json: bool) -> None:
    """List the runs in the store, the latest first."""
    with Store(store_url(store)) as opened:
        summaries = opened.runs()
    if as_json:
        click.echo(json.dumps([_document(summary) for summary in summaries], indent=2))
        return
    if not summaries:
        click.echo(f"no run yet in {opened.place}", err=True)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "began", "study", "trials", "state"):
        table.add_column(heading)
    for summary in summaries:
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.run.created_unix_s))
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(summary.outcomes.items()))
        state = "finished" if summary.finished else "unfinished"
        table.add_row(summary.run.run, began, Text(summary.run.study_path), outcomes, state)
    Console(highlight=False).print(table)


def _document(summary: RunSummary) -> dict[str, object]:
    return {
        "run": summary.run.run,
        "created_unix_s": summary.run.created_unix_s,
        "study": summary.run.study_path,
        "finished": summary.finished,
        "outcomes": summary.outcomes,
    }
