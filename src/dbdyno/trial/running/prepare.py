"""The first stage on a server that runs already: nothing is started, and no data are put in place.

The trial has either a schema of its own, which is dropped with it, or the tables that are there. Those are
read in sessions that the server holds read-only, unless the user allows more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from dbdyno.driver.job import Job
from dbdyno.driver.load import (
    QUERY_TIMEOUT_S,
    Explained,
    Invariant,
    LoadDriver,
    Prepared,
    StatementsAnswered,
)
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.engines.put_back import note_schema, reached
from dbdyno.engines.runtime import MARK, FoundServer, OwnPlace, lacks_right, server_at, with_own_password
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.layers.layer import ask
from dbdyno.layers.setup import Before, Running, Setup, apply
from dbdyno.records.record import Reading
from dbdyno.study.document import toml
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import INDEXING_S, Bench, setup_of
from dbdyno.trial.beside import stop_or_kill
from dbdyno.trial.running.switch import SettingsSwitch, unprovable


class LoadInTurn:
    """A load that moves the server's settings to its own `levels` before each stretch of work."""

    def __init__(self, load: LoadDriver, switch: SettingsSwitch, levels: Mapping[str, Level]) -> None:
        self._load, self._switch, self._levels = load, switch, levels

    @property
    def process_id(self) -> int:
        return self._load.process_id

    @property
    def told(self) -> Acknowledged | None:
        return self._load.told

    def prepare(self, job: Job) -> Prepared:
        with self._in_turn():
            return self._load.prepare(job)

    def run(self, job: Job) -> Tally:
        with self._in_turn():
            return self._load.run(job)

    def begin(self, job: Job) -> Tally | None:
        with self._in_turn():
            return self._load.begin(job)

    def go_on(self) -> Tally | None:
        with self._in_turn():
            return self._load.go_on()

    def end(self) -> Tally:
        with self._unless_stopped():
            return self._load.end()

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        with self._in_turn():
            return self._load.check(job, acknowledged)

    def explain(self, job: Job) -> Explained:
        with self._in_turn():
            return self._load.explain(job)

    def answers(self, job: Job) -> StatementsAnswered:
        with self._in_turn():
            return self._load.answers(job)

    def query(self, url: str, sql: str, timeout_s: float = QUERY_TIMEOUT_S) -> list[list[str | float | None]]:
        with self._unless_stopped():
            return self._load.query(url, sql, timeout_s)

    def close(self) -> None:
        self._load.close()

    def kill(self) -> None:
        self._load.kill()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        self._switch.take_turn(self._levels, anew=False)
        with self._unless_stopped():
            yield

    @contextmanager
    def _unless_stopped(self) -> Iterator[None]:
        """Says that the run was stopped, where the load process was ended for that."""
        try:
            yield
        except DriverFailed:
            self._switch.require_going()
            raise


PROBE = "probe.toml"
"""A script whose conditions read the settings of a session that begins like those of the load."""


@dataclass(frozen=True)
class InTurn(Running):
    """The server while a trial has its turn. `by_session` are the levels that its sessions give
    themselves."""

    by_session: Mapping[str, Level] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)

    def readings(self, names: frozenset[str]) -> dict[str, Reading]:
        """What a new session is told of the server's settings, and what the load's own sessions are told of
        those that they set."""
        read = super().readings(names - self.by_session.keys())
        return {**read, **self._of_sessions(names & self.by_session.keys())}

    def accepted_by(self, name: str) -> str:
        return self.accepted.get(name) or "in force before the run, and not moved"

    def _of_sessions(self, names: frozenset[str]) -> dict[str, Reading]:
        if not names:
            return {}
        runtime = self.setup.engine.runtime
        assert runtime is not None, "who has no runtime was refused"
        probe = self.setup.scratch / PROBE
        asked = {name: runtime.value_of_session(name) for name in sorted(names)}
        probe.write_text(_probe(asked))
        job = self.setup.job.but(workload="script", options={"file": str(probe)})
        found = {one.name: one.detail.removeprefix("value ") for one in self.load.check(job, None)}
        return {name: Reading(value=found[name], source=sql) for name, sql in asked.items() if name in found}


def _probe(asked: Mapping[str, str]) -> str:
    """A script that only looks: one condition for each query."""
    lines = ["[[transactions]]", 'name = "nothing"', 'statements = ["SELECT 1"]']
    for name, sql in asked.items():
        lines += [
            "[[invariants]]",
            f"name = {toml(name)}",
            f"query = {toml(sql)}",
            'expect = ":value is not null"',
        ]
    return "\n".join(lines) + "\n"


