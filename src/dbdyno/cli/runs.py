"""`dyno runs`: what is in the store, its names and notes."""

from __future__ import annotations

import sys
import time
from functools import partial

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import Age, ListingGroup, json_option, own_store_option, store_option
from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.records.place import store_url
from dbdyno.records.readings import Readings, RunOfIndex
from dbdyno.records.run import RunSummary
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import moment_text

READ_MOST = 20
"""So many of the latest runs are read where it is not kept what they say; a list of more stays quick."""
BESIDE_NAME = 54
"""Columns that the rest of a row needs beside the name; where there are fewer, a run has lines of its own."""


@click.group(cls=ListingGroup)
@store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """List the runs in the store; name them, add notes, delete them. Without a command: list."""
    context.obj = store


@command.command("list")
@click.option("--limit", type=click.IntRange(1), help="Only the latest N.")
@click.option("--study", metavar="TEXT", help="Only those whose study has TEXT in its path.")
@click.option("--since", "age_s", type=Age(), help="Only runs that are no older than this: 12h, 30d, 4w.")
@own_store_option
@json_option
@click.pass_obj
def list_(
    group_store: str | None,
    limit: int | None,
    study: str | None,
    age_s: float | None,
    store: str | None,
    as_json: bool,
) -> None:
    """List the runs in the store, the latest first."""
    with Store(store_url(store or group_store)) as opened:
        summaries, unreadable = opened.runs_and_unreadable()
        since_unix_s = time.time() - age_s if age_s is not None else 0.0
        chosen = [
            summary
            for summary in summaries
            if (study or "") in summary.run.study_path and summary.run.created_unix_s >= since_unix_s
        ][:limit]
        said = _said(opened, chosen)
    if as_json:
        click.echo(safe.json_text([_document(summary, said.get(summary.run.run)) for summary in chosen]))
    elif not chosen:
        click.echo("no such run" if summaries else f"no run yet in {opened.place}", err=True)
    else:
        _show([_row(summary, said.get(summary.run.run)) for summary in chosen], terminal())
    for one in unreadable:
        click.echo(f"left out: run {one.run} cannot be read: {safe.clean(one.why)}", err=True)
    if unreadable:
        click.echo("  dyno runs rm RUN deletes such a run", err=True)


@command.command()
@click.argument("run")
@click.argument("name")
@own_store_option
@click.pass_obj
def name(group_store: str | None, run: str, name: str, store: str | None) -> None:
    """Give RUN a NAME, which then stands for it wherever a run is named."""
    with writable_store(store_url(store or group_store)) as opened:
        opened.name_run(opened.key(run), name)


@command.command()
@click.argument("run")
@click.argument("text")
@own_store_option
@click.pass_obj
def note(group_store: str | None, run: str, text: str, store: str | None) -> None:
    """Keep a note, TEXT, beside RUN. An empty one takes it away."""
    with writable_store(store_url(store or group_store)) as opened:
        opened.note_run(opened.key(run), text)


@command.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@own_store_option
@click.pass_obj
def rm(group_store: str | None, runs: tuple[str, ...], yes: bool, store: str | None) -> None:
    """Delete runs with all their records. Asks first, on a terminal."""
    with writable_store(store_url(store or group_store)) as opened:
        found = list(dict.fromkeys(map(opened.key, runs)))
        if not yes:
            if not sys.stdin.isatty():
                raise UserError("there is no terminal to ask on whether to delete these runs", "add --yes")
            click.confirm(f"Delete {', '.join(found)} and all records?", abort=True, err=True)
        readings = Readings(opened)
        for run in found:
            opened.remove_run(run)
            readings.forget(run)
            click.echo(f"deleted {run}")


def _said(store: Store, summaries: list[RunSummary]) -> dict[str, RunOfIndex]:
    """What finished runs say, of those of which it is kept or which are among the latest."""
    readings, said = Readings(store), dict[str, RunOfIndex]()
    for place, summary in enumerate(summaries):
        if place < READ_MOST and summary.finished:
            found = readings.of(summary, RunOfIndex, partial(_read, store, summary))
        else:
            found = readings.kept(summary, RunOfIndex)
        if found is not None:
            said[summary.run.run] = found
    return said


def _read(store: Store, summary: RunSummary) -> RunOfIndex | None:
    # Here, because what a run says is mostly kept.
    from dbdyno.serve.index import read_in_brief

    return read_in_brief(store, summary)


def _show(rows: list[list[str]], console: Console) -> None:
    if console.width < BESIDE_NAME + max(len(name) for name, *_ in rows):
        for name, *rest in rows:
            console.print(Text(name), soft_wrap=True)
            console.print(Padding(Text(", ".join(rest)), (0, 0, 0, 2)))
    else:
        console.print(_table(rows), crop=False)


def _table(rows: list[list[str]]) -> Table:
    """A row per run. A name is whole at every width, because people copy it; the rest is folded."""
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True, min_width=max(len(name) for name, *_ in rows))
    for heading, least in (("began", 10), ("study, name and note", 10), ("trials", 11), ("verdicts", 14)):
        table.add_column(heading, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _row(summary: RunSummary, said: RunOfIndex | None) -> list[str]:
    began = moment_text(summary.run.created_unix_s)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(summary.outcomes.items()))
    verdicts = said.verdicts if said is not None else {}
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    state = (told or "finished") if summary.finished else "unfinished"
    named = ", ".join((*filter(None, [summary.name]), *(f"baseline {name}" for name in summary.baselines)))
    about = "; ".join(filter(None, (summary.run.study_path, named, summary.note)))
    return [summary.run.run, began, safe.clean(about), outcomes or "no trial", state]


class RunRow(Frozen):
    """A run as `--json` lists it; `outcomes` counts its trials, `verdicts` its variants by theirs; `answer`
    is its first sentence. Both are empty where it is not finished, or neither read so far nor of the
    latest."""

    run: str
    created_unix_s: float
    study: str
    name: str
    note: str
    baselines: tuple[str, ...]
    finished: bool
    outcomes: dict[str, int]
    answer: str
    verdicts: dict[str, int]


def _document(summary: RunSummary, said: RunOfIndex | None) -> RunRow:
    return RunRow(
        run=summary.run.run,
        created_unix_s=summary.run.created_unix_s,
        study=summary.run.study_path,
        name=summary.name,
        note=summary.note,
        baselines=summary.baselines,
        finished=summary.finished,
        outcomes=summary.outcomes,
        answer=said.answer if said is not None else "",
        verdicts=said.verdicts if said is not None else {},
    )
