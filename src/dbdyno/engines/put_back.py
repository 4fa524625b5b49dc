"""What Dyno changed on a server that is not its own, and how that is put back: by the Dyno that changed it,
by its journal after a death, or from what stands on the server itself, by a Dyno of another machine.

An entry names the server and what stood there, and never a password. What others have changed since stays.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dbdyno.driver.query import Ask, Rows, conversation
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.engines.ledger import STILL_S, Ledger, Row
from dbdyno.engines.runtime import MARK, Found, Runtime, connected, one_server, with_own_password
from dbdyno.errors import AnotherServer, Blocked, DriverFailed, DynoError, ServerFailed, Stopped, UserError
from dbdyno.frozen import Frozen
from dbdyno.host.journal import OF_SERVERS, Journal, undoes
from dbdyno.records.in_use import Moved, ServerId, Way

SETTING, SCHEMA, LEDGER, MOVING = OF_SERVERS
"""Kinds of journal entries, and of rows of the ledger."""
TAKE_S = 10.0
"""How long a server may take until it runs with what it was told."""
RESTART_S = 300.0
"""How long the user's command may take, and how long the server until it answers again."""
POLL_S = 0.02


class Standing(Frozen):
    """A setting of a whole server before Dyno moves it. `line` is what stood where the server keeps its
    settings, None where nothing did, and `before` what was in force. Dyno gives it no other value than
    `levels`. `restart` is the command without which it does not come into force; empty where it does.
    `led_by` are the settings that it was moved along with."""

    server: ServerId
    name: str
    does: str
    line: str | None
    before: str
    levels: tuple[str, ...]
    restart: str = ""
    led_by: tuple[Standing, ...] = ()

    @classmethod
    def of(
        cls, server: ServerId, way: Way, line: str | None, levels: tuple[str, ...], restart: str
    ) -> Standing:
        """That of a setting which is moved in this way."""
        return cls(
            server=server,
            name=way.name,
            does=way.does,
            line=line,
            before=way.now,
            levels=levels,
            restart=restart,
        )

    @property
    def unread(self) -> Moved:
        """What is kept of it, before anything was read after its putting back."""
        return Moved(name=self.name, does=self.does, line=self.line, before=self.before)

    @property
    def words(self) -> str:
        """What is to stand there again."""
        return f"{self.name} {self.before}" + ("" if self.line is None else f", set as {self.line}")


def note_setting(journal: Journal, url: str, standing: Standing) -> None:
    """Journals a setting, before it is moved."""
    told = f"{standing.words} of {url}"
    journal.note(SETTING, url=url, standing=standing.model_dump_json(), says=told)


def note_schema(journal: Journal, url: str, server: ServerId, run: str, name: str) -> None:
    """Journals a schema, before it is made."""
    identity = server.model_dump_json()
    journal.note(SCHEMA, url=url, server=identity, run=run, name=name, says=f"{name} of {url}")


def note_ledger(journal: Journal, url: str, server: ServerId, run: str) -> None:
    """Journals what is about to stand on the server itself."""
    journal.note(LEDGER, url=url, server=server.model_dump_json(), run=run, says=f"of {run} on {url}")


@contextmanager
def moving(
    journal: Journal, url: str, server: ServerId, names: Collection[str], before: Mapping[str, str]
) -> Iterator[None]:
    """Journals all settings `before` some are moved, until what moved along with them is journalled too.
    Stands where Dyno dies or fails within."""
    others = {name: value for name, value in before.items() if name not in names}
    told = f"others beside {', '.join(sorted(names))} of {url}"
    journal.note(
        MOVING, url=url, server=server.model_dump_json(), before=json.dumps(others), says=told, run=""
    )
    try:
        yield
    except (Blocked, Stopped):
        # What moved along was looked at none the less.
        journal.forget(lambda entry: entry["kind"] == MOVING)
        raise
    journal.forget(lambda entry: entry["kind"] == MOVING)


