"""The database below the store: a SQLite file, or PostgreSQL by URL; and the spool of what it did not
take.

Both speak the SQL of the store, so nothing but this stands between it and their drivers. `sqlite3` and
`psycopg` differ in how they open, in their errors, and in the sign that stands for a value.

The fence around a fleet's records: the database takes one only while the lease is in force under which it
was made. The worker's own idea of time has no part in that.

The spool is one file for each store, found by where the store is, so that whoever opens that store next
takes them up. A lock on the file lets one process at a time add to it or empty it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dbdyno.errors import DynoError, Stopped, UserError, remedy
from dbdyno.host import paths
from dbdyno.host.clone import sync_folder
from dbdyno.records.place import SQLITE, place_of_store

IN_FORCE = (
    "SELECT 1 FROM dyno_leases WHERE fence = ? AND run = ? AND upper(during) > clock_timestamp() FOR SHARE"
)
"""Whoever gives the host away waits for the lock, so no record comes in under a lease that has ended."""


class LeaseOver(Stopped):
    """The lease of this host is over: what was measured under it does not count, and is measured again."""


def require_in_force(execute: Execute, run: str, fence: int) -> None:
    """Raises LeaseOver within the transaction that would keep a record."""
    # Who is stopped before its end must not keep the host from everybody else.
    execute("SET LOCAL idle_in_transaction_session_timeout = '10s'")
    if not execute(IN_FORCE, fence, run):
        raise LeaseOver(
            f"the store refused a record of run {run}: lease {fence} of this host is over",
            "the worker measures the trial again under its next lease",
        )


def note_late(execute: Execute, run: str, trial: int, fence: int) -> None:
    """Keeps that a record was refused."""
    execute("INSERT INTO dyno_late (run, trial, fence) VALUES (?, ?, ?)", run, trial, fence)


def fence_of(document: str) -> int:
    """The number of a stored record's lease; 0 for one of no fleet."""
    return int(json.loads(document).get("fence", 0)) if '"fence"' in document else 0


IN_MEMORY = ":memory:"
DURABLE = ("synchronous=FULL", "foreign_keys=ON")
"""A record that was reported written must survive a loss of power."""
LOCKED_S = 10.0
"""How long a statement waits for another process that writes."""
ASK_AGAIN_S = 0.01
KEEPALIVES = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Seconds and a number; the last is in milliseconds (libpq)."""
PRIMARY_CODE = 0xFF
"""The bits of an SQLite error that say what failed; those above say how."""
PASSING_CODES = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL,
)  # fmt: skip
"""What may have passed when SQLite is asked again. No patience makes a file writable."""

NO_RIGHT = "42501"
"""PostgreSQL's code for a right that an account lacks."""
GRANT = (
    "as the owner of its tables: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO that"
    " account; the first who uses a store makes them, and needs GRANT CREATE ON SCHEMA public"
)

Row = tuple[Any, ...]
Execute = Callable[..., Sequence[Row]]
"""Carries out a statement with the values for its question marks. Returns its rows."""


MAKING_TABLES = 0x64796E6F
"""The advisory lock of whoever makes the tables of a store."""


class Unavailable(DynoError):
    """The database cannot do it now: it is busy, has gone, or its disk is full."""


@dataclass(frozen=True)
class Database:
    """An open database. `place` says where it is, without a password, and `key` says so from wherever it is
    asked; it is empty where nothing outlasts this process. `error` is what its driver raises, and `passing`
    tells whether one of these may pass. `begin` starts a transaction that writes, `alone` keeps others off
    whoever makes tables in it, where that takes more, and `has_table` asks for a table by its name.
    `has_right` asks whether this account has a right on a table; empty where there are no accounts."""

    place: str
    key: str
    writable: bool
    execute: Execute
    close: Callable[[], None]
    error: type[Exception]
    passing: Callable[[Exception], bool]
    begin: str
    alone: str
    has_table: str
    has_right: str = ""

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
            raise failed(self.place, error, self.passing(error)) from None

    def holds(self, table: str) -> bool:
        """Whether there is such a table."""
        with self.transaction(writes=False) as execute:
            return bool(execute(self.has_table, table))

    def require_rights(self, rights: Mapping[str, Sequence[str]]) -> None:
        """Raises UserError where this account lacks one of the rights on tables."""
        if not self.has_right:
            return
        with self.transaction(writes=False) as execute:
            lacking = [
                f"{right} on {table}"
                for table, all_of_it in rights.items()
                for right in all_of_it
                if not execute(self.has_right, table, right)[0][0]
            ]
            [(account,)] = execute("SELECT current_user")
        if lacking:
            raise UserError(f"the store {self.place}: {account} lacks {', '.join(lacking)}", GRANT)


