"""A server that runs already, held during a run that moves its settings: what stands on it is noted first,
and put back at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from dbdyno.begin.begun import Begun
from dbdyno.begin.running import look_anew, looked_at, require_allowed, require_unchanged
from dbdyno.engines import registry
from dbdyno.engines.ledger import Ledger
from dbdyno.engines.put_back import (
    SETTING,
    Standing,
    Strayed,
    ledger_on,
    moving,
    note_ledger,
    note_settings,
    note_strayed,
)
from dbdyno.errors import DriverFailed, DynoError, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.writers import Allowed
from dbdyno.records.in_use import Moved, ServerId
from dbdyno.records.store import Store
from dbdyno.study import Study
from dbdyno.trial.running.switch import Guard, Switch


@dataclass(frozen=True)
class Noted:
    """What a run notes of a server's settings: in the journal of this host, and in the server's ledger where
    there is one."""

    journal: Journal
    ledger: Ledger | None
    url: str
    server: ServerId
    run: str

    def settings(self, standings: Sequence[Standing]) -> None:
        """Notes settings before they are moved, or as soon as they moved along."""
        if not standings:
            return
        note_settings(self.journal, self.url, standings)
        if self.ledger is not None:
            self.ledger.note(self.run, SETTING, contents_of(standings))

    def begin(self, standings: Sequence[Standing]) -> None:
        """Notes settings before the first move. Raises UserError where another Dyno has come before, on the
        same machine or another, since this one looked."""
        if standings and self.ledger is not None:
            require_unchanged(
                self.ledger.note(self.run, SETTING, contents_of(standings), alone=True), self.url
            )
        if standings:
            note_settings(self.journal, self.url, standings)

    def strayed(self, strayed: Strayed) -> None:
        """Notes what reached another server."""
        note_strayed(self.journal, self.url, strayed)

    def moving(self, levels: Mapping[str, Level], before: Mapping[str, str]) -> AbstractContextManager[None]:
        """Notes that settings are moved within, because what moves along is not known before."""
        return moving(self.journal, self.url, self.server, tuple(levels), before)


def contents_of(standings: Sequence[Standing]) -> dict[str, str]:
    """What the ledger keeps of settings, by their names."""
    return {one.name: one.model_dump_json() for one in standings}


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
    try:
        if standing or study.server.data == "own":
            ledger, where = _ledger(study, looked.server, journal, run.run)
        # In a journal of its own, because a trial undoes all that was noted since it began.
        with open_journal() as moves:
            note = Noted(moves, ledger, study.engine.url, looked.server, run.run)
            note.begin(standing)
            switch = Switch(
                registry.engine(study.engine.engine),
                looked.in_use,
                looked.server,
                standing,
                note,
                ledger,
                allow_writes=allowed.writes,
            )
            guard = Guard(switch, study.server, run.run)
            moved: tuple[Moved, ...] = ()
            resisting: DynoError | None = None
            try:
                with guard.looking():
                    yield switch
            finally:
                try:
                    moved, resisting = put_back_by(switch, moves)
                finally:
                    seen = guard.seen if study.server.guarded else None
                    others = tuple(switch.others_moved.values())
                    kept = looked.in_use.but(moved=moved, ledger=where, seen=seen, others_moved=others)
                    store.change_run(store.run(run.run).but(in_use=kept))
                if isinstance(resisting, ServerFailed):
                    raise resisting
    finally:
        journal.undo_to(mark)


def put_back_by(switch: Switch, journal: Journal) -> tuple[tuple[Moved, ...], DynoError | None]:
    """Puts back what a switch moved; says what became of it, and what resisted."""
    try:
        moved = switch.put_back()
    except Strayed as strayed:
        note_strayed(journal, switch.url, strayed)
        return tuple(one.unread for one in switch.standing), strayed
    except DynoError as error:
        # The journal puts it back once more, and says what resists.
        return tuple(one.unread for one in switch.standing), error
    # Whatever others do from now on is theirs, even where they choose a level of the study.
    journal.forget(lambda entry: entry["kind"] == SETTING and entry["url"] == switch.url)
    return moved, None


def _ledger(study: Study, server: ServerId, journal: Journal, run: str) -> tuple[Ledger | None, str]:
    """Where changes are noted on the server itself, and what is told of that."""
    ledger = ledger_on(study.engine.url, server)
    note_ledger(journal, study.engine.url, server, run)
    try:
        ledger.make()
    except DriverFailed as refused:
        return None, f"only in the journal of this host, because the server keeps none: {refused.message}"
    return ledger, "in the journal of this host, and on the server in the schema dyno_ledger"
