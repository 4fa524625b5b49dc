"""The store: runs and their records, in SQLite by default, in PostgreSQL by URL.

A record is on disk when `add_record` returns. Records are kept as the JSON of `record.py`, beside the few
columns that queries need; reading goes through the model, which refuses what it does not understand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import sqlalchemy as sql
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from dbdyno.records.record import Record, Run

SCHEMA = 1
"""Rises with every change of the tables below."""

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


@dataclass(frozen=True)
class RunSummary:
    """One line of `dyno runs`."""

    run: Run
    finished: bool
    outcomes: dict[str, int]


def store_url(chosen: str | None = None) -> str:
    """The store to use: the one chosen, else DYNO_STORE, else the SQLite file under the XDG data folder."""
    return chosen or os.environ.get("DYNO_STORE") or f"sqlite:///{paths.data_place() / 'dyno.sqlite'}"


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

    def run(self, name: str) -> Run:
        """The run of that name, or the only one whose name starts so, or the latest for `last`."""
        query = sql.select(_runs.c.run, _runs.c.document).order_by(_runs.c.created_unix_s.desc())
        if name == "last":
            query = query.limit(1)
        else:
            query = query.where(_runs.c.run.startswith(name, autoescape=True))
        with self._transaction() as connection:
            found: dict[str, str] = dict(iter(connection.execute(query)))
        if not found:
            what = "no run yet" if name == "last" else f"no run {name!r}"
            raise UserError(f"{what} in {self.place}", "see: dyno runs")
        if name not in ("last", *found) and len(found) > 1:
            raise UserError(
                f"more than one run starts with {name!r}", "write more of its name; see: dyno runs"
            )
        return self._parse_run(found.get(name) or next(iter(found.values())))

    def unfinished_run(self, study_digest: str | None = None) -> Run | None:
        """The latest run that has trials left, of a study or of any, if there is one."""
        query = sql.select(_runs.c.document).where(sql.not_(_runs.c.finished))
        if study_digest is not None:
            query = query.where(_runs.c.study_digest == study_digest)
        query = query.order_by(_runs.c.created_unix_s.desc()).limit(1)
        with self._transaction() as connection:
            document = connection.scalar(query)
        return None if document is None else self._parse_run(document)

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
            query = sql.select(_runs.c.document, _runs.c.finished).order_by(_runs.c.created_unix_s.desc())
            rows = connection.execute(query).all()
        parsed = [(self._parse_run(document), finished) for document, finished in rows]
        return [RunSummary(run, finished, outcomes.get(run.run, {})) for run, finished in parsed]

    @property
    def place(self) -> str:
        """Where the store is, without a password."""
        return self._url.database or "" if self._url.drivername == "sqlite" else self._url.render_as_string()

    def _open(self) -> None:
        with self._transaction() as connection:
            _metadata.create_all(connection)
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
        if self._engine.dialect.name == "postgresql":
            return postgresql.insert(table)
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
