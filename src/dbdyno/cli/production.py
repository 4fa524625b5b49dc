"""`dyno init study`: a study of what a server was asked in production, on data of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.terminal import tell, terminal
from dbdyno.cli.traffic import SHOWN_MOST, Drawn, drawable, drawn_from, show_drawn, source_of
from dbdyno.engines import registry
from dbdyno.engines.engine import Proposal
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import Frozen, listed
from dbdyno.host import cache
from dbdyno.host.host_lock import alone
from dbdyno.layers.config import taken_of
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.installation import Installation
from dbdyno.prepare_run import first_study
from dbdyno.prepare_run.first_study import (
    CLIENTS_EACH_CPU,
    CLIENTS_LEAST,
    GOALS,
    HostCapacity,
    RecordedLoad,
    StudyOutline,
    host_here,
)
from dbdyno.prepare_run.study_here import given_mistakes, located, study_at
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import DASH, plural
from dbdyno.report.words.safe import json_text
from dbdyno.sql_logs.digest import Dialect, shaped
from dbdyno.sql_logs.formats import lacks_of
from dbdyno.sql_logs.groups import Group, RowsEach, Traffic
from dbdyno.sql_logs.inserts import draw_new_keys
from dbdyno.sql_logs.read import traffic_of
from dbdyno.sql_logs.schema import Schema, SchemaReader
from dbdyno.sql_logs.script import names_of, script, statement_of
from dbdyno.sql_logs.seen import LogReading
from dbdyno.study import excludes
from dbdyno.study.document import Row, toml
from dbdyno.study.nouns import GivenData, Reference
from dbdyno.study.tables import DATA
from dbdyno.trial.beside import AskedStatements, log_on_copy
from dbdyno.trial.pristine import place_brought
from dbdyno.user_data.dump import dump_at, text_of
from dbdyno.user_data.folder import size_bytes_of

STUDY, WORKLOAD = "study.toml", "workload.toml"
TO_FILL_IN = "it has values that no log tells"
TOLD_BYTES = 100 << 20
"""A dump that is larger than this takes seconds to read."""


COPIED_BYTES = 256 << 20
"""Data that are larger are not copied unless the user says so, because that takes minutes."""
COPY_S = 60.0
"""About how long the server on a copy is there."""
TRANSACTIONS_LEAST, TRANSACTIONS_EACH = 2_000, 100
APART = 0.1
"""A statement whose rows on the copy differ by more is named."""
PREFIX = "%m [%p] %q%u@%d "
"""With which PostgreSQL logs on the copy."""


class RowsTold(Frozen):
    """Rows that a statement read, sent and changed on average; null where the log does not tell."""

    read: float | None
    sent: float | None
    changed: float | None

    @classmethod
    def of(cls, rows: RowsEach) -> RowsTold:
        return cls(read=rows.read, sent=rows.sent, changed=rows.changed)


class RowsBeside(Frozen):
    """The rows of a transaction's statement in the log, which had `count` of them, and on a copy of the
    data."""

    name: str
    count: int
    in_log: RowsTold
    on_copy: RowsTold

    @property
    def apart(self) -> bool:
        """Whether one of the numbers differs by more than a tenth, and by a tenth of a row."""
        pairs = ((getattr(self.in_log, of), getattr(self.on_copy, of)) for of in RowsTold.model_fields)
        return any(
            abs(here - told) > APART * max(told, 1.0)
            for told, here in pairs
            if told is not None and here is not None
        )


class StudyMade(Frozen):
    """What `dyno init study` wrote: the study, its workload with each digest that was seen, and the command
    that runs it. `rows` are those of each transaction in the log and on a copy of the data; `rows_untold`
    says why there are none."""

    study: str
    workload: Drawn
    then: str
    rows: tuple[RowsBeside, ...] = ()
    rows_untold: str = ""


def main(
    sources: tuple[Path, ...],
    database: str,
    limit: int,
    dumps: tuple[Path, ...],
    folder: Path | None,
    engine: str | None,
    factors: tuple[Proposal, ...],
    goal: str,
    clients: int | None,
    time_: str,
    copy: bool | None,
    reading: LogReading,
    output: Path,
    as_json: bool,
) -> None:
    if reading.key:
        raise UserError(
            "a study runs on the log's own data, which hold no other values",
            "leave out --anonymise; dyno init workload --anonymise writes a file for others",
        )
    data = ProductionData(dumps, folder, database, output)
    for name in (STUDY, WORKLOAD):
        if (output / name).exists():
            raise UserError(f"{output / name} is there already", "give another folder with --output")
    traffic = traffic_of(sources, database, reading)
    _require_one_database(traffic, sources, database)
    found = drawable(traffic, sources)
    draw_new_keys(found, data.schema(traffic.dialect), traffic.dialect, data.name)
    taken = [group for group in found if not statement_of(group.longest).to_fill_in][:limit]
    left_out = [group for group in found if statement_of(group.longest).to_fill_in]
    if not taken:
        remedy = next((lack.remedy for lack in lacks_of(left_out[0], traffic)), "")
        raise UserError(
            f"{source_of(sources)} tells no values that its statements could be drawn with", remedy
        )
    host = host_here()
    question = _question(engine or traffic.engine, factors, traffic, host)
    data.require_for(engine or traffic.engine)
    load = _load(traffic, clients, goal, host)
    path = output / STUDY
    write(output / WORKLOAD, script(source_of(sources), traffic, taken, left_out))
    write(path, first_study.of_production(question, load, data.rows, host, str(path), time_))
    drawn = drawn_from(traffic, taken, output / WORKLOAD, sources, TO_FILL_IN)
    rows, untold = _rows_beside(path, data, taken, traffic, copy)
    then = f"dyno run {path} --budget {time_}"
    made = StudyMade(study=str(path), workload=drawn, then=then, rows=rows, rows_untold=untold)
    _print(traffic.notes, made, as_json)


def _print(notes: tuple[str, ...], made: StudyMade, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(made))
        return
    console = terminal()
    show_drawn(made.workload, console, on_copy=True)
    for note in notes:
        console.print(Text(safe.clean(note)), soft_wrap=True)
    if missing := sum(row.to_fill_in for row in made.workload.digests):
        told = f"  {plural(missing, 'digest')} left out, because {TO_FILL_IN}: see the end of the file"
        console.print(Text(told), soft_wrap=True)
    _print_rows(made, console)
    for line in (made.study, f"  see what it does: dyno plan {made.study}", f"  then: {made.then}"):
        console.print(Text(line), soft_wrap=True)


def _rows_beside(
    path: Path, data: ProductionData, taken: Sequence[Group], traffic: Traffic, copy: bool | None
) -> tuple[tuple[RowsBeside, ...], str]:
    """The rows of each transaction in the log and on a copy of the data, or why they are not told."""
    if copy is False:
        return (), "--no-copy"
    if all(group.rows == RowsEach() for group in taken):
        return (), "the log does not tell them"
    study = study_at(path)
    found, engine = located(study.engine), registry.engine(study.engine.engine)
    if not isinstance(found, Installation):
        return (), found.message
    if copy is None and data.size_bytes > COPIED_BYTES:
        return (), "the data are large: --copy measures them nevertheless"
    levels = taken_of({**study.settings, **study.baseline}, LAYERS, engine, found)
    asked = AskedStatements(
        study, engine, found, by_layer(levels).get("config", {}), dict(study.workload.options), ""
    )
    transactions = max(TRANSACTIONS_LEAST, TRANSACTIONS_EACH * len(taken))
    try:
        with alone(f"the rows of {study.title}", COPY_S, tell=tell), cache.scratch("rows") as folder:
            log_on_copy(asked, transactions, folder / "log", place_brought, tell)
            here = traffic_of([folder / "log"], reading=LogReading(PREFIX, whole=True))
    except DynoError as failed:
        return (), failed.message
    digests = {group.digest: group.rows for group in here.groups}
    return tuple(
        RowsBeside(
            name=name,
            count=group.count,
            in_log=RowsTold.of(group.rows),
            on_copy=RowsTold.of(_rows_here(group, traffic.dialect, digests)),
        )
        for name, group in zip(names_of(taken), taken, strict=True)
    ), ""


def _rows_here(group: Group, dialect: Dialect, digests: Mapping[str, RowsEach]) -> RowsEach:
    """Those of a group's own statements, whose texts have casts that the log's have not."""
    statements = (statement_of(shape).sql for shape, _ in group.lengths)
    own = (shaped(re.sub(r"(?<!:):p\d+", "1", sql), dialect).digest for sql in statements)
    return next((digests[digest] for digest in own if digest in digests), RowsEach())


def _print_rows(made: StudyMade, console: Console) -> None:
    if made.rows_untold:
        console.print(Text(f"rows on a copy not measured: {made.rows_untold}"), soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("rows a statement: log | copy", overflow="fold")
    whats = [*RowsTold.model_fields]
    for what in whats:
        table.add_column(what, justify="right", no_wrap=True)
    for row in made.rows[:SHOWN_MOST]:
        table.add_row(Text(row.name), *(_pair([row], what) for what in whats))
    table.add_row(Text("all, as often as in the log"), *(_pair(made.rows, what) for what in whats))
    console.print(table)
    if apart := [row.name for row in made.rows if row.apart]:
        told = f"more than {APART:.0%} apart: {listed(apart, SHOWN_MOST)}"
        console.print(Text(told), soft_wrap=True)


def _pair(rows: Sequence[RowsBeside], what: str) -> str:
    """The means over transactions of which both are known."""
    known = [
        (row.count, told, here)
        for row in rows
        if (told := getattr(row.in_log, what)) is not None
        and (here := getattr(row.on_copy, what)) is not None
    ]
    if not known:
        return DASH
    total = sum(count for count, _, _ in known)
    told, here = (sum(one[0] * one[at] for one in known) / total for at in (1, 2))
    return f"{told:.3g} | {here:.3g}"


@dataclass(frozen=True)
class ProductionData:
    """The data that the study brings."""

    dumps: tuple[Path, ...]
    folder: Path | None
    database: str
    output: Path

    def __post_init__(self) -> None:
        excludes.require(dump=self.dumps or None, folder=self.folder)
        if not self.dumps and not self.folder:
            raise UserError(
                "a study of production needs its data",
                "add --dump FILE, as mariadb-dump, mysqldump or pg_dump write it;"
                " for a server that runs already: dyno init workload",
            )

    @property
    def name(self) -> str:
        """What they are called in messages."""
        return self.folder.name if self.folder else ", ".join(dump.name for dump in self.dumps)

    @property
    def size_bytes(self) -> int:
        return sum(map(size_bytes_of, self.dumps or ([self.folder] if self.folder else [])))

    @property
    def rows(self) -> list[Row]:
        """The section [data]; paths count from the study's folder."""
        if self.folder:
            row = DATA.row("folder", self._path(self.folder), "a server's data folder; it is copied")
        else:
            paths = tuple(map(self._path, self.dumps))
            row = DATA.row("dump", paths, "loaded once; each trial begins with a copy of these data")
        name = self.database or "NAME"
        key = "database" if self.database and self.folder else "# database"
        return [row, (key, toml(name), "needed where the data hold several databases")]

    def require_for(self, engine: str) -> None:
        """Raises UserError for data that a server of this engine cannot take, as far as their files say
        it."""
        reference = Reference(re.split("[@:]", engine)[0])
        given = GivenData(dump=tuple(map(str, self.dumps)), folder=str(self.folder or ""))
        for mistake in given_mistakes(given, Path.cwd(), None, reference, ()):
            raise UserError(mistake.message, mistake.hint)

    def schema(self, dialect: Dialect) -> Schema | None:
        """The tables that the dump makes; None where it is no text. Raises UserError for one that cannot be
        read."""
        found = [dump_at(path) for path in self.dumps]
        if not found or not all(dump.is_text for dump in found):
            return None
        reader = SchemaReader(dialect)
        for dump in found:
            if dump.size_bytes > TOLD_BYTES:
                click.echo(f"reading the keys of the tables from {dump.path}", err=True)
            with text_of(dump) as text:
                reader.take(text.source)
        return reader.schema

    def _path(self, path: Path) -> str:
        return os.path.relpath(path.resolve(), self.output.resolve())


