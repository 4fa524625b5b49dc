"""A server that runs already, held during a run that moves its settings: what stands on it is noted first,
and put back at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.begin.begun import Begun
from dbdyno.begin.running import look_anew, looked_at, require_allowed
from dbdyno.engines import registry
from dbdyno.engines.ledger import Ledger
from dbdyno.engines.put_back import SETTING, note_ledger, note_setting
from dbdyno.engines.runtime import connected
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.host.allowed import Allowed
from dbdyno.host.journal import Journal
from dbdyno.records.in_use import Moved
from dbdyno.records.store import Store
from dbdyno.study import Study
from dbdyno.trial.running.guard import Guard
from dbdyno.trial.running.switch import Switch


@contextmanager
def held(begun: Begun, journal: Journal, store: Store, allowed: Allowed) -> Iterator[Switch | None]:
    """The settings of the run's server may be moved within. They are put back at its end, however it comes,
    and the run keeps what became of them. None where the run starts its own servers."""
    study, run = begun.study, begun.run
    if study.server is None:
        yield None
        return
    look_anew()
    require_allowed(study, allowed)
    looked = looked_at(study)
    standing = looked.standing(study)
    mark = journal.mark()
    ledger, where = None, ""
    if standing or study.server.data == "own":
        ledger, where = _ledger(study, journal, run.run)
    for one in standing:
        note_setting(journal, study.engine.url, one)
        if ledger is not None:
            now = registry.runtime_of(study.engine.engine).NOW
            ledger.note(run.run, SETTING, one.name, one.model_dump_json(), now)
    switch = Switch(
        registry.engine(study.engine.engine), looked.in_use, standing, ledger, allow_writes=allowed.writes
    )
    guard = Guard(switch, study.server, run.run)
    moved: tuple[Moved, ...] = ()
    try:
        with guard.looking():
            yield switch
    finally:
        try:
            moved = switch.put_back()
        except DynoError:
            # The journal puts it back once more, and says what resists.
            moved = tuple(one.unread for one in standing)
        finally:
            seen = guard.seen if study.server.guarded else None
            kept = looked.in_use.but(moved=moved, ledger=where, seen=seen)
            store.change_run(store.run(run.run).but(in_use=kept))
            journal.undo_to(mark)


def _ledger(study: Study, journal: Journal, run: str) -> tuple[Ledger | None, str]:
    """Where changes are noted on the server itself, and what is told of that."""
    ledger = Ledger(connected(study.engine.url))
    note_ledger(journal, study.engine.url, run)
    try:
        ledger.make()
    except DriverFailed as refused:
        return None, f"only in the journal of this host, because the server keeps none: {refused.message}"
    return ledger, "in the journal of this host, and on the server in the schema dyno_ledger"
