"""`dyno runs`: what is in the store."""

from __future__ import annotations

import json
import time

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import json_option, store_option
from dbdyno.records.store import RunSummary, Store, store_url

BESIDE_NAME = 50
"""Columns that the rest of a row needs beside the name; where there are fewer, a run has lines of its own."""


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
    console = Console(highlight=False)
    if console.width < BESIDE_NAME + max(len(summary.run.run) for summary in summaries):
        for summary in summaries:
            name, *rest = _row(summary)
            console.print(Text(name), soft_wrap=True)
            console.print(Padding(Text(", ".join(rest)), (0, 0, 0, 2)))
    else:
        console.print(_table(summaries), crop=False)


def _table(summaries: list[RunSummary]) -> Table:
    """A row per run. A name is whole at every width, because people copy it; the rest is folded."""
    table = Table(box=None, pad_edge=False)
    longest = max(len(summary.run.run) for summary in summaries)
    table.add_column("run", no_wrap=True, min_width=longest)
    for heading in ("began", "study", "trials", "state"):
        table.add_column(heading, overflow="fold")
    for summary in summaries:
        table.add_row(*map(Text, _row(summary)))
    return table


def _row(summary: RunSummary) -> list[str]:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.run.created_unix_s))
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(summary.outcomes.items()))
    state = "finished" if summary.finished else "unfinished"
    return [summary.run.run, began, summary.run.study_path, outcomes or "no trial", state]


def _document(summary: RunSummary) -> dict[str, object]:
    return {
        "run": summary.run.run,
        "created_unix_s": summary.run.created_unix_s,
        "study": summary.run.study_path,
        "finished": summary.finished,
        "outcomes": summary.outcomes,
    }
