"""`dyno init workload`: a workload file from what a server was asked in production."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from pydantic import Field
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.terminal import terminal
from dbdyno.driver.load import review
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen, listed
from dbdyno.host import cache
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import DASH, part_text, plural
from dbdyno.report.words.safe import json_text
from dbdyno.sql_logs.draw import FILL_IN
from dbdyno.sql_logs.formats import Lack, lacks_of, lacks_of_all
from dbdyno.sql_logs.groups import Group, Traffic
from dbdyno.sql_logs.inserts import draw_new_keys
from dbdyno.sql_logs.read import traffic_of
from dbdyno.sql_logs.script import names_of, script, statement_of
from dbdyno.sql_logs.seen import LogReading

SHOWN_MOST = 40
"""Rows of the table, and lines about statements; `--json` has them all."""
DIGEST_WIDTH = 60


def main(
    sources: tuple[Path, ...],
    database: str,
    limit: int,
    reading: LogReading,
    output: Path,
    as_json: bool,
) -> None:
    if output.suffix != ".toml":
        raise UserError(f"{output} does not end in .toml, by which a workload file is known", "-o NAME.toml")
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    traffic = traffic_of(sources, database, reading)
    taken = drawable(traffic, sources)[:limit]
    draw_new_keys(taken, None, traffic.dialect, "the log")
    write(output, script(source_of(sources), traffic, taken))
    drawn = drawn_from(traffic, taken, output, sources)
    if as_json:
        click.echo(json_text(drawn))
        return
    console = terminal()
    show_drawn(drawn, console)
    for note in traffic.notes:
        console.print(Text(safe.clean(note)), soft_wrap=True)
    if missing := sum(row.to_fill_in for row in drawn.taken):
        console.print(Text(f"  {missing} of them have values to fill in: look for fill_in() in the file"))
    console.print(Text(f"  then: dyno load run {output} --url URL"), soft_wrap=True)


def drawable(traffic: Traffic, sources: Sequence[Path]) -> list[Group]:
    """The digests that a script can draw. Raises UserError where there is none."""
    found = _accepted(traffic, [group for group in traffic.groups if not group.why_not])
    if not found:
        raise UserError(
            f"{source_of(sources)} holds no statement that a script can draw: {traffic.groups[0].why_not}",
            "log SELECT, INSERT, UPDATE and DELETE",
        )
    return found


def _accepted(traffic: Traffic, found: list[Group]) -> list[Group]:
    """Those whose script the driver takes, so that one strange statement does not end the whole file."""
    if _mistake(traffic, found):
        for group in found:
            group.refused = _mistake(traffic, [group])
    return [group for group in found if not group.refused]


def _mistake(traffic: Traffic, groups: Sequence[Group]) -> str:
    """What the driver refuses in a script of these; empty where it takes it."""
    text = script("log", traffic, groups).replace(FILL_IN, "uniform(1, 2)")
    with cache.scratch("log") as folder:
        (folder / "log.toml").write_text(text, encoding="utf-8")
        mistakes = review("script", {"file": "log.toml"}, folder).mistakes
    return mistakes[0].message if mistakes else ""


def source_of(sources: Sequence[Path]) -> str:
    """What the logs are called in the script and in messages."""
    first = sources[0].name
    return first if len(sources) == 1 else f"{first} and {plural(len(sources) - 1, 'more log')}"


class LackRow(Frozen):
    """Something that a log does not tell, and the setting or the action by which it would."""

    what: str
    remedy: str


class DigestRow(Frozen):
    """Statements that differ in their values alone, as `--json` lists them. `name` is the transaction that
    was made of them; without one `why_not` says why. `took_s` is null where the log does not tell.

    `lacks` is what the log does not tell of them, and `invented` what the script draws in that place. `anew`
    is what it draws in another way than the log tells, because rows with those keys exist; `may_meet` names
    the keys of rows that may exist nevertheless.
    """

    digest: str
    line: int
    count: int
    took_s: float | None
    writes: bool
    name: str
    why_not: str
    to_fill_in: bool
    file: str = ""
    database: str = ""
    lacks: tuple[LackRow, ...] = ()
    invented: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    may_meet: tuple[str, ...] = ()


class Drawn(Frozen):
    """What `dyno init workload` made: the file, what it was made from, and each digest that was seen. `rest`
    counts what is no statement, and `databases` the statements of each database."""

    output: str
    source: str
    kind: str
    statements: int
    took_s: float | None
    digests: tuple[DigestRow, ...]
    rest: dict[str, int]
    databases: dict[str, int] = Field(default_factory=dict)
    lacks: tuple[LackRow, ...] = ()

    @property
    def taken(self) -> list[DigestRow]:
        return [row for row in self.digests if row.name]


def drawn_from(
    traffic: Traffic, taken: Sequence[Group], output: Path, sources: Sequence[Path], why_not: str = ""
) -> Drawn:
    """What was made of a log. `why_not` says why a digest that could be taken was not."""
    names = {id(group): name for group, name in zip(taken, names_of(taken), strict=True)}
    return Drawn(
        output=str(output),
        source=", ".join(map(str, sources)),
        kind=traffic.kind,
        statements=traffic.count,
        took_s=traffic.took_s,
        digests=tuple(_row(group, names.get(id(group), ""), traffic, why_not) for group in traffic.groups),
        rest=dict(traffic.rest),
        databases={_shown(name): count for name, count in traffic.databases.items()},
        lacks=_rows(lacks_of_all(traffic)),
    )


def _row(group: Group, name: str, traffic: Traffic, why_not: str) -> DigestRow:
    statement = None if group.why_not else statement_of(group.longest)
    to_fill_in = statement is not None and statement.to_fill_in
    left_out = why_not if to_fill_in and why_not else "more digests than --limit"
    return DigestRow(
        digest=_shown(group.digest),
        line=group.line,
        count=group.count,
        took_s=group.took_s,
        writes=group.writes,
        name=name,
        why_not=group.why_not or ("" if name else left_out),
        to_fill_in=to_fill_in,
        file=group.file,
        database=_shown(group.database),
        lacks=_rows(lacks_of(group, traffic)),
        invented=statement.invented if statement and name else (),
        anew=statement.anew if statement and name else (),
        may_meet=group.longest.may_meet if statement and name else (),
    )


def _shown(text: str) -> str:
    """A text of a log, whose bytes may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _rows(lacks: Sequence[Lack]) -> tuple[LackRow, ...]:
    return tuple(LackRow(what=lack.what, remedy=lack.remedy) for lack in lacks)