def open_database(url: str) -> Database:
    """Opens what a URL names. Raises UserError like `place_of_store`, and DynoError where it fails."""
    place = place_of_store(url)
    return _sqlite(place) if url.startswith(SQLITE) else _postgresql(url, place)


def failed(place: str, error: Exception, passing: bool = False) -> DynoError:
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
    full = isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    hint = "make room there; `dyno run --resume` then goes on" if full else "see --store and DYNO_STORE"
    if getattr(error, "sqlstate", "") == NO_RIGHT:
        hint = GRANT
    return (Unavailable if passing else DynoError)(f"the store {place} failed: {cause}", hint)


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
        key="" if place == IN_MEMORY else f"{SQLITE}{Path(place).resolve()}",
        writable=unwritable is None,
        execute=lambda statement, *values: connection.execute(statement, values).fetchall(),
        close=connection.close,
        error=sqlite3.Error,
        passing=_passes,
        begin="BEGIN IMMEDIATE",
        alone="",
        has_table="SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
    )


def _passes(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE in PASSING_CODES


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


def with_keepalives(url: str) -> str:
    """A PostgreSQL's URL as libpq takes it, with what tells of a server that is gone without a word, such as
    behind a network that is split. The kernel asks, and no process wakes for it. What the URL says itself
    stays."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    given = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in KEEPALIVES.items() if name not in given})


def _postgresql(url: str, place: str) -> Database:
    import psycopg

    try:
        connection = psycopg.connect(with_keepalives(url), autocommit=True)
    except psycopg.Error as error:
        raise failed(place, error, passing=True) from None

    def execute(statement: str, *values: object) -> Sequence[Row]:
        nonlocal connection
        # The server may have started again; what was done in a broken connection's transaction is gone.
        if connection.closed and statement == "BEGIN":
            connection = psycopg.connect(with_keepalives(url), autocommit=True)
        done = connection.execute(statement.replace("?", "%s").encode(), values)
        return done.fetchall() if done.description is not None else ()

    return Database(
        place=place,
        key=place,
        writable=True,
        execute=execute,
        close=lambda: connection.close(),
        error=psycopg.Error,
        passing=lambda error: isinstance(error, psycopg.OperationalError) or connection.closed,
        begin="BEGIN",
        # IF NOT EXISTS does not see what another one makes at this moment.
        alone=f"SELECT pg_advisory_xact_lock({MAKING_TABLES})",
        has_table="SELECT 1 WHERE to_regclass(?) IS NOT NULL",
        has_right="SELECT has_table_privilege(?, ?)",
    )


Waiting = tuple[str, int, str, int, str, str]
"""A row of the store's records: run, trial, variant, block, outcome, document."""


class Spool:
    """The records that wait for a store at `place`. Nothing is made before one has to wait."""

    def __init__(self, place: str) -> None:
        digest = hashlib.sha256(place.encode()).hexdigest()[:24]
        self.path = paths.state_place() / "spool" / f"{digest}.jsonl"

    @property
    def empty(self) -> bool:
        try:
            return self.path.stat().st_size == 0
        except FileNotFoundError:
            return True

    def keep(self, row: Waiting) -> None:
        """Adds a record, on disk when this returns. Raises DynoError where it cannot be written."""
        paths.state()
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            with self._locked() as descriptor:
                # Behind a line that a power cut left torn, this one begins anew.
                text = f"\n{json.dumps(row)}\n".encode()
                end_bytes = os.fstat(descriptor).st_size
                written_bytes = 0
                try:
                    while written_bytes < len(text):
                        part = text[written_bytes:]
                        written_bytes += os.pwrite(descriptor, part, end_bytes + written_bytes)
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, end_bytes)
                    raise
            sync_folder(self.path.parent)
        except OSError as error:
            raise DynoError(
                f"a record cannot be kept in {self.path} either: {error.strerror}",
                f"{remedy(error) or 'look at that folder'}, or point XDG_STATE_HOME at another disk",
            ) from None

    @contextmanager
    def taken(self) -> Iterator[Sequence[Waiting]]:
        """All that wait, in their order. They are removed at the end, unless that is a failure."""
        if self.empty:
            yield ()
            return
        with self._locked() as descriptor:
            text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            yield [row for line in text.splitlines() if (row := _row(line)) is not None]
            os.ftruncate(descriptor, 0)
            os.fsync(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _row(line: bytes) -> Waiting | None:
    """A line's record; None for what is no whole line."""
    try:
        run, trial, variant, block, outcome, document = json.loads(line)
    except ValueError:
        return None
    return str(run), int(trial), str(variant), int(block), str(outcome), str(document)
