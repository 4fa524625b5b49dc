"""A server that runs already: what a study would do to it, by reading alone, whether its user allows that,
and how it is held during the run, so that what stood on it is put back at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from dbdyno.driver.passwords import conversation
from dbdyno.engines import registry
from dbdyno.engines.put_back import (
    SETTING,
    ReachedSession,
    SettingBefore,
    Strayed,
    ledger_on,
    moving,
    note_ledger,
    note_settings,
    note_strayed,
)
from dbdyno.engines.runtime import (
    ChangeRow,
    ServerLedger,
    connected,
    one_server,
    server_at,
    with_own_password,
)
from dbdyno.errors import DriverFailed, DynoError, ServerFailed, UserError
from dbdyno.frozen import Level, level_shown, level_text
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.writers import Allowed
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import Refusal
from dbdyno.records.in_use import InUse, Means, Moved, ServerId, SettingWay
from dbdyno.records.run import Run
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study
from dbdyno.trial.running.switch import OF_RUNNING, SettingsSwitch, SwitchGuard, unprovable, words_of

if TYPE_CHECKING:
    from dbdyno.driver.passwords import Ask
    from dbdyno.records.store import Store
    from dbdyno.study.nouns import Reference
    from dbdyno.study.trials import Variant

OPTION = "--allow-server"


def settings_of(study: Study) -> dict[str, tuple[Level, ...]]:
    """All levels that any variant has of each setting of the server."""
    levels: dict[str, tuple[Level, ...]] = {name: (level,) for name, level in study.settings.items()}
    levels |= {factor.name: factor.levels for factor in study.factors}
    return by_knob(levels)


def by_knob(levels: Mapping[str, tuple[Level, ...]]) -> dict[str, tuple[Level, ...]]:
    """Those of the layer config, by the server's own names."""
    prefix = "config."
    return {name.removeprefix(prefix): each for name, each in levels.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class Looked:
    """A server as it was looked at, and what stands there for each setting that is moved for all of it."""

    in_use: InUse
    server: ServerId
    lines: Mapping[str, str | None]

    def standing(self, study: Study) -> tuple[SettingBefore, ...]:
        """What a run of the study moves, before it is moved."""
        levels, server = settings_of(study), study.server
        restart = server.restart if server is not None else ""
        return tuple(
            SettingBefore.of(
                self.server,
                way,
                self.lines[way.name],
                tuple(map(level_text, levels[way.name])),
                restart if way.means is Means.RESTART else "",
            )
            for way in self.in_use.ways
            if way.name in self.lines
        )


def looked_at(study: Study) -> Looked:
    """The server of a study, by reading alone. Raises DriverFailed where it does not answer."""
    assert study.server is not None, "this is of a server that runs already"
    found = _looked(study.engine, tuple(sorted(settings_of(study))), bool(study.server.restart))
    runtime = registry.runtime_of(study.engine.engine)
    guard = words_of(study.server, runtime)
    return replace(found, in_use=found.in_use.but(data=study.server.data, guard=guard))


@cache
def _looked(reference: Reference, names: tuple[str, ...], hook: bool) -> Looked:
    with conversation(with_own_password(reference.url)) as ask:
        return _looked_by(ask, reference, names, hook)


def _looked_by(ask: Ask, reference: Reference, names: tuple[str, ...], hook: bool) -> Looked:
    runtime = registry.runtime_of(reference.engine)
    production = registry.engine(reference.engine).production
    server = runtime.who(ask)
    at = ReachedSession(reference.url, server, ask, registry.engine(reference.engine), runtime)
    ways, lines = dict[str, SettingWay](), dict[str, str | None]()
    for name, way in sorted(runtime.ways(ask, names, hook).items()):
        ways[name] = way
        if way.refused or way.means is Means.SESSION:
            continue
        try:
            lines |= at.lines((name,))
        except UserError as unseen:
            ways[name] = way.but(refused=unseen.message, remedy=unseen.hint)
    return Looked(
        InUse(
            url=reference.url,
            identity=runtime.identity(ask),
            here=production is not None
            and server_at(reference.url, production, runtime.PROGRAMS) is not None,
            data="",
            ways=tuple(ways.values()),
        ),
        server,
        lines,
    )


def look_anew() -> None:
    """Forgets what was looked at. Who waited for this host must look again before anything is moved."""
    _looked.cache_clear()


def in_use_of(study: Study) -> InUse | None:
    """What a run keeps of the server that it studies; None where it starts its own."""
    return None if study.server is None else looked_at(study).in_use


def needs_restarts(study: Study) -> str:
    """A setting that only a restart puts into force; empty where there is none."""
    if study.server is None:
        return ""
    looked = looked_at(study)
    return next((way.name for way in looked.in_use.ways if way.name in looked.lines and _restarts(way)), "")


def _restarts(way: SettingWay) -> bool:
    return way.means is Means.RESTART


def settable(study: Study, levels: Mapping[str, Level]) -> dict[str, Level]:
    """Of a variant's levels those that layers are asked about: on a server that runs already not those that
    only a server of Dyno's own can have."""
    if study.server is None:
        return dict(levels)
    return {
        name: level for name, level in levels.items() if next(iter(by_layer({name: level}))) in OF_RUNNING
    }


def refusals_of(study: Study, variants: tuple[Variant, ...]) -> Iterator[Refusal]:
    """The variants that cannot be put into effect on this server, and why."""
    if study.server is None:
        return
    engine = registry.engine(study.engine.engine)
    looked = looked_at(study)
    switch = SettingsSwitch(engine, looked.in_use, looked.server, ())
    found: dict[tuple[str, str, str], list[str]] = {}
    for variant in variants:
        config = by_layer({**study.settings, **variant.levels}).get("config", {})
        of_server = filter(None, (switch.refusal(name, level) for name, level in config.items()))
        for one in (*of_server, *unprovable(variant.levels, study.baseline)):
            found.setdefault((one.factor, one.message, one.hint), []).append(variant.name)
    for (factor, reason, remedy), names in found.items():
        yield Refusal(factor=factor, reason=reason, remedy=remedy, variants=tuple(names))
    every = tuple(variant.name for variant in variants)
    for reason, remedy in _forbidden(study, looked.in_use):
        yield Refusal(factor="server", reason=reason, remedy=remedy, variants=every)


def _forbidden(study: Study, found: InUse) -> Iterator[tuple[str, str]]:
    """What the account may not do that every trial needs, and what would let it."""
    account = found.identity.account
    if lacking := _lacking_for_data(study):
        hint = f'{lacking}; or write data = "mine" under [server]'
        yield f"{account} may not make a schema for Dyno's data", hint
    if lacking := _lacking_for_guard(study, found):
        yield f"{account} does not see the server's own load, which is guarded", lacking


def _lacking_for_guard(study: Study, found: InUse) -> str:
    """What would let the account see the load that the study guards; empty where it does, or guards none."""
    if study.server is None or not study.server.guarded:
        return ""
    return registry.runtime_of(study.engine.engine).lacking_for_guard(connected(found.url))


def server_lines(study: Study) -> Iterator[str]:
    """What a run would do to the server, a line each; nothing where it starts its own."""
    if study.server is None:
        return
    found = looked_at(study).in_use
    who = found.identity
    where = "its processes are on this host" if found.here else "its processes are not seen from here"
    title = registry.engine(study.engine.engine).title
    yield f"a server that runs already: {title} {who.version} at {found.url}"
    yield f"  the account is {who.account}; {where}"
    if who.replica:
        yield f"  it is a replica: {who.replica}; it is only read"
    others = "nobody else is connected" if not who.others else f"{plural(who.others, 'other session')} on it"
    yield f"  {others}"
    for way in found.ways:
        if way.refused:
            yield f"  {way.name} (now {level_shown(way.now)}): blocked, because {way.refused}; {way.remedy}"
        else:
            right = f"needs {way.right}, which {who.account} has" if way.right else "needs no right"
            yield f"  {way.name} (now {level_shown(way.now)}): {way.does}; {right}"
    yield f"  data: {_data_words(study)}"
    if found.guard:
        yield f"  guard of the server's own load: {found.guard}"
    if pending := pending_of(study):
        yield f"  others have changed {', '.join(pending)}, which it has not taken over: no run begins before"
    yield f"  nothing is changed without {OPTION} {found.url}"


def _lacking_for_data(study: Study) -> str:
    """The statement that lets the account make the study's data; empty where it may."""
    assert study.server is not None
    if study.server.data != "own":
        return ""
    return registry.runtime_of(study.engine.engine).lacking_for_schema(connected(study.engine.url))


def _data_words(study: Study) -> str:
    assert study.server is not None
    if study.server.data == "own":
        return "each trial makes a schema of Dyno's own, and drops it"
    return "the tables that are there, read in sessions that the server holds read-only"


def require_started(study: Study) -> None:
    """Raises UserError for a study of a server that runs already, where servers are to be started."""
    if study.server is not None:
        raise UserError(
            f"the study's server runs already, {study.engine.url}, and this command or option starts its own",
            "dyno run STUDY carries it out, without --against; or name an installation as the engine",
        )


def require_moves_allowed(study: Study, allowed: Allowed) -> None:
    """Raises UserError where the user does not allow what the study does to a server that runs already, and
    where others on that server would suffer."""
    if study.server is None:
        return
    url = study.engine.url
    if not any(one_server(url, each) for each in allowed.servers):
        names = ", ".join(settings_of(study)) or "no setting"
        told = f"{study.path} puts a load on a server that runs already, {url}, and moves {names} on it"
        raise UserError(told, f"dyno plan {study.path} says what is done; to allow it: {OPTION} '{url}'")
    found = looked_at(study).in_use
    own = study.server.data == "own"
    if own and found.identity.replica:
        hint = 'write data = "mine" under [server]'
        raise UserError(
            f"the server is a replica, {found.identity.replica}: it takes no schema of Dyno's", hint
        )
    if own and study.names_files and not allowed.writes:
        told = f"{study.workload.name} has statements of your own, which may write to tables of the server"
        raise UserError(told, 'write data = "mine" to have them read, or give --allow-writes')
    for told, hint in _forbidden(study, found):
        raise UserError(told, hint)
    _require_paced(study, found)
    if pending := pending_of(study):
        told = f"others have changed {', '.join(pending)}, which the server has not taken over, and now would"
        raise UserError(told, "have it taken over, or take it back; then type this again")
    require_unchanged(next(iter(ledger_on(url, looked_at(study).server).rows()), None), url)


def pending_of(study: Study) -> list[str]:
    """What of others' changes the run would have the server take over; nothing where it moves nothing."""
    if not looked_at(study).lines:
        return []
    runtime = registry.runtime_of(study.engine.engine)
    return runtime.pending(connected(study.engine.url), bool(needs_restarts(study)))


def _require_paced(study: Study, found: InUse) -> None:
    load = study.workload
    varied = {factor.knob for factor in study.factors if factor.layer == "workload"}
    paced = load.rate_per_s or load.schedule or varied & {"rate_per_s", "schedule"}
    if found.identity.others and not paced:
        others = plural(found.identity.others, "other session")
        told = f"the load takes all that it can get, and there are {others} on {found.url}"
        raise UserError(told, "write rate_per_s = N under [workload]")


def require_unchanged(row: ChangeRow | None, url: str) -> None:
    """Raises UserError where a change of another Dyno stands on the server."""
    if row is not None:
        told = f"run {row.run} of a Dyno on {row.host} has changed {row.name} on {url}, and not put it back"
        raise UserError(told, f"wait for its end, or, where it died: dyno cleanup --server '{url}'")


@dataclass(frozen=True)
class Noted:
    """What a run notes of a server's settings: in the journal of this host, and in the server's ledger where
    there is one."""

    journal: Journal
    ledger: ServerLedger | None
    url: str
    server: ServerId
    run: str

    def settings(self, standings: Sequence[SettingBefore]) -> None:
        """Notes settings before they are moved, or as soon as they moved along."""
        if not standings:
            return
        note_settings(self.journal, self.url, standings)
        if self.ledger is not None:
            self.ledger.note(self.run, SETTING, contents_of(standings))

    def begin(self, standings: Sequence[SettingBefore]) -> None:
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


def contents_of(standings: Sequence[SettingBefore]) -> dict[str, str]:
    """What the ledger keeps of settings, by their names."""
    return {one.name: one.model_dump_json() for one in standings}


@contextmanager
def held(
    study: Study, run: Run, journal: Journal, store: Store, allowed: Allowed
) -> Iterator[SettingsSwitch | None]:
    """The settings of the run's server may be moved within. They are put back at its end, however it comes,
    and the run keeps what became of them. None where the run starts its own servers."""
    if study.server is None:
        yield None
        return
    look_anew()
    require_moves_allowed(study, allowed)
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
            switch = SettingsSwitch(
                registry.engine(study.engine.engine),
                looked.in_use,
                looked.server,
                standing,
                note,
                ledger,
                allow_writes=allowed.writes,
            )
            guard = SwitchGuard(switch, study.server, run.run)
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


def put_back_by(switch: SettingsSwitch, journal: Journal) -> tuple[tuple[Moved, ...], DynoError | None]:
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


def _ledger(study: Study, server: ServerId, journal: Journal, run: str) -> tuple[ServerLedger | None, str]:
    """Where changes are noted on the server itself, and what is told of that."""
    ledger = ledger_on(study.engine.url, server)
    note_ledger(journal, study.engine.url, server, run)
    try:
        ledger.make()
    except DriverFailed as refused:
        return None, f"only in the journal of this host, because the server keeps none: {refused.message}"
    return ledger, "in the journal of this host, and on the server in the schema dyno_ledger"