@dataclass(frozen=True)
class Reached:
    """A session with a server that is known by its identity."""

    url: str
    server: ServerId
    ask: Ask
    engine: Engine
    runtime: Runtime

    def require(self) -> ServerId:
        """Who answers now. Raises AnotherServer where that is another server."""
        now = self.runtime.who(self.ask)
        if now.facts != self.server.facts:
            told = f"another server answers at {self.url}, so nothing is touched there: {now.words}"
            raise AnotherServer(told, f"what stands is of {self.server.words}, and waits until that answers")
        return now

    def found(self, line: str | None) -> Found:
        """What a write relies on, looked at in the very session that writes."""
        self.require()
        return Found(line, self.server)

    @property
    def ended(self) -> bool:
        """Whether a restart has ended all that was moved on the server."""
        return not self.runtime.LASTS and self.require().started != self.server.started

    def in_force(self, name: str) -> str:
        """What a session is told of a setting; empty where it is told nothing."""
        return in_force(self.engine.name, self.ask, name)

    def others_words(self, name: str) -> str:
        """That others have changed a setting, and who, where the server says it."""
        by = self.runtime.changed_by(self.ask, name)
        return "others have changed it since" + (f" ({by})" if by else "")


@contextmanager
def reached(url: str, server: ServerId) -> Iterator[Reached]:
    """A session with the server at a URL. Raises AnotherServer where that is not the one that is meant."""
    engine = urlsplit(url).scheme
    with conversation(with_own_password(url)) as ask:
        found = Reached(url, server, ask, registry.engine(engine), registry.runtime_of(engine))
        found.require()
        yield found


def only_on(url: str, server: ServerId) -> Ask:
    """Asks that server alone, in a session for each statement."""

    def ask(sql: str) -> Rows:
        with reached(url, server) as at:
            return at.ask(sql)

    return ask


def put_back(url: str, standing: Standing, here: bool = True, left: str | None = None) -> Moved:
    """Puts a setting back and reads it. It is written where it has the value that Dyno `left`, or any of its
    levels where that is not known. The user's command is of the host where the run began, and is left out
    where that is not `here`. Raises DynoError where the server cannot be asked, or is another, and
    ServerFailed where it does not run with what it had."""
    for leader in standing.led_by:
        # What it was moved along with comes first, because it would be moved along again.
        put_back(url, leader, here)
    name, moved = standing.name, standing.unread
    with reached(url, standing.server) as at:
        same = at.engine.settings.same
        if at.ended:
            return moved.but(left="the server has started again since", after=at.in_force(name))
        line = at.runtime.standing(at.ask, name)
        own = (left,) if left is not None else standing.levels
        if line != standing.line and not (line and any(same(name, level, line) for level in own)):
            told = at.others_words(name) if line else "others have taken it out since"
            # Something between may have led even this session elsewhere.
            at.require()
            return moved.but(left=told, after=at.in_force(name))
        if line != standing.line:
            try:
                at.runtime.put_back(at.ask, name, standing.line, at.found(line))
            except DriverFailed:
                at.require()
                if at.runtime.standing(at.ask, name) == line:
                    raise
                return moved.but(left=at.others_words(name), after=at.in_force(name))
        at.require()
        # Also where it stands there again: a Dyno may have died before the server took that over.
        at.runtime.taken(at.ask)

        def as_before() -> bool:
            return same(name, standing.before, at.in_force(name))

        restarting = bool(standing.restart) and not as_before()
        if not restarting:
            return _as_before(at, standing, wait_until(as_before, TAKE_S))
        if not here:
            told = "the server has it when it starts the next time"
            return moved.but(left=told, after=at.in_force(name))
    restart(standing.restart, connected(url))
    with reached(url, standing.server) as at:
        return _as_before(at, standing, wait_until(as_before, TAKE_S))


def _as_before(at: Reached, standing: Standing, holds: bool) -> Moved:
    """What is kept of a setting that is in force as before. Raises ServerFailed where it is not."""
    now = at.in_force(standing.name)
    if not holds:
        wanted = standing.before
        told = f"{standing.name} was put back, and the server runs with {now} and not with {wanted}"
        raise ServerFailed(told, "look at the server's log, and at who else sets it")
    return standing.unread.but(after=now)


def in_force(engine: str, ask: Ask, name: str) -> str:
    """What a new session is told of a setting; empty where it is told nothing."""
    found = registry.engine(engine).settings.read(ask, frozenset((name,)))
    return found[name].value if name in found else ""


def wait_until(holds: Callable[[], bool], timeout_s: float) -> bool:
    """Whether something comes to hold in time."""
    deadline = time.monotonic() + timeout_s
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return found


