"""`dyno builds`: the builds that are kept."""

from __future__ import annotations

import json
import time

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import json_option
from dbdyno.cli.wording import duration, size
from dbdyno.frozen import Frozen
from dbdyno.host import once
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import Training


class BuildRow(Frozen):
    """One build. `folder` holds what it installed, `took_s` is how long its commands took. `key` is that of
    its trials' evidence, and `training` says how it was trained; None where it was not."""

    name: str
    key: str
    engine: str
    build: str
    source: str
    patches: tuple[str, ...]
    toolchain: str
    training: Training | None
    folder: str
    size_bytes: int
    took_s: float
    made_unix_s: float
    used_unix_s: float


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the builds that are kept: what they were made from, how large they are, how long they took.

    A study makes the builds that its levels of `build` and `source` ask for. `dyno diff` compares two of
    them function by function. `dyno cache free` frees them.
    """
    rows = kept_builds()
    if as_json:
        click.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        return
    if not rows:
        click.echo("there are no builds; a study with levels of build or source makes them", err=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("build, and what it was made from", overflow="fold")
    table.add_column("took", no_wrap=True, justify="right")
    table.add_column("last use", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    for row in rows:
        trained = [row.training.words] if row.training else []
        lines = [row.name, f"{row.build} ({row.toolchain})", *trained, row.source, *row.patches]
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.used_unix_s))
        table.add_row(Text("\n".join(lines)), duration(row.took_s), used, size(row.size_bytes))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"in all: {size(sum(row.size_bytes for row in rows))}")
    if len(rows) > 1:
        click.echo(f"compare two: dyno diff {rows[1].name} {rows[0].name}", err=True)


def kept_builds() -> list[BuildRow]:
    """All builds that this version can read, the latest used first."""
    rows = [
        BuildRow(
            name=kept.name,
            key=account.key,
            engine=account.engine,
            build=account.words,
            source=account.source,
            patches=account.patches,
            toolchain=account.toolchain,
            training=account.training,
            folder=str(kept.folder / making.PREFIX),
            size_bytes=kept.size_bytes,
            took_s=account.took_s,
            made_unix_s=kept.made_unix_s,
            used_unix_s=kept.used_unix_s,
        )
        for kept in once.shelf("builds").kept()
        if (account := making.readable_account(kept.folder)) is not None
    ]
    return sorted(rows, key=lambda row: row.used_unix_s, reverse=True)
