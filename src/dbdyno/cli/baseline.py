"""`dyno baseline`: names that stand for the run that others are held against."""

from __future__ import annotations

import click

from dbdyno.cli.options import ListingGroup, json_option, store_option
from dbdyno.frozen import Frozen
from dbdyno.records.place import store_url
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.numbers import moment_text
from dbdyno.report.words.safe import json_text


class BaselineRow(Frozen):
    """A baseline as `--json` lists it."""

    name: str
    run: str
    study: str
    created_unix_s: float


@click.group(cls=ListingGroup)
def command() -> None:
    """Name the runs that others are compared with: `dyno run STUDY --against NAME`.

    Without a command: list.
    """


@command.command("set")
@click.argument("name")
@click.argument("run")
@store_option
def set_(name: str, run: str, store: str | None) -> None:
    """Let NAME stand for RUN from now on."""
    with writable_store(store_url(store)) as opened:
        found = opened.run(run)
        opened.set_baseline(name, found.run)
    click.echo(f"{name} is {found.run}", err=True)


@command.command("list")
@json_option
@store_option
def list_(as_json: bool, store: str | None) -> None:
    """List the baselines and their runs."""
    with Store(store_url(store)) as opened:
        found = {name: opened.run(run) for name, run in opened.baselines().items()}
    if as_json:
        named = [
            BaselineRow(name=name, run=run.run, study=run.study_path, created_unix_s=run.created_unix_s)
            for name, run in found.items()
        ]
        click.echo(json_text(named))
        return
    if not found:
        click.echo(f"there is no baseline yet in {opened.place}", err=True)
    for name, run in found.items():
        began = moment_text(run.created_unix_s)
        click.echo(f"{name}  {run.run}  {began}  {run.study_path}")


@command.command()
@click.argument("name")
@store_option
def rm(name: str, store: str | None) -> None:
    """Forget NAME. Its run stays."""
    with writable_store(store_url(store)) as opened:
        opened.remove_baseline(name)
