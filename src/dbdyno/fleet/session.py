"""A connection to the store's PostgreSQL, by which a fleet's workers and controllers know of each other.

Whoever waits here sleeps in the kernel until the server sends a word: nothing is polled, because a slice may
be measured on this host. That the other end lives is told by TCP's keepalives, which wake no process.

A host's number stands for it where an index of ranges is needed: a range type needs no extension for numbers,
and the exclusion constraint then refuses two leases of one host that overlap, whoever writes them. All times
are the database's.
"""

from __future__ import annotations

import hashlib
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from dbdyno.errors import UserError
from dbdyno.records.database import Unavailable, failed, with_keepalives
from dbdyno.records.place import POSTGRESQL, place_of_store

TABLES = (
    """CREATE TABLE IF NOT EXISTS dyno_hosts (
        host VARCHAR(64) NOT NULL PRIMARY KEY,
        number INTEGER GENERATED ALWAYS AS IDENTITY UNIQUE,
        worker VARCHAR(32) NOT NULL,
        signed_at TIMESTAMPTZ NOT NULL,
        document TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_leases (
        fence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        number INTEGER NOT NULL,
        run VARCHAR(64) NOT NULL,
        released BOOLEAN NOT NULL DEFAULT FALSE,
        during TSTZRANGE NOT NULL CHECK (NOT isempty(during)),
        EXCLUDE USING gist (int4range(number, number, '[]') WITH &&, during WITH &&))""",
    "CREATE INDEX IF NOT EXISTS dyno_leases_of_host ON dyno_leases (number, fence)",
    """CREATE TABLE IF NOT EXISTS dyno_asked (
        run VARCHAR(64) NOT NULL PRIMARY KEY,
        asked_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
        document TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_parts (
        run VARCHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        state VARCHAR(16) NOT NULL,
        told TEXT NOT NULL,
        PRIMARY KEY (run, host))""",
    """CREATE TABLE IF NOT EXISTS dyno_late (
        run VARCHAR(64) NOT NULL,
        trial INTEGER NOT NULL,
        fence BIGINT NOT NULL,
        refused_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())""",
    """CREATE TABLE IF NOT EXISTS dyno_builds (
        name VARCHAR(128) NOT NULL PRIMARY KEY,
        host VARCHAR(64) NOT NULL,
        words TEXT NOT NULL,
        content CHAR(64) NOT NULL,
        sha256 CHAR(64) NOT NULL,
        packed_bytes BIGINT NOT NULL,
        kept_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())""",
    """CREATE TABLE IF NOT EXISTS dyno_build_pieces (
        name VARCHAR(128) NOT NULL REFERENCES dyno_builds ON DELETE CASCADE,
        number INTEGER NOT NULL,
        piece BYTEA NOT NULL,
        PRIMARY KEY (name, number))""",
    # What is packed gets no smaller by being packed again.
    "ALTER TABLE dyno_build_pieces ALTER COLUMN piece SET STORAGE EXTERNAL",
    """CREATE TABLE IF NOT EXISTS dyno_build_gates (
        name VARCHAR(128) NOT NULL REFERENCES dyno_builds ON DELETE CASCADE,
        asked VARCHAR(64) NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (name, asked))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_runs (
        run VARCHAR(64) NOT NULL,
        name VARCHAR(128) NOT NULL,
        content CHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        PRIMARY KEY (run, name))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_failures (
        run VARCHAR(64) NOT NULL,
        name VARCHAR(128) NOT NULL,
        host VARCHAR(64) NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (run, name))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_makers (
        what VARCHAR(160) NOT NULL PRIMARY KEY,
        run VARCHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        fence BIGINT NOT NULL,
        words TEXT NOT NULL,
        pid INTEGER NOT NULL)""",
)
LAST = "dyno_build_makers"
"""The table that is made last: where it is, all others are."""


ADVISORY = 0x44594E4F
"""Dyno's own class among the advisory locks of a database."""
_OF_SERVER = (
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = '60s'",
    # A worker that is stopped within a transaction must not hold the host's row.
    "SET idle_in_transaction_session_timeout = '10s'",
)
_MAKING = 1
"""The advisory lock of whoever makes the tables. A host's number is above 0 as well, under another class."""

Row = tuple[Any, ...]


def of_host(name: str) -> str:
    """What is told when there is something for a host."""
    return f"host {name}"


def of_run(run: str) -> str:
    """What is told when something of a run has changed."""
    return f"run {run}"