def prepare_running(trial: Trial, bench: Bench, undo: ExitStack) -> tuple[Running, dict[str, Level]]:
    """Gives the server the trial's levels, and the load its sessions. What it opens is closed by `undo`.

    Raises Blocked for a level that cannot be put in here, DriverFailed where the server refuses the account,
    and Stopped where nobody has a turn any more.
    """
    switch = bench.switch
    assert switch is not None, "this is of a server that runs already"
    _require_of_running(trial, bench)
    setup = _setup(trial, bench)
    levels = dict(setup.settings)
    for name, level in levels.items():
        if (refusal := switch.refusal(name, level)) is not None:
            raise refusal
    by_session = switch.of_sessions(levels)
    place = _own_place(trial, bench, switch) if switch.in_use.data == "own" else None
    setup.job = _with_opening(setup.job, switch, place, by_session)
    load = bench.open_load({}, Launch())
    # What is undone goes in reverse: the process is forgotten before its number is free.
    undo.push(stop_or_kill(load.close, load.kill))
    switch.follow(load.process_id)
    undo.callback(switch.leave, load.process_id)
    in_turn = LoadInTurn(load, switch, levels)
    switch.take_turn(levels)
    reset: dict[str, Level] = {"way": "own schema" if place else "as they are"}
    if place is not None:
        reset |= _fill(setup, in_turn)
    accepted = {name: switch.ways[name].does for name in levels if switch.moves(name)}
    server = _found(setup.job.url, switch, bench)
    return InTurn(setup, server, in_turn, by_session=by_session, accepted=accepted), reset


def _require_of_running(trial: Trial, bench: Bench) -> None:
    for refused in unprovable(trial.variant.levels, bench.study.baseline):
        raise refused


def _setup(trial: Trial, bench: Bench) -> Setup:
    """The trial's own folder, and what its levels ask for."""
    setup = setup_of(trial, bench)
    setup.asked = ask(bench.levels_by_layer(trial), bench.layers, bench.engine)
    for before in Before:
        apply(setup, before)
    return setup


def _own_place(trial: Trial, bench: Bench, switch: SettingsSwitch) -> OwnPlace:
    """A schema for this trial alone, which goes with it."""
    name = MARK + re.sub(r"[^a-z0-9]+", "_", f"{bench.run.run}_{trial.index}".lower())
    place = switch.runtime.own_place(switch.url, name)
    note_schema(bench.journal, switch.url, switch.server, bench.run.run, name)
    switch.note_schema(bench.run.run, name)
    try:
        with reached(switch.url, switch.server) as at:
            at.ask(place.create)
    except DriverFailed as refused:
        told = f"the server makes no schema for Dyno: {refused.message}"
        grant = f'{place.right} {switch.in_use.identity.account}; or write data = "mine" under [server]'
        raise ServerFailed(told, grant if lacks_right(refused) else refused.hint) from None
    return place


def _with_opening(
    job: Job, switch: SettingsSwitch, place: OwnPlace | None, by_session: Mapping[str, Level]
) -> Job:
    """The job of sessions that begin as the study says, in the place that they are to work in. That they may
    not write comes last, so that nothing before it can undo it."""
    sql = [*job.opening.sql, *(place.opening if place else ())]
    sql += [switch.runtime.in_session(name, level) for name, level in sorted(by_session.items())]
    if place is None and not switch.allow_writes:
        sql.append(switch.runtime.READ_ONLY)
    url = with_own_password(place.url if place else switch.url)
    return job.but(url=url, opening=job.opening.but(sql=tuple(sql)))


def _fill(setup: Setup, load: LoadInTurn) -> dict[str, Level]:
    """Makes the workload's rows; says how long that took. Raises ServerFailed where they are wrong."""
    prepared = load.prepare(setup.job.but(answer_timeout_s=INDEXING_S))
    checks = load.check(setup.job, None)
    if wrong := [f"{check.name}: {check.detail}" for check in checks if not check.holds]:
        raise ServerFailed(f"the rows that were just made are wrong: {'; '.join(wrong)}")
    baseline = next((check.value for check in checks if check.value), None)
    setup.job = setup.job.but(baseline=baseline)
    return {"rows_made": prepared.rows, "rows_s": round(prepared.duration_s, 3)}


def _found(url: str, switch: SettingsSwitch, bench: Bench) -> FoundServer:
    """The server as the load reaches it, with its process where that is on this host."""
    production = bench.engine.production
    process_id = None
    if production is not None and switch.in_use.here:
        process_id = server_at(switch.url, production, switch.runtime.PROGRAMS)
    return FoundServer(url, switch.in_use.identity.version, process_id)
