"""`dyno init workload`: a workload file from what a server was asked in production."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.options import json_option
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import DASH, part_text, plural
from dbdyno.traffic.groups import Group, Traffic
from dbdyno.traffic.read import traffic_of
from dbdyno.traffic.script import names_of, script, statement_of

SHOWN_MOST = 40
"""Rows of the table; `--json` has them all."""
DIGEST_WIDTH = 60


class DigestRow(Frozen):
    """Statements that differ in their values alone, as `--json` lists them. `name` is the transaction that
    was made of them; without one `why_not` says why. `took_s` is null where the log does not tell."""

    digest: str
    line: int
    count: int
    took_s: float | None
    writes: bool
    name: str
    why_not: str
    to_fill_in: bool


class Drawn(Frozen):
    """What `dyno init workload` made: the file, what it was made from, and each digest that was seen. `rest`
    counts what is no statement."""

    output: str
    source: str
    kind: str
    statements: int
    took_s: float | None
    digests: tuple[DigestRow, ...]
    rest: dict[str, int]


@click.command()
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    help="A slow log or general log of MariaDB or MySQL, or pg_stat_statements as CSV.",
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Take so many digests.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("workload.toml"), show_default=True
)
@json_option
def command(source: Path, limit: int, output: Path, as_json: bool) -> None:
    """Write a workload file that asks what a server was asked in production: the same statements with their
    shares, and values like those that were seen. `dyno load run FILE` then drives it."""
    if output.suffix != ".toml":
        raise UserError(f"{output} does not end in .toml, by which a workload file is known", "-o NAME.toml")
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    traffic = traffic_of(source)
    taken = [group for group in traffic.groups if not group.why_not][:limit]
    if not taken:
        raise UserError(
            f"{source} holds no statement that a script can draw: {traffic.groups[0].why_not}",
            "log SELECT, INSERT, UPDATE and DELETE",
        )
    write(output, script(source.name, traffic, taken))
    drawn = _drawn(output, source, traffic, taken)
    if as_json:
        click.echo(json.dumps(drawn.model_dump(mode="json"), indent=2))
    else:
        _tell(drawn, Console(highlight=False))


def _drawn(output: Path, source: Path, traffic: Traffic, taken: Sequence[Group]) -> Drawn:
    names = dict(zip((group.digest for group in taken), names_of(taken), strict=True))
    return Drawn(
        output=str(output),
        source=str(source),
        kind=traffic.kind,
        statements=traffic.count,
        took_s=traffic.took_s,
        digests=tuple(_row(group, names.get(group.digest, "")) for group in traffic.groups),
        rest=dict(traffic.rest),
    )


def _row(group: Group, name: str) -> DigestRow:
    return DigestRow(
        digest=group.digest,
        line=group.line,
        count=group.count,
        took_s=group.took_s,
        writes=group.writes,
        name=name,
        why_not=group.why_not or ("" if name else "more digests than --limit"),
        to_fill_in=bool(name) and statement_of(group.shape).to_fill_in,
    )


def _tell(drawn: Drawn, console: Console) -> None:
    """The table, what was left out, and what comes next."""
    console.print(_table(drawn))
    if len(drawn.digests) > SHOWN_MOST:
        console.print(Text(f"and {len(drawn.digests) - SHOWN_MOST} more digests: --json lists them all"))
    if drawn.rest:
        rest = ", ".join(f"{count:,} {what}" for what, count in sorted(drawn.rest.items()))
        console.print(Text(f"no statements: {rest}"))
    kept = [row for row in drawn.digests if row.name]
    share = part_text(sum(row.count for row in kept), drawn.statements)
    console.print(
        Text(f"{drawn.output}: {plural(len(kept), 'transaction')} for {share} of the statements"),
        soft_wrap=True,
    )
    if writing := sum(row.writes for row in kept):
        verb = "writes" if writing == 1 else "write"
        console.print(Text(f"  {writing} of them {verb}: run it on a copy of the database"))
    if missing := sum(row.to_fill_in for row in kept):
        console.print(Text(f"  {missing} of them have values to fill in: look for fill_in() in the file"))
    console.print(Text(f"  then: dyno load run {drawn.output} --url URL"), soft_wrap=True)


def _table(drawn: Drawn) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("statement", overflow="fold")
    for head in ("times", "share", "of the time"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("taken", overflow="fold")
    for row in drawn.digests[:SHOWN_MOST]:
        digest = safe.clean(row.digest)
        cut = digest if len(digest) <= DIGEST_WIDTH else f"{digest[: DIGEST_WIDTH - 3]}..."
        marked = f"{row.name}{', writes' if row.writes else ''}{', to fill in' if row.to_fill_in else ''}"
        known = row.took_s is not None and drawn.took_s is not None
        table.add_row(
            Text(cut),
            f"{row.count:,}",
            part_text(row.count, drawn.statements),
            part_text(row.took_s or 0.0, drawn.took_s or 0.0) if known else DASH,
            Text(marked if row.name else f"no: {row.why_not}"),
        )
    return table
