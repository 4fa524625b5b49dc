"""The builds that a fleet keeps in its store, for `dyno cache builds` and `dyno fleet hosts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.fleet import kept_builds
from dbdyno.fleet.session import Session, require_server
from dbdyno.frozen import Frozen
from dbdyno.records.metrics import bytes_text
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.numbers import moment_text, plural
from dbdyno.report.words.safe import json_text


class StoredRow(Frozen):
    """A build that a fleet keeps in its store: the `host` that made it, its size as it is packed there, and
    the `runs` that are not over and need it."""

    name: str
    build: str
    host: str
    sha256: str
    packed_bytes: int
    kept_unix_s: float
    runs: tuple[str, ...]


def stored_builds(session: Session) -> list[StoredRow]:
    """The builds in the store of a fleet, by name."""
    return [
        StoredRow(
            name=one.build.name,
            build=one.build.words,
            host=one.build.host,
            sha256=one.build.sha256,
            packed_bytes=one.build.packed_bytes,
            kept_unix_s=one.kept_unix_s,
            runs=one.runs,
        )
        for one in kept_builds.all_kept(session)
    ]


def print_stored(url: str, as_json: bool) -> None:
    """Lists them."""
    require_server(url)
    with Store(url), Session(url) as session:
        rows = stored_builds(session)
    if as_json:
        click.echo(json_text(rows))
        return
    if not rows:
        click.echo("the store has no builds; a run on a fleet keeps those of its study there", err=True)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("build", "what it is", "made on", "kept since", "size", "needed by"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        size, since = bytes_text(row.packed_bytes), moment_text(row.kept_unix_s)
        needed = ", ".join(row.runs) or "no run"
        table.add_row(*map(Text, (row.name, row.build, row.host, since, size, needed)))
    terminal().print(table)
    terminal().print(f"in all: {_size(rows)}")


def removed(url: str, names: Sequence[str]) -> str:
    """Removes the builds of these names, or without names all that no run needs, and says how many. Raises
    UserError for a name that the store has not, and for a build that a run needs."""
    require_server(url)
    with writable_store(url), Session(url) as session:
        there = {row.name: row for row in stored_builds(session)}
        for name in names:
            if name not in there:
                raise UserError(f"the store has no build {name}", "see: dyno cache builds stored")
            _require_unneeded(there[name])
        gone = [there[name] for name in names] or [row for row in there.values() if not row.runs]
        for row in gone:
            kept_builds.remove(session, row.name)
    return f"{plural(len(gone), 'build')} removed from the store, {_size(gone)}"


def stored_text(rows: Sequence[StoredRow]) -> str:
    """How many builds the store has, how large they are, and which hosts made them."""
    made = Counter(row.host for row in rows)
    by_host = ", ".join(f"{count} made on {host}" for host, count in sorted(made.items()))
    return (
        f"{plural(len(rows), 'build')} in the store, {_size(rows)}: {by_host}; see: dyno cache builds stored"
    )


def _require_unneeded(row: StoredRow) -> None:
    if row.runs:
        raise UserError(
            f"build {row.name} is needed by run {', '.join(row.runs)}, which is not over",
            "let it come to its end, or remove it: dyno runs remove",
        )


def _size(rows: Sequence[StoredRow]) -> str:
    return bytes_text(sum(row.packed_bytes for row in rows))
