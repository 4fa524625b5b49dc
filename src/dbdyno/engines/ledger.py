"""What Dyno changed on a server, kept on that server, so that another machine can put it back.

It is a table in a schema of Dyno's own, in SQL that PostgreSQL, MariaDB and MySQL share. Texts in it are
percent-encoded, because the three do not escape alike. Whoever changes the server moves a beat in it on, by
the server's clock: one that stands still is a dead Dyno's.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from dbdyno.driver.query import Ask
from dbdyno.engines.runtime import first_row, quoted
from dbdyno.frozen import Frozen

SCHEMA = "dyno_ledger"
TABLE = f"{SCHEMA}.changes"
STILL_S = 60.0
"""A beat that is older than this is a dead Dyno's."""
PLAIN = ' ,.:;=/@()[]{}"_-'


class Row(Frozen):
    """One change: of a run, made from a host, of a kind of the journal's, with what undoes it."""

    run: str
    host: str
    kind: str
    name: str
    content: str
    still_s: float


@dataclass(frozen=True)
class Ledger:
    """The table on the server that `ask` reaches. Each method raises DriverFailed where the server
    refuses."""

    ask: Ask

    def make(self) -> None:
        """Makes the table where there is none."""
        self.ask(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        self.ask(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (run VARCHAR(80), host VARCHAR(255), kind VARCHAR(40),"
            " name VARCHAR(255), content TEXT, beat DOUBLE PRECISION)"
        )

    def is_there(self) -> bool:
        """Whether this account sees the table."""
        sql = f"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = {quoted(SCHEMA)}"
        return float(first_row(self.ask, sql)[0]) > 0

    def note(self, run: str, kind: str, name: str, content: str, now: str) -> None:
        """Notes a change before it is made. `now` is the server's clock in SQL."""
        texts = (run, socket.gethostname(), kind, name, content)
        values = ", ".join(quoted(quote(text, safe=PLAIN)) for text in texts)
        self.ask(f"INSERT INTO {TABLE} VALUES ({values}, {now})")

    def beat(self, run: str, now: str) -> None:
        """Says that the run's Dyno lives."""
        self.ask(f"UPDATE {TABLE} SET beat = {now} WHERE run = {quoted(run)}")

    def rows(self, now: str) -> list[Row]:
        """All changes that stand, in the order of their names; none where there is no table."""
        if not self.is_there():
            return []
        found = self.ask(
            f"SELECT run, host, kind, name, content, {now} - beat FROM {TABLE} ORDER BY kind DESC, name"
        )
        return [_row(tuple(map(str, row))) for row in found]

    def strike(self, run: str, kind: str, name: str) -> None:
        """Takes a change out that does not stand any more."""
        where = f"run = {quoted(run)} AND kind = {quoted(kind)} AND name = {quoted(quote(name, safe=PLAIN))}"
        self.ask(f"DELETE FROM {TABLE} WHERE {where}")

    def forget(self, run: str) -> None:
        """Takes a run's changes out, and drops the table with its schema where nothing is left in it."""
        if not self.is_there():
            return
        self.ask(f"DELETE FROM {TABLE} WHERE run = {quoted(run)}")
        if float(first_row(self.ask, f"SELECT COUNT(*) FROM {TABLE}")[0]) == 0:
            for sql in (f"DROP TABLE {TABLE}", f"DROP SCHEMA {SCHEMA}"):
                self.ask(sql)


def _row(cells: tuple[str, ...]) -> Row:
    texts: Iterable[str] = map(unquote, cells[:5])
    run, host, kind, name, content = texts
    return Row(run=run, host=host, kind=kind, name=name, content=content, still_s=float(cells[5]))