def _require_one_database(traffic: Traffic, sources: Sequence[Path], database: str) -> None:
    """A study's load connects to one database, so statements of several cannot all be right."""
    known = [name for name in traffic.databases if name]
    if database or len(known) < 2:
        return
    total = sum(traffic.databases.values())
    parts = ", ".join(f"{name} ({100 * traffic.databases[name] / total:.3g} %)" for name in known)
    raise UserError(
        f"{source_of(sources)} is of {len(known)} databases: {parts}", f"choose one: --database {known[0]}"
    )


def _question(engine: str, factors: Sequence[Proposal], traffic: Traffic, host: HostCapacity) -> StudyOutline:
    """What the study is about. Raises UserError for an engine that is not known."""
    name = re.split("[@:]", engine)[0]
    if name not in registry.ENGINES:
        known = ", ".join(sorted(registry.ENGINES))
        what = f"there is no engine {name!r}" if name else "the log does not tell which server wrote it"
        raise UserError(what, f"give --engine with one of: {known}")
    found = registry.engine(name)
    title = f"What helps {found.title} with what it is asked in production?"
    proposals = factors or tuple(found.settings.proposals(host.memory_bytes))
    return StudyOutline(title, toml(engine), "one-at-a-time", proposals)


def _load(traffic: Traffic, clients: int | None, goal: str, host: HostCapacity) -> RecordedLoad:
    """How the statements are asked, with what the log tells of it."""
    proposed = clients or max(CLIENTS_LEAST, CLIENTS_EACH_CPU * host.cpus)
    told = []
    if traffic.at_a_time is not None:
        told.append(f"in the log {traffic.at_a_time:.2g} statements ran at a time on average")
    if traffic.sessions:
        told.append(f"of {plural(traffic.sessions, 'session')}")
    return RecordedLoad(WORKLOAD, GOALS[goal], proposed, ", ".join(told))
