"""What Dyno changed on a server, kept on that server, so that another machine can put it back.

It is a table in a schema of Dyno's own, in SQL that PostgreSQL, MariaDB and MySQL share. Texts in it are
percent-encoded, because the three do not escape alike. Whoever changes the server moves a beat in it on, by
the server's clock: one that stands still is a dead Dyno's.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from urllib.parse import quote, unquote

from dbdyno.driver.passwords import Ask
from dbdyno.engines.runtime import first_row, quoted
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Frozen

SCHEMA = "dyno_ledger"
TABLE = f"{SCHEMA}.changes"
BEAT_S, STILL_S = 10.0, 60.0
"""From one beat to the next, and from when on a beat is a dead Dyno's."""
TURN_MOST_S = 60
"""How long a Dyno waits for its turn at the table."""
PLAIN = ' ,.:;=/@()[]{}"_-'


class Row(Frozen):
    """One change: of a run, made from a host, of a kind of the journal's, with what undoes it."""

    run: str
    host: str
    kind: str
    name: str
    content: str
    still_s: float
    beat_s: float


@dataclass(frozen=True)
class Ledger:
    """The table on the server that each `session` reaches. `now` is that server's clock in SQL, and `turn`
    has its session wait until no other one has said the same. Each method raises DriverFailed where the
    server refuses."""

    session: Callable[[], AbstractContextManager[Ask]]
    now: str
    turn: str

    @contextmanager
    def _turn(self) -> Iterator[Ask]:
        """A session that has the table alone until it ends."""
        with self.session() as ask:
            if first_row(ask, self.turn.format(seconds=TURN_MOST_S))[0] != "1":
                told = f"another Dyno has had the table {TABLE} for {TURN_MOST_S} s"
                raise ServerFailed(told, "where one of them was stopped, end it; then type this again")
            yield ask

    def make(self) -> None:
        """Makes the table where there is none."""
        with self._turn() as ask:
            _make(ask)

    def note(self, run: str, kind: str, contents: Mapping[str, str], alone: bool = False) -> Row | None:
        """Notes changes of a kind by their names before they are made. Where they are to stand `alone` and
        another run's stand there, notes nothing and returns one of those."""
        with self._turn() as ask:
            _make(ask)
            if alone and (others := [row for row in _rows(ask, self.now) if row.run != run]):
                return others[0]
            for name, content in contents.items():
                texts = (run, socket.gethostname(), kind, name, content)
                values = ", ".join(quoted(quote(text, safe=PLAIN)) for text in texts)
                ask(f"INSERT INTO {TABLE} VALUES ({values}, {self.now})")
        return None

    def beat(self, run: str) -> None:
        """Says that the run's Dyno lives."""
        with self.session() as ask:
            ask(f"UPDATE {TABLE} SET beat = {self.now} WHERE run = {quoted(run)}")

    def rows(self) -> list[Row]:
        """All changes that stand, in the order of their names; none where there is no table."""
        with self._turn() as ask:
            return _rows(ask, self.now)

    def strike(self, run: str, kind: str, name: str) -> None:
        """Takes a change out that does not stand any more."""
        where = f"run = {quoted(run)} AND kind = {quoted(kind)} AND name = {quoted(quote(name, safe=PLAIN))}"
        with self.session() as ask:
            ask(f"DELETE FROM {TABLE} WHERE {where}")

    def forget(self, run: str) -> None:
        """Takes a run's changes out, and drops the table with its schema where nothing is left in it."""
        with self._turn() as ask:
            if _counts(ask, "tables", "table_schema"):
                ask(f"DELETE FROM {TABLE} WHERE run = {quoted(run)}")
                if float(first_row(ask, f"SELECT COUNT(*) FROM {TABLE}")[0]) > 0:
                    return
                ask(f"DROP TABLE {TABLE}")
            # Also where a Dyno died between the two.
            if _counts(ask, "schemata", "schema_name"):
                ask(f"DROP SCHEMA {SCHEMA}")


def _make(ask: Ask) -> None:
    ask(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    ask(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (run VARCHAR(80), host VARCHAR(255), kind VARCHAR(40),"
        " name VARCHAR(255), content TEXT, beat DOUBLE PRECISION)"
    )


def _counts(ask: Ask, view: str, column: str) -> bool:
    """Whether this account sees the schema, or a table in it."""
    sql = f"SELECT COUNT(*) FROM information_schema.{view} WHERE {column} = {quoted(SCHEMA)}"
    return float(first_row(ask, sql)[0]) > 0


def _rows(ask: Ask, now: str) -> list[Row]:
    if not _counts(ask, "tables", "table_schema"):
        return []
    columns = f"run, host, kind, name, content, {now} - beat, beat"
    return [
        _row(tuple(map(str, row))) for row in ask(f"SELECT {columns} FROM {TABLE} ORDER BY kind DESC, name")
    ]


def _row(cells: tuple[str, ...]) -> Row:
    texts: Iterable[str] = map(unquote, cells[:5])
    run, host, kind, name, content = texts
    still_s, beat_s = map(float, cells[5:])
    return Row(run=run, host=host, kind=kind, name=name, content=content, still_s=still_s, beat_s=beat_s)