def restart(command: str, ask: Ask) -> None:
    """Has the user's command restart the server, and waits until it answers. Raises ServerFailed where one of
    them fails, with what the command said."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, errors="replace", timeout=RESTART_S
        )
    except subprocess.TimeoutExpired:
        told = f"the command that restarts the server did not end within {RESTART_S:.0f} s: {command}"
        raise ServerFailed(told, "restart it by hand, then run: dyno cleanup") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        told = f"the command that restarts the server ended with {done.returncode}: {command}"
        last = f"; it said: {said[-1]}" if said else ""
        raise ServerFailed(told + last, "restart it by hand, then run: dyno cleanup")
    if not wait_until(lambda: answers(ask), RESTART_S):
        told = "the server does not answer after its restart"
        raise ServerFailed(told, "look at its log; once it is up again, run: dyno cleanup")


def answers(ask: Ask) -> bool:
    """Whether the server answers now."""
    with suppress(DriverFailed):
        return bool(ask("SELECT 1"))
    return False


def drop_schema(url: str, server: ServerId, run: str, name: str) -> None:
    """Drops a schema of Dyno's own that a run made on a server. Raises ValueError for a name that is none of
    its names, and AnotherServer."""
    if not name.startswith(MARK) or not name.replace("_", "").isalnum():
        raise ValueError(f"{name} is no schema of Dyno's, so it is left alone")
    with reached(url, server) as at:
        at.ask(at.runtime.own_place(url, name).drop)
        with suppress(DriverFailed):
            # There is no such row where the account may keep none.
            at.require()
            Ledger(at.ask).strike(run, SCHEMA, name)


def put_back_noted(url: str) -> list[str]:
    """Puts back what stands in the ledger of the server at a URL, whichever machine noted it. A line for each
    change. Raises UserError where the Dyno that noted it lives."""
    ask = connected(url)
    ledger = Ledger(ask)
    rows = ledger.rows(registry.runtime_of(urlsplit(url).scheme).NOW)
    for row in rows:
        if row.still_s < STILL_S:
            told = f"run {row.run} of a Dyno on {row.host} gave a sign {row.still_s:.0f} s ago, and may live"
            raise UserError(told, f"end it there; {STILL_S:.0f} s after its last sign, type this again")
    lines = [_undone(url, row) for row in rows]
    kept = Ledger(only_on(url, registry.runtime_of(urlsplit(url).scheme).who(ask)))
    for run in dict.fromkeys(row.run for row in rows):
        kept.forget(run)
    return lines


def _undone(url: str, row: Row) -> str:
    """Undoes a change that stands in a ledger; says what was done."""
    if row.kind == SCHEMA:
        drop_schema(url, ServerId.model_validate_json(row.content), row.run, row.name)
        return f"{SCHEMA} {row.name} of {url}"
    moved = put_back(url, Standing.model_validate_json(row.content), here=row.host == socket.gethostname())
    left = f": {moved.left}" if moved.left else ""
    return f"{SETTING} {moved.name} {moved.after} of {url}{left}"


def _reaching(entry: Mapping[str, Any], undo: Callable[[], object]) -> None:
    """Undoes an entry of the journal, which stays where its server cannot be asked."""
    try:
        undo()
    except DynoError as failed:
        hint = f"; {failed.hint}" if failed.hint else ""
        told = f"{failed.message}{hint}; then run: dyno cleanup"
        raise ValueError(f"{told} (--forget {entry['url']} where that server is gone for good)") from None


def is_on(entry: Mapping[str, Any], url: str) -> bool:
    """Whether an entry of the journal is of the server at a URL."""
    return entry["kind"] in OF_SERVERS and one_server(entry["url"], url)


@undoes(SETTING)
def _undo_setting(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: put_back(entry["url"], Standing.model_validate_json(entry["standing"])))


@undoes(SCHEMA)
def _undo_schema(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: drop_schema(entry["url"], _server_of(entry), entry["run"], entry["name"]))


@undoes(LEDGER)
def _undo_ledger(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: Ledger(only_on(entry["url"], _server_of(entry))).forget(entry["run"]))


@undoes(MOVING)
def _undo_moving(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: _require_as_before(entry))


def _require_as_before(entry: Mapping[str, Any]) -> None:
    """Raises ServerFailed where other settings have changed since Dyno began to move some."""
    with reached(entry["url"], _server_of(entry)) as at:
        if at.ended:
            return
        now, before = at.runtime.in_force(at.ask), json.loads(entry["before"])
    changed = [
        f"{name} was {value} and is {now[name]}"
        for name, value in before.items()
        if now.get(name, value) != value
    ]
    if changed:
        told = (
            f"Dyno was ended while it moved settings, and others may have moved along: {', '.join(changed)}"
        )
        raise ServerFailed(told, "put back by hand what nobody else has changed")


def _server_of(entry: Mapping[str, Any]) -> ServerId:
    return ServerId.model_validate_json(entry["server"])
