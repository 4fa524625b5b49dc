"""`dyno init study`: a study of what a server was asked in production, on data of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.terminal import terminal
from dbdyno.cli.traffic import Drawn, drawable, drawn_from, show_drawn, source_of
from dbdyno.engines import registry
from dbdyno.engines.engine import Proposal
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
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
from dbdyno.prepare_run.study_here import given_mistakes
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import plural
from dbdyno.report.words.safe import json_text
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.formats import lacks_of
from dbdyno.sql_logs.groups import Traffic
from dbdyno.sql_logs.inserts import draw_new_keys
from dbdyno.sql_logs.read import traffic_of
from dbdyno.sql_logs.schema import Schema, SchemaReader
from dbdyno.sql_logs.script import script, statement_of
from dbdyno.sql_logs.seen import LogReading
from dbdyno.study import excludes
from dbdyno.study.document import Row, toml
from dbdyno.study.nouns import GivenData, Reference
from dbdyno.study.tables import DATA
from dbdyno.user_data.dump import dump_at, text_of

STUDY, WORKLOAD = "study.toml", "workload.toml"
TO_FILL_IN = "it has values that no log tells"
TOLD_BYTES = 100 << 20
"""A dump that is larger than this takes seconds to read."""


class StudyMade(Frozen):
    """What `dyno init study` wrote: the study, its workload with each digest that was seen, and the command
    that runs it."""

    study: str
    workload: Drawn
    then: str


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
    made = StudyMade(study=str(path), workload=drawn, then=f"dyno run {path} --budget {time_}")
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
    for line in (made.study, f"  see what it does: dyno plan {made.study}", f"  then: {made.then}"):
        console.print(Text(line), soft_wrap=True)


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
