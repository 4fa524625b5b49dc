"""What Dyno needs of an engine to study a server that runs already: how it is asked and how its settings
move.

Everything goes over connections of one account, which needs the least right that does it.

The ledger of what was changed is a table in a schema of Dyno's own, in SQL that PostgreSQL, MariaDB and
MySQL share. Texts in it are percent-encoded, because the three do not escape alike. Whoever changes the
server moves a beat in it on, by the server's clock: one that stands still is a dead Dyno's.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dbdyno.driver.passwords import Ask, Rows, query, with_password
from dbdyno.errors import DriverFailed, ServerFailed, UserError
from dbdyno.frozen import Frozen, Level
from dbdyno.host import kernel_files, process
from dbdyno.host.process import family
from dbdyno.records.in_use import Identity, ServerId, SettingWay

if TYPE_CHECKING:
    from dbdyno.engines.facts import Production

MARK = "dyno_"
"""How the names of all schemas begin that Dyno makes on a server which is not its own."""


@dataclass(frozen=True)
class OwnPlace:
    """A schema of Dyno's own on a server: the statements that make it and drop it, the URL of a load in it,
    and what each connection of that load begins with. `right` is the GRANT that allows it, up to the name of
    the account."""

    name: str
    create: str
    drop: str
    url: str
    right: str
    opening: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadOfOthers:
    """What the server says of sessions that are not Dyno's: how long each statement has run that runs now
    (s), and how many errors all sessions have had so far."""

    ages_s: tuple[float, ...]
    errors: float


Value = TypeVar("Value")


@dataclass(frozen=True)
class Read(Generic[Value]):
    """What one statement read, and which server answered it: something between may lead each statement to
    another."""

    server: ServerId
    value: Value


@dataclass(frozen=True)
class FoundSettings:
    """What stood for settings when a session looked just before it writes, and on which server."""

    lines: Mapping[str, str | None]
    server: ServerId


class Runtime(Protocol):
    """A module of an engine. `ask` is a connection of the account that the study names. What the server
    refuses is raised as DriverFailed."""

    PROGRAMS: tuple[str, ...]
    """How the engine's server is called as a program."""
    LASTS: bool
    """Whether what is moved outlasts a restart of the server."""
    COMPARES: bool
    """Whether one statement can look at several settings and write them."""
    SESSION: str
    """The query for what the server calls the session that asks."""
    READ_ONLY: str
    """Has the server refuse writes in the session that says it."""
    SET_SQL: str
    """Asks for all settings that somebody has set, each with its value."""
    NOW: str
    """The server's clock as an expression of SQL, in unix seconds."""
    TURN: str
    """Has a session wait for up to so many `seconds` until no other one has said this; its first column is 1
    where it need not wait any more. It holds until the session ends."""
    LATENCY: str
    """In words, from where the ages of statements of others are read."""
    ERRORS: str
    """In words, what counts as an error of the server's own load."""

    def identity(self, ask: Ask) -> Identity:
        """Who answers. Raises UserError where it is another engine."""
        ...

    def who(self, ask: Ask) -> ServerId:
        """Which server this is. Cheap, because it is asked before each write."""
        ...

    def in_force(self, ask: Ask) -> Read[dict[str, str]]:
        """All settings that a write could move, as a new session is told of them."""
        ...

    def changed_by(self, ask: Ask, name: str) -> str:
        """Who gave a setting its value, and when, in words; empty where the server does not say."""
        ...

    def explains(self, said: Sequence[str], name: str, level: Level, now: str) -> bool:
        """Whether the server made `now` of a level itself, by what it `said` when it was given that."""
        ...

    def led_along(self, ask: Ask, said: Sequence[str], name: str, now: str) -> bool | None:
        """Whether the server itself gave a setting this value while another was moved, or somebody else did;
        None where the server does not tell."""
        ...

    def known(self, ask: Ask) -> frozenset[str]:
        """The names of all settings of the server."""
        ...

    def ways(self, ask: Ask, names: Collection[str], hook: bool) -> dict[str, SettingWay]:
        """How each setting can be moved, by reading alone. With a `hook` the server can be restarted."""
        ...

    def standing(self, ask: Ask, names: Collection[str]) -> Read[dict[str, str | None]]:
        """What stands for settings where `move` would write; None where nothing does. Raises UserError where
        this account cannot see that."""
        ...

    def pending(self, ask: Ask, restarts: bool) -> list[str]:
        """Settings that others have changed and the server has not taken over. Whoever has it take over its
        own would have it take over those too, and with `restarts` more of them."""
        ...

    def in_session(self, name: str, level: Level) -> str:
        """The statement that gives a session the level."""
        ...

    def value_of_session(self, name: str) -> str:
        """The query that has the session's own value as `value`."""
        ...

    def move(self, ask: Ask, levels: Mapping[str, Level], found: FoundSettings) -> tuple[str, ...]:
        """Gives the whole server the levels, as soon as it has `taken` them over; returns what the server
        says of that. Where it COMPARES, it writes nothing over what is not `found` any more, and raises
        DriverFailed; else it is given one level at a time."""
        ...

    def put_back(self, ask: Ask, lines: Mapping[str, str | None], found: FoundSettings) -> None:
        """Has the same stand for settings as `standing` gave before, as `move` does."""
        ...

    def taken(self, ask: Ask, server: ServerId) -> bool:
        """Has this server take over what was moved; False where another one answers."""
        ...

    def own_place(self, url: str, name: str) -> OwnPlace:
        """A schema of Dyno's own in the server at a URL."""
        ...

    def lacking_for_schema(self, ask: Ask) -> str:
        """The statement that lets the account make such a schema; empty where it may, as far as is told."""
        ...

    def lacking_for_guard(self, ask: Ask) -> str:
        """The statement that lets the account see what others do; empty where it does."""
        ...

    def of_others(self, ask: Ask) -> LoadOfOthers:
        """What sessions that are not Dyno's do now."""
        ...


