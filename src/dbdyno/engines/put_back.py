"""What Dyno changed on a server that is not its own, and how that is put back: by the Dyno that changed it,
by its journal after a death, or from what stands on the server itself, by a Dyno of another machine.

An entry names the server and what stood there, and never a password. What others have changed since stays.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from dbdyno.driver.query import Ask
from dbdyno.engines import registry
from dbdyno.engines.ledger import STILL_S, Ledger, Row
from dbdyno.engines.runtime import MARK, connected, one_server
from dbdyno.errors import DriverFailed, DynoError, ServerFailed, UserError
from dbdyno.frozen import Frozen
from dbdyno.host.journal import Journal, undoes
from dbdyno.records.in_use import Moved, Way

SETTING, SCHEMA, LEDGER = "server setting", "server schema", "server ledger"
"""Kinds of journal entries, and of rows of the ledger."""
TAKE_S = 10.0
"""How long a server may take until it runs with what it was told."""
RESTART_S = 300.0
"""How long the user's command may take, and how long the server until it answers again."""
POLL_S = 0.02


class Standing(Frozen):
    """A setting of a whole server before Dyno moves it. `line` is what stood where the server keeps its
    settings, None where nothing did, and `before` what was in force. Dyno gives it no other value than
    `levels`. `restart` is the command without which it does not come into force; empty where it does."""

    name: str
    does: str
    line: str | None
    before: str
    levels: tuple[str, ...]
    restart: str = ""

    @classmethod
    def of(cls, way: Way, line: str | None, levels: tuple[str, ...], restart: str) -> Standing:
        """That of a setting which is moved in this way."""
        return cls(name=way.name, does=way.does, line=line, before=way.now, levels=levels, restart=restart)

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


def note_schema(journal: Journal, url: str, run: str, name: str) -> None:
    """Journals a schema, before it is made."""
    journal.note(SCHEMA, url=url, run=run, name=name, says=f"{name} of {url}")


def note_ledger(journal: Journal, url: str, run: str) -> None:
    """Journals what is about to stand on the server itself."""
    journal.note(LEDGER, url=url, run=run, says=f"of {run} on {url}")


def put_back(url: str, standing: Standing, here: bool = True) -> Moved:
    """Puts a setting back and reads it. The user's command is of the host where the run began, and is left
    out where that is not `here`. Raises DynoError where the server cannot be asked, and ServerFailed where it
    does not run with what it had."""
    engine, ask = urlsplit(url).scheme, connected(url)
    runtime, same = registry.runtime_of(engine), registry.engine(engine).settings.same
    name, moved = standing.name, standing.unread
    line = runtime.standing(ask, name)
    if line != standing.line and not (line and any(same(name, level, line) for level in standing.levels)):
        left = "others have changed it since" if line else "others have taken it out since"
        return moved.but(left=left, after=in_force(engine, ask, name))
    if line != standing.line:
        runtime.put_back(ask, name, standing.line)
    # Also where it stands there again: a Dyno may have died before the server took that over.
    runtime.taken(ask)

    def as_before() -> bool:
        return same(name, standing.before, in_force(engine, ask, name))

    if standing.restart and not as_before():
        if not here:
            left = "the server has it when it starts the next time"
            return moved.but(left=left, after=in_force(engine, ask, name))
        restart(standing.restart, ask)
    if not wait_until(as_before, TAKE_S):
        now = in_force(engine, ask, name)
        told = f"{name} was put back, and the server runs with {now} and not with {standing.before}"
        raise ServerFailed(told, "look at the server's log, and at who else sets it")
    return moved.but(after=in_force(engine, ask, name))


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


def drop_schema(url: str, run: str, name: str) -> None:
    """Drops a schema of Dyno's own that a run made. Raises ValueError for a name that is none of its
    names."""
    if not name.startswith(MARK) or not name.replace("_", "").isalnum():
        raise ValueError(f"{name} is no schema of Dyno's, so it is left alone")
    ask = connected(url)
    ask(registry.runtime_of(urlsplit(url).scheme).own_place(url, name).drop)
    with suppress(DriverFailed):
        # There is no such row where the account may keep none.
        Ledger(ask).strike(run, SCHEMA, name)


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
    for run in dict.fromkeys(row.run for row in rows):
        ledger.forget(run)
    return lines


def _undone(url: str, row: Row) -> str:
    """Undoes a change that stands in a ledger; says what was done."""
    if row.kind == SCHEMA:
        drop_schema(url, row.run, row.name)
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
    return entry["kind"] in (SETTING, SCHEMA, LEDGER) and one_server(entry["url"], url)


@undoes(SETTING)
def _undo_setting(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: put_back(entry["url"], Standing.model_validate_json(entry["standing"])))


@undoes(SCHEMA)
def _undo_schema(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: drop_schema(entry["url"], entry["run"], entry["name"]))


@undoes(LEDGER)
def _undo_ledger(entry: Mapping[str, Any]) -> None:
    _reaching(entry, lambda: Ledger(connected(entry["url"])).forget(entry["run"]))
