"""The database below the store: a SQLite file, or PostgreSQL by URL.

Both speak the SQL of the store, so nothing but this stands between it and their drivers. `sqlite3` and
`psycopg` differ in how they open, in their errors, and in the sign that stands for a value.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dbdyno.errors import DynoError, UserError

URL_HINT = "sqlite:///PATH, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
SQLITE, POSTGRESQL = "sqlite:///", "postgresql://"
IN_MEMORY = ":memory:"
DURABLE = ("synchronous=FULL", "foreign_keys=ON")
"""A record that was reported written must survive a loss of power."""
LOCKED_S = 10.0
"""How long a statement waits for another process that writes."""
ASK_AGAIN_S = 0.01
PRIMARY_CODE = 0xFF
"""The bits of an SQLite error that say what failed; those above say how."""
TOLD = ("host", "hostaddr", "port", "dbname", "user")
"""What may be told of a PostgreSQL store: its other parameters can hold secrets."""

Row = tuple[Any, ...]
Execute = Callable[..., Sequence[Row]]
"""Carries out a statement with the values for its question marks. Returns its rows."""


@dataclass(frozen=True)
class Database:
    """An open database. `place` says where it is, without a password; `begin` starts a transaction that
    writes, and `has_table` asks for a table by its name."""

    place: str
    writable: bool
    execute: Execute
    close: Callable[[], None]
    error: type[Exception]
    begin: str
    has_table: str

    @contextmanager
    def transaction(self, writes: bool = True) -> Iterator[Execute]:
        """What is done inside happens as a whole or not at all. Raises DynoError where the database fails."""
        try:
            try:
                self.execute(self.begin if writes else "BEGIN")
                yield self.execute
                self.execute("COMMIT")
            except BaseException:
                # The failure may have ended the transaction already.
                with suppress(self.error):
                    self.execute("ROLLBACK")
                raise
        except self.error as error:
            raise failed(self.place, error) from None

    def holds(self, table: str) -> bool:
        """Whether there is such a table."""
        with self.transaction(writes=False) as execute:
            return bool(execute(self.has_table, table))


def open_database(url: str) -> Database:
    """Opens what a URL names. Raises UserError for what is no store's URL, DynoError where it fails."""
    if url.startswith(POSTGRESQL):
        return _postgresql(url)
    if url.startswith(SQLITE):
        return _sqlite(_path(url.removeprefix(SQLITE)))
    scheme, found, _ = url.partition("://")
    raise UserError(f"no store speaks {scheme}" if found else f"not a store's URL: {url}", URL_HINT)


def failed(place: str, error: Exception) -> DynoError:
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
    full = isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    hint = "make room there; `dyno run --resume` then goes on" if full else "see --store and DYNO_STORE"
    return DynoError(f"the store {place} failed: {cause}", hint)


def _path(path: str) -> str:
    """The path of a SQLite store as its URL has it: `%41` is a name of three characters."""
    if not path:
        raise UserError("the URL of the store names no file", URL_HINT)
    if "?" in path:
        raise UserError(f"the URL of a SQLite store has no parameters: {SQLITE}{path}", URL_HINT)
    return path


def _sqlite(place: str) -> Database:
    unwritable = _instead(place)
    try:
        connection = sqlite3.connect(
            unwritable or place, timeout=LOCKED_S, isolation_level=None, uri=unwritable is not None
        )
        if unwritable is None:
            _write_ahead(connection)
            for setting in DURABLE:
                connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error as error:
        raise failed(place, error) from None
    return Database(
        place=place,
        writable=unwritable is None,
        execute=lambda statement, *values: connection.execute(statement, values).fetchall(),
        close=connection.close,
        error=sqlite3.Error,
        begin="BEGIN IMMEDIATE",
        has_table="SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
    )


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turns on the write-ahead log, which the file then keeps. SQLite does not wait for the lock it needs.
    So where two open a new file at once, the second asks again until the first has turned it on."""
    until_s = time.monotonic() + LOCKED_S
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & PRIMARY_CODE == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > until_s:
                raise
            time.sleep(ASK_AGAIN_S)


def _instead(place: str) -> str | None:
    """What to open in the place of a file that lies where this user cannot write: the file as it stands, or
    nothing in memory where there is none. None for a file that can be written."""
    if place == IN_MEMORY:
        return None
    path = Path(place)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    if os.access(path.parent, os.W_OK):
        return None
    if not path.is_file():
        return f"file:{IN_MEMORY}"
    # What lies in a log beside the file is read as well; without one nothing beside it needs to be made.
    how = "mode=ro" if path.with_name(path.name + "-wal").exists() else "mode=ro&immutable=1"
    return f"file:{quote(str(path.resolve()))}?{how}"


def _postgresql(url: str) -> Database:
    # Here, because most stores are files, and the driver takes as long to import as all that reads them.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's own words hold the password.
        raise UserError("the URL of the store cannot be read", URL_HINT) from None
    place = f"PostgreSQL ({make_conninfo('', **{key: parameters.get(key) for key in TOLD})})"
    try:
        connection = psycopg.connect(url, autocommit=True)
    except psycopg.Error as error:
        raise failed(place, error) from None

    def execute(statement: str, *values: object) -> Sequence[Row]:
        done = connection.execute(statement.replace("?", "%s").encode(), values)
        return done.fetchall() if done.description is not None else ()

    return Database(
        place=place,
        writable=True,
        execute=execute,
        close=connection.close,
        error=psycopg.Error,
        begin="BEGIN",
        has_table="SELECT 1 WHERE to_regclass(?) IS NOT NULL",
    )