NO_RIGHT = re.compile(r"\((?:SQLSTATE 42501|error (?:1044|1142|1227|1370))\)$")
"""How the driver ends what a PostgreSQL, a MariaDB or a MySQL says of a right that the account lacks."""


def lacks_right(refused: DriverFailed) -> bool:
    """Whether a GRANT would mend it."""
    return refused.kind == "server" and NO_RIGHT.search(refused.message) is not None


def with_own_password(url: str) -> str:
    """A URL as it connects: the password comes from where the server's own client looks for it, because
    neither a study nor a journal holds one."""
    return with_password(url, lambda _: None)


def connected(url: str) -> Ask:
    """Asks the server at a URL, a connection for each statement."""

    def ask(sql: str) -> Rows:
        return query(with_own_password(url), sql)

    return ask


def one_server(url: str, other: str) -> bool:
    """Whether two URLs lead to one database of one server, whoever connects."""
    return _place(url) == _place(other)


def _place(url: str) -> tuple[str, str, int | None, str, str]:
    parts = urlsplit(url)
    scheme = "postgresql" if parts.scheme == "postgres" else parts.scheme
    return scheme, parts.hostname or "localhost", parts.port, parts.path, parts.query


def digest_of_server(*facts: str) -> str:
    """What tells a server from all others, of what it says of itself."""
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


def quoted(text: str) -> str:
    """A literal of SQL without escapes."""
    return "'" + text.replace("'", "''") + "'"


def first_row(ask: Ask, sql: str) -> list[str]:
    """The first row of an answer as texts; what is null is empty."""
    return ["" if cell is None else str(cell) for cell in ask(sql)[0]]


def named(names: Collection[str]) -> str:
    """Names as the list of an IN."""
    return ", ".join(quoted(name) for name in sorted(names)) or "''"


@dataclass(frozen=True)
class FoundServer:
    """A server that runs already. Dyno neither stops it nor reads its log."""

    url: str
    version: str
    process_id: int | None
    ready_s: float = 0.0
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    driver_folders: tuple[Path, ...] = ()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Empty where the process cannot be found from here."""
        return family(self.process_id) if self.process_id is not None else ()

    def alive(self) -> bool:
        return self.process_id is None or bool(self.process_ids)

    def log(self) -> str:
        return ""

    def log_problems(self) -> list[str]:
        return []

    def stop(self, timeout_s: float = 30.0) -> None: ...

    def kill(self) -> None: ...


def process_at(url: str, production: Production) -> int | None:
    """The process that listens where a URL leads; None for another host, and for a file.
    Raises UserError where it leads to several."""
    target = urlsplit(url)
    if "," in target.netloc:
        raise UserError("the URL of a server names several hosts", "name the one that is meant")
    if sockets := parse_qs(target.query).get("socket"):
        return process.at_socket(Path(sockets[0]))
    if not target.hostname or not process.is_here(target.hostname):
        return None
    return process.at_port(target.port or production.port)


def server_at(url: str, production: Production, programs: Collection[str]) -> int | None:
    """The same where that process runs one of the engine's programs: what forwards to a server, a tunnel or a
    pool, tells nothing of it."""
    process_id = process_at(url, production)
    if process_id is None:
        return None
    try:
        arguments = kernel_files.text(f"/proc/{process_id}/cmdline").split("\0")
    except kernel_files.UnreadableFile:
        return None
    names = {Path(argument).name for argument in arguments}
    return process_id if names & set(programs) else None


SCHEMA = "dyno_ledger"
TABLE = f"{SCHEMA}.changes"
BEAT_S, STILL_S = 10.0, 60.0
"""From one beat to the next, and from when on a beat is a dead Dyno's."""
TURN_MOST_S = 60
"""How long a Dyno waits for its turn at the table."""
PLAIN = ' ,.:;=/@()[]{}"_-'


class ChangeRow(Frozen):
    """One change: of a run, made from a host, of a kind of the journal's, with what undoes it."""

    run: str
    host: str
    kind: str
    name: str
    content: str
    still_s: float
    beat_s: float


@dataclass(frozen=True)
class ServerLedger:
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

    def note(self, run: str, kind: str, contents: Mapping[str, str], alone: bool = False) -> ChangeRow | None:
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

    def rows(self) -> list[ChangeRow]:
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


def _rows(ask: Ask, now: str) -> list[ChangeRow]:
    if not _counts(ask, "tables", "table_schema"):
        return []
    columns = f"run, host, kind, name, content, {now} - beat, beat"
    return [
        _row(tuple(map(str, row))) for row in ask(f"SELECT {columns} FROM {TABLE} ORDER BY kind DESC, name")
    ]


def _row(cells: tuple[str, ...]) -> ChangeRow:
    texts: Iterable[str] = map(unquote, cells[:5])
    run, host, kind, name, content = texts
    still_s, beat_s = map(float, cells[5:])
    return ChangeRow(
        run=run, host=host, kind=kind, name=name, content=content, still_s=still_s, beat_s=beat_s
    )
