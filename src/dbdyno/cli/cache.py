"""`dyno cache`: what is kept because making it takes long, and freeing it."""

from __future__ import annotations

import time

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.terminal import terminal
from dbdyno.errors import DynoError, UserError, remedy
from dbdyno.frozen import Frozen
from dbdyno.host.cache import KINDS, KeptThing, Shelf, shelves
from dbdyno.records.metrics import bytes_text
from dbdyno.report.words.numbers import moment_text
from dbdyno.report.words.safe import json_text


class KeptRow(Frozen):
    """One thing that is kept, as `--json` lists it."""

    kind: str
    folder: str
    what: str
    origin: str
    size_bytes: int
    made_unix_s: float
    used_unix_s: float
    name: str


class CacheDocument(Frozen):
    """All that is kept, as `--json` prints it."""

    things: tuple[KeptRow, ...]
    total_bytes: int


def list_(as_json: bool) -> None:
    found = [kept for _, kept in _all()]
    total_bytes = sum(kept.size_bytes for kept in found)
    if as_json:
        document = CacheDocument(things=tuple(map(_row, found)), total_bytes=total_bytes)
        click.echo(json_text(document))
        return
    if not found:
        click.echo("nothing is kept", err=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("kind", no_wrap=True)
    table.add_column("name, and what it is", overflow="fold")
    table.add_column("last use", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    for kept in found:
        # Below the name, because four columns already fill 80 characters.
        what = "; ".join(filter(None, (kept.what, kept.origin)))
        named = Text("\n".join(filter(None, (kept.name, what))))
        table.add_row(kept.kind, named, moment_text(kept.used_unix_s), bytes_text(kept.size_bytes))
    console = terminal()
    console.print(table)
    for kind in KINDS:
        sizes = [kept.size_bytes for kept in found if kept.kind == kind]
        if sizes:
            console.print(f"{kind}: {len(sizes)}, {bytes_text(sum(sizes))}")
    console.print(f"in all: {bytes_text(total_bytes)}")


def free(
    names: tuple[str, ...], kind: str | None, age_s: float | None, everything: bool, dry_run: bool
) -> None:
    found = _chosen(names, kind, age_s, everything)
    freed_bytes, in_use = 0, []
    for shelf, kept in found:
        label = f"{kept.kind} {kept.name}"
        if not dry_run and not _free(shelf, kept):
            in_use.append(label)
            continue
        freed_bytes += kept.size_bytes
        click.echo(f"{'would free' if dry_run else 'freed'} {label}, {bytes_text(kept.size_bytes)}")
    for label in in_use:
        click.echo(f"kept {label}, because a running dyno uses it", err=True)
    click.echo(f"{bytes_text(freed_bytes)} {'would be freed' if dry_run else 'freed'}", err=True)
    if names and in_use:
        raise DynoError(f"{len(in_use)} of {len(found)} could not be freed", "wait until that dyno ends")


def _chosen(
    names: tuple[str, ...], kind: str | None, age_s: float | None, everything: bool
) -> list[tuple[Shelf, KeptThing]]:
    ways = [bool(names), kind is not None or age_s is not None, everything]
    if sum(ways) != 1:
        raise UserError(
            "say what to free in one way" if any(ways) else "no name, kind or age says what to free",
            "give names (see: dyno cache list), or --kind and --older-than, or --all",
        )
    found = _all()
    if names:
        chosen = [_named(found, name) for name in names]
    else:
        latest_s = time.time() - age_s if age_s is not None else float("inf")
        chosen = [
            (shelf, kept)
            for shelf, kept in found
            if kind in (None, kept.kind) and kept.used_unix_s <= latest_s
        ]
    # Each once, and images before the data that hold them.
    return [one for one in found if one in chosen]


def _named(found: list[tuple[Shelf, KeptThing]], name: str) -> tuple[Shelf, KeptThing]:
    exact = [one for one in found if one[1].name == name]
    matches = exact or [one for one in found if one[1].name.startswith(name)]
    if not matches:
        raise UserError(f"nothing that is kept is called {name!r}", "see: dyno cache list")
    if len(matches) > 1:
        raise UserError(
            f"{len(matches)} names begin with {name!r}: {', '.join(kept.name for _, kept in matches)}",
            "write more of the name",
        )
    return matches[0]


def _all() -> list[tuple[Shelf, KeptThing]]:
    return [(shelf, kept) for shelf in shelves() for kept in shelf.kept()]


def _free(shelf: Shelf, kept: KeptThing) -> bool:
    try:
        return shelf.free(kept.name)
    except OSError as error:
        raise DynoError(f"cannot free {kept.folder}: {error.strerror}", remedy(error)) from None


def _row(kept: KeptThing) -> KeptRow:
    return KeptRow(
        kind=kept.kind,
        folder=str(kept.folder),
        what=kept.what,
        origin=kept.origin,
        size_bytes=kept.size_bytes,
        made_unix_s=kept.made_unix_s,
        used_unix_s=kept.used_unix_s,
        name=kept.name,
    )