def _channel(word: str) -> str:
    """A channel's name has less room than that of a host."""
    return f"dyno_{hashlib.sha256(word.encode()).hexdigest()[:24]}"


def require_server(url: str) -> None:
    """Raises UserError for a store that is a file: hosts share nothing but a server."""
    if not url.startswith(POSTGRESQL):
        place = place_of_store(url)
        raise UserError(
            f"a fleet needs a store that all its hosts reach, and {place} is a file of this host",
            "name a PostgreSQL: --store postgresql://USER@HOST/DATABASE, or DYNO_STORE",
        )


class Session:
    """An open connection; a context manager. Statements may come from several threads. Every failure of the
    server or of the network is Unavailable; `reopen` then tries again."""

    def __init__(self, url: str) -> None:
        require_server(url)
        self.place = place_of_store(url)
        self._url = url
        self._lock = threading.RLock()
        self._told, self._words = False, set[str]()
        self._connection = self._connected()
        with self.transaction():
            self.execute("SELECT pg_advisory_xact_lock(%s, %s)", ADVISORY - 1, _MAKING)
            # Even "if not exists" takes locks that would wait for whoever measures.
            if not self.execute("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", LAST):
                for table in TABLES:
                    self.execute(table)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def execute(self, statement: str, *values: object) -> Sequence[Row]:
        """A statement's rows. Raises Unavailable, DynoError for what the server refuses, and psycopg's own
        error for a row that contradicts another and for a lock that was not to be had in its time."""
        with self._lock, self._telling():
            done = self._connection.execute(statement.encode(), values)
            return done.fetchall() if done.description is not None else ()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is done inside by this thread happens as a whole or not at all."""
        with self._lock, self._telling(), self._connection.transaction():
            yield

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turns the library's errors into those of a store."""
        try:
            yield
        except (psycopg.errors.ExclusionViolation, psycopg.errors.LockNotAvailable):
            raise
        except psycopg.Error as error:
            # A session that was stopped within a transaction is ended by an error of its own kind.
            gone = isinstance(error, psycopg.OperationalError) or self._connection.closed
            raise failed(self.place, error, passing=gone) from None

    def listen(self, word: str) -> None:
        """Lets `wait` end where somebody tells about this: a host or a run, as `of_host` and `of_run` say."""
        self._words.add(word)
        self.execute(f"LISTEN {_channel(word)}")
        # What was told before is not known.
        self._told = True

    def tell(self, *words: str) -> None:
        """Wakes those who listen to one of these words, and nobody else."""
        self.execute("SELECT pg_notify(word, '') FROM unnest(%s::text[]) AS word", [*map(_channel, words)])

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Listens to nothing within. The server wakes its process of everybody who listens at each word, also
        where the word is not for him, so those who are at work must not be among them."""
        self.execute("UNLISTEN *")
        try:
            yield
        finally:
            # Whoever has lost his connection listens again when he has another.
            with suppress(Unavailable):
                for word in self._words:
                    self.listen(word)

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns when somebody told what is listened to since the last call, or after that time. Without
        a time nothing else wakes this process. Raises Unavailable where the connection ends."""
        # The library's own wait looks ten times a second whether there was a Ctrl-C.
        if not self._told:
            try:
                ready, _, _ = select.select([self._connection.fileno()], [], [], timeout_s)
            except (ValueError, psycopg.OperationalError):
                raise Unavailable(f"the store {self.place} has ended the connection") from None
            if ready:
                # It reads what came, and fails where that was the connection's end.
                self.execute("SELECT 1")
        self._told = False

    def reopen(self) -> None:
        """Opens the connection anew where it is broken. Raises Unavailable where the server is not there."""
        with self._lock:
            if self._connection.closed or self._connection.broken:
                self._connection = self._connected()

    def _connected(self) -> psycopg.Connection[Row]:
        try:
            connection = psycopg.connect(with_keepalives(self._url), autocommit=True)
            for setting in (*_OF_SERVER, *(f"LISTEN {_channel(word)}" for word in self._words)):
                connection.execute(setting.encode())
        except psycopg.OperationalError as error:
            raise failed(self.place, error, passing=True) from None
        connection.add_notify_handler(self._hear)
        # What was told while there was no connection is not known.
        self._told = True
        return connection

    def _hear(self, _: psycopg.Notify) -> None:
        """A word may come with the answer to any statement."""
        self._told = True