def show_drawn(drawn: Drawn, console: Console, on_copy: bool = False) -> None:
    """The table, what was left out, and what the log does not tell. `on_copy` says that the statements will
    run on a copy of the data anyway."""
    console.print(_table(drawn))
    if len(drawn.digests) > SHOWN_MOST:
        console.print(Text(f"and {len(drawn.digests) - SHOWN_MOST} more digests: --json lists them all"))
    if drawn.rest:
        rest = ", ".join(f"{count:,} {what}" for what, count in sorted(drawn.rest.items()))
        console.print(Text(f"no statements: {rest}"))
    for line in _about(drawn):
        console.print(Text(safe.clean(line)), soft_wrap=True)
    kept = drawn.taken
    share = part_text(sum(row.count for row in kept), drawn.statements)
    console.print(
        Text(f"{drawn.output}: {plural(len(kept), 'transaction')} for {share} of the statements"),
        soft_wrap=True,
    )
    if writing := sum(row.writes for row in kept):
        verb = "writes" if writing == 1 else "write"
        advice = "" if on_copy else ": run it on a copy of the database"
        console.print(Text(f"  {writing} of them {verb}{advice}"))


def _about(drawn: Drawn) -> Iterator[str]:
    """What the log lacks, with the statements that lack it; what is drawn in that place; the databases."""
    statements: dict[tuple[str, str], list[str]] = {}
    concerned = [row for row in drawn.digests if row.name or row.to_fill_in or row.why_not.startswith("its ")]
    for row in concerned:
        for lack in row.lacks:
            statements.setdefault((lack.what, lack.remedy), []).append(row.name or f"line {row.line}")
    for lack in drawn.lacks:
        yield f"not told: {lack.what}"
        yield f"  to get it: {lack.remedy}"
    for (what, remedy), names in statements.items():
        every = len(names) == len(concerned)
        yield f"not told: {what}, of {'all statements' if every else listed(names, SHOWN_MOST)}"
        if remedy:
            yield f"  to get it: {remedy}"
    invented = [(row.name, words) for row in drawn.taken for words in row.invented]
    yield from _each("drawn in the place of what is not told:", invented)
    yield from _inserts(drawn)
    if len(drawn.databases) > 1:
        total = sum(drawn.databases.values())
        parts = (
            f"{name or '(not told)'} {part_text(count, total)}" for name, count in drawn.databases.items()
        )
        yield f"databases: {', '.join(parts)}; --database NAME takes those of one"


def _inserts(drawn: Drawn) -> Iterator[str]:
    """How rows are inserted whose keys the log tells, and which of them can fail."""
    anew = [(row.name, words) for row in drawn.taken for words in row.anew]
    yield from _each("drawn anew, because the log's values are keys of rows that it made:", anew)
    met = [(row.name, key) for row in drawn.taken for key in row.may_meet]
    yield from _each("may meet rows that exist, and fail then:", met)
    if met:
        yield f"  to avoid it: in {drawn.output}, draw what is a key with sequence(FIRST) or uuid(),"
        yield "  or have such rows passed over: INSERT IGNORE, or ON CONFLICT DO NOTHING with PostgreSQL"


def _each(title: str, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    if found:
        yield title
    for name, words in found[:SHOWN_MOST]:
        yield f"  {name}, {words}"
    if len(found) > SHOWN_MOST:
        yield f"  and {len(found) - SHOWN_MOST} more: the file says each"


def _table(drawn: Drawn) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    several = len({row.database for row in drawn.digests}) > 1
    table.add_column("statement", overflow="fold")
    for head in ("times", "share", "of the time"):
        table.add_column(head, justify="right", no_wrap=True)
    if several:
        table.add_column("database", overflow="fold")
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
            *([Text(safe.clean(row.database or DASH))] if several else []),
            Text(marked if row.name else f"no: {row.why_not}"),
        )
    return table
