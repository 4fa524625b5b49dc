"""The store: runs and their records, in SQLite by default, in PostgreSQL by URL.

A record is on disk when `add_record` returns. Records are kept as the JSON of `record.py`, beside the few
columns that queries need; reading goes through the model, which refuses what it does not understand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

import sqlalchemy as sql
from pydantic import ValidationError

from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from dbdyno.records.record import Record, Run

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

SCHEMA = 1
"""Rises with every change of the tables below that an older Dyno could not follow."""

_metadata = sql.MetaData()
_schema = sql.Table("dyno_schema", _metadata, sql.Column("version", sql.Integer, primary_key=True))
_runs = sql.Table(
    "dyno_runs",
    _metadata,
    sql.Column("run", sql.String(64), primary_key=True),
    sql.Column("created_unix_s", sql.Float(53), nullable=False),
    sql.Column("study_digest", sql.String(64), nullable=False, index=True),
    sql.Column("finished", sql.Boolean, nullable=False),
    sql.Column("document", sql.Text, nullable=False),
)
_records = sql.Table(
    "dyno_records",
    _metadata,
    sql.Column("run", sql.String(64), sql.ForeignKey(_runs.c.run), primary_key=True),
    sql.Column("trial", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("variant", sql.Text, nullable=False),
    sql.Column("block", sql.Integer, nullable=False),
    sql.Column("outcome", sql.String(16), nullable=False),
    sql.Column("document", sql.Text, nullable=False),
)
_names = sql.Table(
    "dyno_names",
    _metadata,
    sql.Column("name", sql.String(64), primary_key=True),
    sql.Column("run", sql.String(64), sql.ForeignKey(_runs.c.run), nullable=False),
    sql.Column("baseline", sql.Boolean, nullable=False),
)
_notes = sql.Table(
    "dyno_notes",
    _metadata,
    sql.Column("run", sql.String(64), sql.ForeignKey(_runs.c.run), primary_key=True),
    sql.Column("note", sql.Text, nullable=False),
)
# A run and the reference that takes turns with it begin at the same moment.
_LATEST_FIRST = (_runs.c.created_unix_s.desc(), _runs.c.run)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LAST = "last"
"""Stands for the latest run, so no run bears it."""


@dataclass(frozen=True)
class RunSummary:
    """One line of `dyno runs`. `name` is the one that its user gave it; `baselines` name it as well."""

    run: Run
    finished: bool
    outcomes: dict[str, int]
    name: str = ""
    note: str = ""
    baselines: tuple[str, ...] = ()


def store_url(chosen: str | None = None) -> str:
    """The store to use: the one chosen, else the SQLite file under the XDG data folder."""
    return chosen or f"sqlite:///{paths.data_place() / 'dyno.sqlite'}"


class Store:
    """Runs and records at a SQLAlchemy URL. A context manager; every failure is a DynoError that names the
    store."""

    def __init__(self, url: str) -> None:
        try:
            self._url = sql.make_url(url)
        except sql.exc.ArgumentError:
            raise UserError(f"not a store's URL: {url}", _URL_HINT) from None
        if self._url.drivername == "postgresql":
            self._url = self._url.set(drivername="postgresql+psycopg")
        if self._url.drivername not in ("sqlite", "postgresql+psycopg"):
            raise UserError(f"no store speaks {self._url.drivername}", _URL_HINT)
        opened = _unwritable(self._url)
        self._writable = opened is None
        self._engine = sql.create_engine(opened or self._url)
        if self._url.drivername == "sqlite" and self._writable:
            sql.event.listen(self._engine, "connect", _make_durable)
        self._open()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: TracebackType | type[BaseException] | BaseException | None) -> None:
        self._engine.dispose()

    def require_writable(self) -> None:
        """Raises UserError where this user cannot write the store, so that no trial runs in vain."""
        if self._writable:
            return
        if self.place == str(paths.data_place() / "dyno.sqlite"):
            paths.data()
        raise UserError(f"{self.place} may not be written by this user", "name another: --store, DYNO_STORE")

    def add_run(self, run: Run) -> None:
        """Keeps a run before its first trial; one that is kept already stays as it is."""
        row = {
            "run": run.run,
            "created_unix_s": run.created_unix_s,
            "study_digest": run.study_digest,
            "finished": False,
            "document": run.model_dump_json(),
        }
        with self._transaction() as connection:
            connection.execute(self._insert(_runs).values(row).on_conflict_do_nothing())

    def change_run(self, run: Run) -> None:
        """Keeps what has changed of a run since it was added: the number of its blocks."""
        changed = sql.update(_runs).where(_runs.c.run == run.run).values(document=run.model_dump_json())
        with self._transaction() as connection:
            connection.execute(changed)

    def reopen_run(self, run: Run) -> None:
        """Keeps a run that has trials left again, because it has more blocks now."""
        changed = sql.update(_runs).where(_runs.c.run == run.run)
        with self._transaction() as connection:
            connection.execute(changed.values(document=run.model_dump_json(), finished=False))

    def finish_run(self, run: str) -> None:
        """Marks a run whose trials have all ended."""
        with self._transaction() as connection:
            connection.execute(sql.update(_runs).where(_runs.c.run == run).values(finished=True))

    def add_record(self, record: Record) -> None:
        """Keeps a trial's record; a second record of the same trial takes the first one's place."""
        row = {
            "run": record.run,
            "trial": record.trial,
            "variant": record.variant,
            "block": record.block,
            "outcome": record.outcome.value,
            "document": record.model_dump_json(),
        }
        statement = self._insert(_records).values(row)
        statement = statement.on_conflict_do_update(index_elements=["run", "trial"], set_=row)
        with self._transaction() as connection:
            connection.execute(statement)

    def require_free(self, name: str, run: str = "", baseline: bool = False) -> None:
        """Raises UserError where `name` is none, or stands for another thing than `run` already."""
        if not NAME.fullmatch(name) or name == LAST:
            raise UserError(
                f"{name!r} cannot be a name", "letters, digits, dots, dashes and underscores; at most 64"
            )
        with self._transaction() as connection:
            taken = connection.scalar(sql.select(_runs.c.run).where(_runs.c.run == name))
        named, is_baseline = self._named().get(name, (run, baseline))
        if taken or is_baseline != baseline or (not baseline and named != run):
            what = "a baseline" if is_baseline and not taken else f"run {taken or named}"
            raise UserError(f"{name!r} is the name of {what} already", "choose another; see: dyno runs")

    def name_run(self, run: str, name: str) -> None:
        """Gives a run a name of its user's, in the place of the one it had. Raises UserError where another
        run bears it."""
        self.require_free(name, run)
        with self._transaction() as connection:
            connection.execute(sql.delete(_names).where(_names.c.run == run, sql.not_(_names.c.baseline)))
            connection.execute(sql.insert(_names).values(name=name, run=run, baseline=False))

    def note_run(self, run: str, note: str) -> None:
        """Keeps a note beside a run, in the place of the one it had; an empty one takes it away."""
        with self._transaction() as connection:
            connection.execute(sql.delete(_notes).where(_notes.c.run == run))
            if note:
                connection.execute(sql.insert(_notes).values(run=run, note=note))

    def set_baseline(self, name: str, run: str) -> None:
        """Lets a baseline's name stand for a run from now on."""
        self.require_free(name, run, baseline=True)
        with self._transaction() as connection:
            connection.execute(sql.delete(_names).where(_names.c.name == name))
            connection.execute(sql.insert(_names).values(name=name, run=run, baseline=True))

    def remove_baseline(self, name: str) -> None:
        """Forgets a baseline's name; its run stays. Raises UserError where there is none."""
        if name not in self.baselines():
            raise UserError(f"no baseline {name!r} in {self.place}", "see: dyno baseline list")
        with self._transaction() as connection:
            connection.execute(sql.delete(_names).where(_names.c.name == name))

    def baselines(self) -> dict[str, str]:
        """The runs that baselines stand for, by the baseline's name."""
        return {name: run for name, (run, baseline) in sorted(self._named().items()) if baseline}

    def remove_run(self, run: str) -> None:
        """Deletes a run with its records, name and note. Raises UserError where it is a baseline."""
        if kept := [name for name, named in self.baselines().items() if named == run]:
            raise UserError(
                f"run {run} is the baseline {kept[0]}", f"dyno baseline rm {kept[0]}, or set another"
            )
        with self._transaction() as connection:
            for table in (_records, _names, _notes, _runs):
                connection.execute(sql.delete(table).where(table.c.run == run))

    def run(self, name: str) -> Run:
        """The run of that name, whether Dyno's, its user's or a baseline's; or the only one whose name starts
        so, or the latest for `last`."""
        query = sql.select(_runs.c.run, _runs.c.document).order_by(*_LATEST_FIRST)
        if name == LAST:
            query = query.limit(1)
        elif named := self._named().get(name):
            query = query.where(_runs.c.run == named[0])
        else:
            query = query.where(_runs.c.run.startswith(name, autoescape=True))
        with self._transaction() as connection:
            found: dict[str, str] = dict(iter(connection.execute(query)))
        if not found:
            what = "no run yet" if name == LAST else f"no run {name!r}"
            raise UserError(f"{what} in {self.place}", "see: dyno runs")
        if name not in (LAST, *found) and len(found) > 1:
            raise UserError(
                f"more than one run starts with {name!r}", "write more of its name; see: dyno runs"
            )
        return self._parse_run(found.get(name) or next(iter(found.values())))

    def unfinished_runs(self) -> list[Run]:
        """The runs that have trials left, the latest first."""
        query = sql.select(_runs.c.document).where(sql.not_(_runs.c.finished))
        with self._transaction() as connection:
            documents = connection.scalars(query.order_by(*_LATEST_FIRST)).all()
        return [self._parse_run(document) for document in documents]

    def records(self, run: str) -> list[Record]:
        """All records of a run, in the order of its trials."""
        query = sql.select(_records.c.document).where(_records.c.run == run).order_by(_records.c.trial)
        with self._transaction() as connection:
            documents = connection.scalars(query).all()
        try:
            return [Record.model_validate_json(document) for document in documents]
        except ValidationError as error:
            raise self._unreadable(f"a record of run {run}", error) from None

    def runs(self) -> list[RunSummary]:
        """Every run, the latest first."""
        counts = sql.select(_records.c.run, _records.c.outcome, sql.func.count()).group_by(
            _records.c.run, _records.c.outcome
        )
        outcomes: dict[str, dict[str, int]] = {}
        with self._transaction() as connection:
            for run, outcome, count in connection.execute(counts):
                outcomes.setdefault(run, {})[outcome] = count
            query = sql.select(_runs.c.document, _runs.c.finished).order_by(*_LATEST_FIRST)
            rows = connection.execute(query).all()
        own = {run: name for name, (run, baseline) in self._named().items() if not baseline}
        notes, baselines = self._notes(), self.baselines()
        parsed = [(self._parse_run(document), finished) for document, finished in rows]
        return [
            RunSummary(
                run=run,
                finished=finished,
                outcomes=outcomes.get(run.run, {}),
                name=own.get(run.run, ""),
                note=notes.get(run.run, ""),
                baselines=tuple(name for name, named in baselines.items() if named == run.run),
            )
            for run, finished in parsed
        ]

    @property
    def place(self) -> str:
        """Where the store is, without a password."""
        return self._url.database or "" if self._url.drivername == "sqlite" else self._url.render_as_string()

    def _named(self) -> dict[str, tuple[str, bool]]:
        """The run of each name that a user gave, and whether the name is a baseline's."""
        if not self._labelled:
            return {}
        query = sql.select(_names.c.name, _names.c.run, _names.c.baseline)
        with self._transaction() as connection:
            return {name: (run, baseline) for name, run, baseline in connection.execute(query)}

    def _notes(self) -> dict[str, str]:
        if not self._labelled:
            return {}
        with self._transaction() as connection:
            return dict(iter(connection.execute(sql.select(_notes.c.run, _notes.c.note))))

    def _open(self) -> None:
        with self._transaction() as connection:
            if self._writable or not self._engine.url.database:
                _metadata.create_all(connection)
            # A store that may not be written can be older than the tables of names and notes.
            self._labelled = sql.inspect(connection).has_table(_notes.name)
            version = connection.scalar(sql.select(_schema.c.version))
            if version is None:
                connection.execute(sql.insert(_schema).values(version=SCHEMA))
            elif version != SCHEMA:
                raise DynoError(
                    f"{self.place} has schema {version}, this Dyno reads {SCHEMA}",
                    "use the Dyno that wrote it",
                )
            if not self._writable:
                connection.exec_driver_sql("PRAGMA query_only=ON")

    @contextmanager
    def _transaction(self) -> Iterator[sql.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except sql.exc.SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise DynoError(f"the store {self.place} failed: {cause}", "see --store and DYNO_STORE") from None

    def _insert(self, table: sql.Table) -> postgresql.Insert | sqlite.Insert:
        # Here, because a dialect that is not used takes as long to import as the rest of the store.
        if self._engine.dialect.name == "postgresql":
            from sqlalchemy.dialects import postgresql

            return postgresql.insert(table)
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)

    def _parse_run(self, document: str) -> Run:
        try:
            return Run.model_validate_json(document)
        except ValidationError as error:
            raise self._unreadable("a run", error) from None

    def _unreadable(self, what: str, error: ValidationError) -> DynoError:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return DynoError(
            f"{self.place}: {what} cannot be read ({where}: {first['msg']})",
            "was it written by a newer Dyno?",
        )


@contextmanager
def writable_store(url: str) -> Iterator[Store]:
    """The store at a URL. Raises UserError where this user cannot write it."""
    with Store(url) as store:
        store.require_writable()
        yield store


_URL_HINT = "sqlite:///PATH, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


def _unwritable(url: sql.URL) -> sql.URL | None:
    """What to open in the place of a SQLite file that lies where this user cannot write: the file as it
    stands, or nothing in memory where there is none. None for a store that can be written."""
    if url.drivername != "sqlite" or not url.database or url.database == ":memory:":
        return None
    path = Path(url.database)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    if os.access(path.parent, os.W_OK):
        return None
    if not path.is_file():
        return sql.make_url("sqlite://")
    # What lies in a log beside the file is read as well; without one nothing beside it needs to be made.
    how = "mode=ro" if path.with_name(path.name + "-wal").exists() else "mode=ro&immutable=1"
    return sql.make_url(f"sqlite:///file:{quote(str(path.resolve()))}?{how}&uri=true")


def _make_durable(connection: object, _record: object) -> None:
    """A record that was reported written must survive a loss of power (SQLite: WAL with synchronous=FULL)."""
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
