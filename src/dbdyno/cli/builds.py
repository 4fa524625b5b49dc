"""`dyno cache builds`: the builds that are kept, and those of a study made ahead of its run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.cli.terminal import tell, terminal
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.host import cache
from dbdyno.host.writers import Allowed
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import Reused, Training
from dbdyno.prepare_run.begun import made_ahead
from dbdyno.prepare_run.building import NOT_YET, builds_lines
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.metrics import bytes_text
from dbdyno.records.place import store_url
from dbdyno.report.words.numbers import about_text, moment_text
from dbdyno.report.words.safe import json_text
from dbdyno.trial.correctness import all_kept

STACKED_BELOW = 80
"""On a terminal with fewer columns each build has lines of its own."""


class GateRow(Frozen):
    """What the correctness gate asked of a build, and what it found: `passed`, `failed at ...`, or `could not
    run`, with the cause."""

    asked: str
    found: str
    cause: str


class BuildRow(Frozen):
    """One build. `folder` holds what it installed, `took_s` is how long its commands took. `key` is that of
    its trials' evidence. `training` says how the compiler's profile came about, `bolt` that of BOLT, and
    `reused` what the build took of earlier ones; None where there is none. `made_on` is the host of a fleet
    that made it; empty for one that no fleet needed."""

    name: str
    key: str
    engine: str
    build: str
    source: str
    patches: tuple[str, ...]
    toolchain: str
    training: Training | None
    bolt: Training | None
    reused: Reused | None
    made_on: str
    folder: str
    size_bytes: int
    took_s: float
    gate: tuple[GateRow, ...]
    made_unix_s: float
    used_unix_s: float


def list_(as_json: bool) -> None:
    rows = kept_builds()
    if as_json:
        click.echo(json_text(rows))
        return
    if not rows:
        click.echo("there are no builds; a study with levels of build or source makes them", err=True)
        return
    console = terminal()
    if console.width < STACKED_BELOW:
        for row in rows:
            name, *lines = _lines(row)
            console.print(Text(name))
            for line in [*lines, ", ".join(_figures(row))]:
                console.print(Padding(Text(line), (0, 0, 0, 2)))
    else:
        console.print(_table(rows))
    console.print(f"in all: {bytes_text(sum(row.size_bytes for row in rows))}")
    if told := next_command(rows):
        click.echo(told, err=True)


def make(study: Path, names: tuple[str, ...], allowed_paths: tuple[Path, ...], as_json: bool) -> None:
    allowed = Allowed.of((), allowed_paths)
    found = made_ahead(study_at(study, allowed=allowed), names, allowed, tell)
    if as_json:
        click.echo(json_text(found))
    else:
        click.echo("\n".join(builds_lines(found)))
    sys.exit(0 if all(one.there for one in found) else 1)


def stored(as_json: bool, store: str | None) -> None:
    # Here, because builds of this host need no driver of a store.
    from dbdyno.cli.stored_builds import print_stored

    print_stored(store_url(store), as_json)


def unstore(names: tuple[str, ...], everything: bool, store: str | None) -> None:
    from dbdyno.cli.stored_builds import removed

    if bool(names) == everything:
        told = "--all contradicts a name" if names else "no build was named"
        raise UserError(told, "dyno cache builds unstore NAME, or --all")
    click.echo(removed(store_url(store), names), err=True)


def _table(rows: list[BuildRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("build, and what it was made from", overflow="fold")
    table.add_column("took", no_wrap=True, justify="right")
    table.add_column("last use", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    for row in rows:
        table.add_row(Text("\n".join(_lines(row))), *_figures(row))
    return table


def _lines(row: BuildRow) -> list[str]:
    trained = [row.training.words] if row.training else []
    trained += [f"by BOLT: {row.bolt.words}"] if row.bolt else []
    gates = [f"correctness gate: {gate.found} ({gate.asked})" for gate in row.gate]
    gates = gates or [f"correctness gate: {NOT_YET}"]
    taken = [row.reused.words] if row.reused else []
    where = f", made on host {row.made_on}" if row.made_on else ""
    return [
        row.name,
        f"{row.build} ({row.toolchain}{where})",
        *trained,
        row.source,
        *row.patches,
        *taken,
        *gates,
    ]


def _figures(row: BuildRow) -> tuple[str, str, str]:
    """How long it took, when it was last used, how large it is."""
    used = moment_text(row.used_unix_s)
    return about_text(row.took_s), used, bytes_text(row.size_bytes)


def next_command(rows: Sequence[BuildRow]) -> str:
    """How to compare the two builds that were used last of one engine; empty where there are none."""
    alike = [row.name for row in rows if row.engine == rows[0].engine]
    return f"compare two: dyno diff {alike[1]} {alike[0]}" if len(alike) > 1 else ""


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
            bolt=account.bolt,
            reused=account.reused,
            made_on=account.made_on,
            folder=str(kept.folder / making.PREFIX),
            size_bytes=kept.size_bytes,
            took_s=account.took_s,
            gate=tuple(
                GateRow(asked=found.asked, found=found.words, cause=found.cause)
                for found in all_kept(kept.name)
            ),
            made_unix_s=kept.made_unix_s,
            used_unix_s=kept.used_unix_s,
        )
        for kept in cache.shelf("builds").kept()
        if (account := making.readable_account(kept.folder)) is not None
    ]
    return sorted(rows, key=lambda row: row.used_unix_s, reverse=True)
