"""What Dyno changed on a server that is not its own, and how that is put back: by the Dyno that changed it,
by its journal after a death, or from what stands on the server itself, by a Dyno of another machine.

An entry names the server and what stood there, and never a password. What others have changed since stays.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dbdyno.driver.passwords import Ask, conversation
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.engines.runtime import (
    BEAT_S,
    MARK,
    STILL_S,
    ChangeRow,
    FoundSettings,
    Read,
    Runtime,
    ServerLedger,
    Value,
    connected,
    one_server,
    with_own_password,
)
from dbdyno.errors import AnotherServer, Blocked, DriverFailed, DynoError, ServerFailed, Stopped, UserError
from dbdyno.frozen import Frozen, level_shown
from dbdyno.host.journal import OF_SERVERS, Journal, LeavesAnother, undoes
from dbdyno.records.in_use import Moved, ServerId, SettingWay

SETTING, SCHEMA, LEDGER, MOVING, ASTRAY = OF_SERVERS
"""Kinds of journal entries, and of rows of the ledger."""
TAKE_S = 10.0
"""How long a server may take until it runs with what it was told."""
RESTART_S = 300.0
"""How long the user's command may take, and how long the server until it answers again."""
POLL_S = 0.02
POOLER_ROUNDS = 8
"""Whoever is the next to ask a pooler gets the session that was given back last, unless others ask then."""
ASTRAY_HINT = "look for it on the servers behind that address, and take it out where nobody else has set it"
NOTHING: Mapping[str, str | None] = MappingProxyType({})

Each = TypeVar("Each")


class SettingBefore(Frozen):
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
    led_by: tuple[SettingBefore, ...] = ()

    @classmethod
    def of(
        cls, server: ServerId, way: SettingWay, line: str | None, levels: tuple[str, ...], restart: str
    ) -> SettingBefore:
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
        stands = "" if self.line is None else f", set as {level_shown(self.line)}"
        return f"{self.name} {level_shown(self.before)}{stands}"


def note_settings(journal: Journal, url: str, standings: Sequence[SettingBefore]) -> None:
    """Journals settings before they are moved. They are put back together, because one may move another."""
    told = f"{', '.join(one.words for one in standings)} of {url}"
    texts = json.dumps([one.model_dump(mode="json") for one in standings])
    journal.note(SETTING, url=url, standing=texts, says=told)


def note_strayed(journal: Journal, url: str, strayed: Strayed) -> None:
    """Journals what reached another server, which its user alone can look for."""
    journal.note(ASTRAY, url=url, says=strayed.says)


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


def another(url: str, meant: ServerId, found: ServerId) -> AnotherServer:
    """What to raise where another server answers than is meant."""
    told = f"another server answers at {url}, so nothing is touched there: {found.words}"
    return AnotherServer(told, f"what stands is of {meant.words}, and waits until that answers")


class Strayed(ServerFailed):
    """Something between led what was written to another server."""

    def __init__(self, url: str, words: str, why: str) -> None:
        self.says = f"{words}, which was led from {url} to another server: {why}"
        super().__init__(self.says, ASTRAY_HINT)


@dataclass(frozen=True)
class ReachedSession:
    """A session with a server that is known by its identity."""

    url: str
    server: ServerId
    ask: Ask
    engine: Engine
    runtime: Runtime

    def require(self) -> ServerId:
        """Who answers now. Raises AnotherServer where that is another server."""
        now = self.runtime.who(self.ask)
        if not self.server.is_same(now):
            raise another(self.url, self.server, now)
        return now

    def told(self, read: Read[Value]) -> Value:
        """What was read, of this server. Raises AnotherServer where another one answered."""
        if not self.server.is_same(read.server):
            raise another(self.url, self.server, read.server)
        return read.value

    def lines(self, names: Collection[str]) -> dict[str, str | None]:
        """What stands for settings where they are written."""
        return self.told(self.runtime.standing(self.ask, names))

    def values(self) -> dict[str, str]:
        """What a new session is told of all settings."""
        return self.told(self.runtime.in_force(self.ask))

    def in_force(self, name: str) -> str:
        """What a new session is told of a setting; empty where it is told nothing."""
        return self.values().get(name, "")

    def unlike(self, standings: Sequence[SettingBefore]) -> list[SettingBefore]:
        """Those that are not in force as before."""
        now = self.values()
        return [
            one
            for one in standings
            if not self.engine.settings.same(one.name, one.before, now.get(one.name, ""))
        ]

    def groups(self, of_names: Mapping[str, Each]) -> list[dict[str, Each]]:
        """What is written by one statement: all, where the server compares and sets, else one at a time."""
        if self.runtime.COMPARES:
            return [dict(of_names)] if of_names else []
        return [{name: each} for name, each in of_names.items()]

    def take_over(self) -> None:
        """Has the server take over what was moved."""
        if not self.runtime.taken(self.ask, self.server):
            raise another(self.url, self.server, self.runtime.who(self.ask))

    def require_own_session(self) -> None:
        """Raises UserError where a pooler gives the server's sessions to whoever asks next, and nothing
        compares and sets in one statement: what is written could reach another server than was looked at."""
        if self.runtime.COMPARES:
            return
        # One session that is refused shows nothing, and a pooler that lends none to two shares none.
        with suppress(DriverFailed), conversation(with_own_password(self.url)) as other:
            for _ in range(POOLER_ROUNDS):
                if self.ask(self.runtime.SESSION) == other(self.runtime.SESSION):
                    raise UserError(
                        f"a pooler at {self.url} gives each statement another session of a server, so a"
                        " setting could be written on another server than was looked at",
                        "name the server's own address, or have the pooler keep a session for each client"
                        " (PgBouncer: pool_mode = session)",
                    )

    def require_written(
        self, found: FoundSettings, wanted: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """What stands once settings were written. Raises Strayed where nothing compares and sets in one
        statement, and what was written reached another server."""
        if self.runtime.COMPARES:
            return self.lines(found.lines)
        words = ", ".join(
            f"{name} = {'its default' if to is None else level_shown(to)}" for name, to in wanted.items()
        )
        try:
            now = self.lines(found.lines)
        except AnotherServer as other:
            raise Strayed(self.url, words, other.message) from None
        changed = [name for name, line in found.lines.items() if wanted[name] != line]
        if changed and all(now[name] == found.lines[name] for name in changed):
            raise Strayed(self.url, words, f"it does not stand on {self.server.words}")
        return now

    @property
    def ended(self) -> bool:
        """Whether a restart has ended all that was moved on the server."""
        return not self.runtime.LASTS and self.require().started != self.server.started

    def others_words(self, name: str) -> str:
        """That others have changed a setting, and who, where the server says it."""
        by = self.runtime.changed_by(self.ask, name)
        return "others have changed it since" + (f" ({by})" if by else "")


@contextmanager
def reached(url: str, server: ServerId) -> Iterator[ReachedSession]:
    """A session with the server at a URL. Raises AnotherServer where that is not the one that is meant."""
    engine = urlsplit(url).scheme
    with conversation(with_own_password(url)) as ask:
        found = ReachedSession(url, server, ask, registry.engine(engine), registry.runtime_of(engine))
        found.require()
        yield found


def ledger_on(url: str, server: ServerId) -> ServerLedger:
    """The ledger of that server alone."""

    @contextmanager
    def session() -> Iterator[Ask]:
        with reached(url, server) as at:
            yield at.ask

    runtime = registry.runtime_of(urlsplit(url).scheme)
    return ServerLedger(session, runtime.NOW, runtime.TURN)


def put_back(
    url: str,
    standings: Sequence[SettingBefore],
    here: bool = True,
    left: Mapping[str, str | None] = NOTHING,
) -> tuple[Moved, ...]:
    """Puts settings back and reads them. Each is written where it has the value that Dyno `left`, or any of
    its levels where that is not known. The user's command is of the host where the run began, and is left out
    where that is not `here`. Raises DynoError where the server cannot be asked, or is another, and
    ServerFailed where it does not run with what it had."""
    # What some were moved along with is put back with them, because it would move them along again.
    all_of_them = {one.name: one for each in standings for one in (*each.led_by, each)}
    server, moved = standings[0].server, dict[str, Moved]()
    with reached(url, server) as at:
        if at.ended:
            now, told = at.values(), "the server has started again since"
            return tuple(one.unread.but(left=told, after=now.get(one.name, "")) for one in standings)
        lines = at.lines(all_of_them)
        if any(lines[name] != one.line for name, one in all_of_them.items()):
            # First, because nothing may come between a look and what is written after it.
            at.require_own_session()
        for group in at.groups(all_of_them):
            _write_back(at, group, left, moved)
        # Also where all stands there again: a Dyno may have died before the server took that over.
        at.take_over()
        mine = [one for one in all_of_them.values() if one.name not in moved]

        def as_before() -> bool:
            return not at.unlike(mine)

        command = next((one.restart for one in at.unlike(mine) if one.restart), "")
        if not command:
            wait_until(as_before, TAKE_S)
            return _read_again(at, standings, moved)
        if not here:
            now, told = at.values(), "the server has it when it starts the next time"
            moved |= {
                one.name: one.unread.but(left=told, after=now.get(one.name, "")) for one in at.unlike(mine)
            }
            return _read_again(at, standings, moved)
    restart(command, connected(url))
    with reached(url, server) as at:
        wait_until(as_before, TAKE_S)
        return _read_again(at, standings, moved)


def _write_back(
    at: ReachedSession,
    group: Mapping[str, SettingBefore],
    left: Mapping[str, str | None],
    moved: dict[str, Moved],
) -> None:
    """Writes what stood for settings where Dyno's own stands; keeps in `moved` what is left as others have
    set it."""
    for last in (*(False for _ in group), True):
        lines, wanted = at.lines(group), dict[str, str | None]()
        for name, one in group.items():
            line, own = lines[name], (one.levels if left.get(name) is None else (left[name],))
            if line == one.line:
                continue
            if line is not None and any(at.engine.settings.same(name, str(level), line) for level in own):
                wanted[name] = one.line
            elif name not in moved:
                told = "others have taken it out since" if line is None else at.others_words(name)
                moved[name] = one.unread.but(left=told, after=at.in_force(name))
        if not wanted:
            return
        found = FoundSettings({name: lines[name] for name in wanted}, at.server)
        try:
            at.runtime.put_back(at.ask, wanted, found)
        except DriverFailed:
            now = at.lines(group)
            if last or all(now[name] == lines[name] for name in wanted):
                raise
            # Others came between, and what they have set is theirs.
            continue
        at.require_written(found, wanted)
        return


def _read_again(
    at: ReachedSession, standings: Sequence[SettingBefore], moved: Mapping[str, Moved]
) -> tuple[Moved, ...]:
    """What is kept of settings that are in force as before. Raises ServerFailed where one is not."""
    now = at.values()
    for one in at.unlike([one for one in standings if one.name not in moved]):
        runs_with, had = level_shown(str(now.get(one.name))), level_shown(one.before)
        told = f"{one.name} was put back, and the server runs with {runs_with} and not with {had}"
        raise ServerFailed(told, "look at the server's log, and at who else sets it")
    return tuple(moved.get(one.name, one.unread.but(after=now.get(one.name, ""))) for one in standings)


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
            ledger_on(url, server).strike(run, SCHEMA, name)


def put_back_noted(url: str) -> list[str]:
    """Puts back what stands in the ledger of the server at a URL, whichever machine noted it. A line for each
    change. Raises UserError where the Dyno that noted it lives."""
    with conversation(with_own_password(url)) as ask:
        ledger = ledger_on(url, registry.runtime_of(urlsplit(url).scheme).who(ask))
    rows = ledger.rows()
    if any(row.still_s < 0.0 for row in rows):
        # The server's clock was set back since, so an age says nothing.
        time.sleep(BEAT_S + POLL_S)
    beats = {(row.run, row.beat_s) for row in ledger.rows()}
    for row in rows:
        if 0.0 <= row.still_s < STILL_S or (row.run, row.beat_s) not in beats:
            told = f"run {row.run} of a Dyno on {row.host} gave a sign {max(0.0, row.still_s):.0f} s ago"
            hint = f"end it there; {STILL_S:.0f} s after its last sign, type this again"
            raise UserError(f"{told}, and may live", hint)
    lines = [line for together in _together(rows) for line in _undone(url, together)]
    for run in dict.fromkeys(row.run for row in rows):
        ledger.forget(run)
    return lines


def _together(rows: Sequence[ChangeRow]) -> list[list[ChangeRow]]:
    """The rows, where those of settings of one run are undone together."""
    found = dict[tuple[str, ...], list[ChangeRow]]()
    for row in rows:
        by = (row.run, row.kind) if row.kind == SETTING else (row.run, row.kind, row.name)
        found.setdefault(by, []).append(row)
    return list(found.values())


def _undone(url: str, rows: Sequence[ChangeRow]) -> Iterator[str]:
    """Undoes changes that stand in a ledger; says what was done."""
    first = rows[0]
    if first.kind == SCHEMA:
        drop_schema(url, ServerId.model_validate_json(first.content), first.run, first.name)
        yield f"{SCHEMA} {first.name} of {url}"
        return
    standings = {row.name: SettingBefore.model_validate_json(row.content) for row in rows}
    for moved in put_back(url, tuple(standings.values()), here=first.host == socket.gethostname()):
        left = f": {moved.left}" if moved.left else ""
        yield f"{SETTING} {moved.name} {moved.after} of {url}{left}"


def _reaching(entry: Mapping[str, Any], undo: Callable[[], object]) -> None:
    """Undoes an entry of the journal, which stays where its server cannot be asked."""
    try:
        undo()
    except Strayed as strayed:
        raise LeavesAnother(strayed.message, kind=ASTRAY, url=entry["url"], says=strayed.says) from None
    except DynoError as failed:
        hint = f"; {failed.hint}" if failed.hint else ""
        told = f"{failed.message}{hint}; then run: dyno cleanup"
        raise ValueError(f"{told} (--forget {entry['url']} where that server is gone for good)") from None


def is_on(entry: Mapping[str, Any], url: str) -> bool:
    """Whether an entry of the journal is of the server at a URL."""
    return entry["kind"] in OF_SERVERS and one_server(entry["url"], url)


@undoes(SETTING)
def _undo_setting(entry: Mapping[str, Any]) -> None:
    standings = tuple(map(SettingBefore.model_validate, json.loads(entry["standing"])))
    _reaching(entry, lambda: put_back(entry["url"], standings))


@undoes(SCHEMA)
def _undo_schema(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: drop_schema(entry["url"], _server_of(entry), entry["run"], entry["name"]))


@undoes(LEDGER)
def _undo_ledger(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: ledger_on(entry["url"], _server_of(entry)).forget(entry["run"]))


@undoes(ASTRAY)
def _keep_astray(entry: Mapping[str, Any]) -> None:
    raise ValueError(f"{ASTRAY_HINT}; then run: dyno cleanup --forget {entry['url']}")


@undoes(MOVING)
def _undo_moving(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: _require_as_before(entry))


def _require_as_before(entry: Mapping[str, Any]) -> None:
    """Raises ServerFailed where other settings have changed since Dyno began to move some."""
    with reached(entry["url"], _server_of(entry)) as at:
        if at.ended:
            return
        now, before = at.values(), json.loads(entry["before"])
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
