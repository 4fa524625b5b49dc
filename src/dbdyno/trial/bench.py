"""The bench: what all trials of one run share, and how a load from other hosts reaches their servers. Tests
put an engine, a load and a clock of their own on it.

`setup_of` makes the setup that a trial begins with, and `job_of` what the driver is to do in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dbdyno.driver.job import Job, Opening
from dbdyno.driver.load import LoadDriver
from dbdyno.driver.remote.load import DriverOnHost, ReachedServer, RemoteLoad
from dbdyno.engines.engine import Server
from dbdyno.engines.server import Listening, Network, listening_at
from dbdyno.errors import UserError, remedy
from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.host import paths
from dbdyno.host.cache import silently
from dbdyno.host.launch import Launch
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.layers.layer import by_layer
from dbdyno.layers.setup import Setup
from dbdyno.study import Workload, pacing
from dbdyno.study.designs import restarted
from dbdyno.study.files import FileKind, digest_of_file
from dbdyno.study.nouns import RemoteDriver as VolumeSpecification
from dbdyno.study.trials import Trial
from dbdyno.trial.running.switch import OF_RUNNING

if TYPE_CHECKING:
    from dbdyno.applications.front import FrontPlan
    from dbdyno.engines.built import Built, Instrumented
    from dbdyno.engines.engine import Engine
    from dbdyno.host.cache import Tell
    from dbdyno.host.callgrind import Callgrind
    from dbdyno.host.journal import Journal
    from dbdyno.host.writers import Allowed
    from dbdyno.layers.layer import Layer
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.run import Run
    from dbdyno.study import Study
    from dbdyno.trial.running.switch import SettingsSwitch

INDEXING_S = 3600.0
"""A server that makes an index is silent until it is done."""


def digest_as_begun(file: Path, run: Run) -> str:
    """The hash of a file that a study refers to. Raises UserError for one that is not as it was when the run
    began."""
    try:
        digest = digest_of_file(file)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}", remedy(error, "put it back")) from None
    if run.files is not None and digest not in {one.digest for one in run.files}:
        raise UserError(f"{file} was changed after the run began", "put it back, or begin a new run")
    return digest


def front_of(setup: Setup, bench: Bench) -> FrontPlan | None:
    """What a setup's levels put in front of its server; None where they put nothing there. Raises UserError
    for a file that is not as it was when the run began."""
    if setup.front is None:
        return None
    # Here, because most loads go to their server.
    from dbdyno.applications.front import ONLY_FILE, FrontPlan, front_program
    from dbdyno.applications.registry import FRONTS

    program = front_program(setup.front.kind, bench.study.fronts)
    known = FRONTS.get(setup.front.kind)
    texts = {ONLY_FILE: known.text if known else ""}
    files = [bench.study.folder / name for name in program.configuration]
    for file in files:
        digest_as_begun(file, bench.run)
    if files:
        texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    return FrontPlan(setup.front, program, texts)


def job_of(workload: Workload, trial: Trial, bench: Bench) -> Job:
    """What the driver is to do in a trial, before there is a server and before its levels are put in. Raises
    UserError where the file of a schedule is not as it was when the run began."""
    for file in bench.run.files or ():
        if file.kind is FileKind.SCHEDULE:
            digest_as_begun(bench.study.folder / file.path, bench.run)
    load = pacing.load(
        workload.rate_per_s,
        workload.arrivals,
        pacing.schedule(workload.schedule, bench.study.folder) if workload.schedule else None,
        pacing.think_time(workload.think_time) if workload.think_time else None,
    )
    return Job(
        workload=workload.name,
        options=dict(workload.options),
        folder=str(bench.study.folder),
        clients=workload.clients,
        threads=workload.threads,
        ramp_s=workload.ramp_s,
        gather=workload.gather,
        by_statement=workload.by_statement,
        opening=_opening(workload, bench.engine),
        warmup_s=workload.warmup_s,
        duration_s=workload.duration_s,
        seed=trial_seed(bench.run.seed, trial.block),
        load=load,
    )


def _opening(workload: Workload, engine: Engine) -> Opening:
    """What each connection begins with: the time that a statement may take comes first, so that the user's
    own words count."""
    if workload.timeout_s is None or not engine.statement_timeout:
        return workload.opening
    ends = engine.statement_timeout.format(s=f"{workload.timeout_s:g}", ms=round(1000 * workload.timeout_s))
    return workload.opening.but(sql=(ends, *workload.opening.sql))


def setup_of(trial: Trial, bench: Bench) -> Setup:
    """What a trial begins with: a folder of its own, which is in the journal before it is made."""
    scratch = paths.cache() / "trials" / f"{bench.run.run}-{trial.index}"
    bench.journal.note_tree(scratch)
    scratch.mkdir(parents=True)
    job = job_of(bench.study.workload, trial, bench)
    setup = Setup(bench.engine, bench.installation, scratch, bench.journal, job)
    setup.allowed = bench.allowed
    return setup


def trial_seed(run_seed: int, block: int) -> int:
    """What the keys of a trial are drawn from, 0 to 2**64 - 1. All variants of a block draw the same keys, so
    that they differ in nothing but their levels."""
    return (run_seed * 1_000_003 + block) % 2**64


OpenLoad = Callable[[Mapping[str, str], Launch], LoadDriver]
"""Starts a load process with an environment, in the way that an embedded engine asks for."""

Drop = Callable[[Mapping[str, Sequence[int]]], frozenset[str]]
"""Names variants by what their clients had been told of whenever their loads waited."""


@dataclass(frozen=True)
class Clock:
    """What a run reads the time from and waits by: unix time, one that never goes back, and a wait, each in
    seconds."""

    unix_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def nobody(_told: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """All trials have all their slices."""
    return frozenset()


def never() -> bool:
    """All slices are as long as they were to be."""
    return False


@dataclass(frozen=True)
class OnEngine:
    """What a level of the factor `engine` leads to."""

    engine: Engine
    installation: Installation


@dataclass(frozen=True)
class Leased:
    """The host of a fleet that carries trials out, by its name there, and the number of its lease."""

    host: str
    fence: int


@dataclass(frozen=True)
class SentStatement:
    """A statement of the load by its name, with the text that the server was sent. `why_not` says why it
    cannot be sent once more. An embedded engine `counted` this while it answered."""

    name: str
    sql: str
    why_not: str = ""
    counted: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """One run's engine, layers, journal and means of load. `cores` are the host's; `allowed` may be changed
    by trials; `verified` are the sources whose clones were compared with them. With `callgrind` what servers
    execute is counted, and no speed is measured; `counter` is for those trials alone that are counted beside
    the timed ones. `instrumented` takes the installation's place in a trial that trains it, and so does a
    `built` one that the correctness gate asks. `drop` says which trials of a search's block need no further
    slice. What takes long before a trial is `tell`-ed.
    Where engines are a factor, `engines` has what each level leads to, by its text. A `switch` moves the
    settings of a server that runs already. `leased` is the host of a fleet; None without one. Where it
    `lengthens`, slices are made longer that the first warm-ups of its run show to be too short. Of variants
    whose statements were answered it has how they were `sent`.
    """

    study: Study
    run: Run
    engine: Engine
    installation: Installation
    layers: Mapping[str, Layer]
    journal: Journal
    open_load: OpenLoad
    cores: int
    clock: Clock = Clock()
    allowed: Allowed = NOTHING_ALLOWED
    verified: set[Path] = field(default_factory=set)
    callgrind: Callgrind | None = None
    counter: Callgrind | None = None
    instrumented: Instrumented | None = None
    built: Built | None = None
    drop: Drop = nobody
    tell: Tell = silently
    engines: Mapping[str, OnEngine] = field(default_factory=dict)
    switch: SettingsSwitch | None = None
    leased: Leased | None = None
    lengthens: Callable[[], bool] = never
    sent: dict[str, tuple[SentStatement, ...]] = field(default_factory=dict)

    def of(self, trial: Trial) -> Bench:
        """The bench that a trial is carried out on."""
        bench = self
        if self.engines and ENGINE_FACTOR in trial.variant.levels:
            # A level without its engine would run on the baseline's, and be called what it is not.
            own = self.engines[level_text(trial.variant.levels[ENGINE_FACTOR])]
            bench = replace(bench, engine=own.engine, installation=own.installation)
        if trial.restarts:
            return replace(bench, study=restarted(bench.study))
        return replace(bench, callgrind=bench.counter) if trial.counts_instructions else bench

    @property
    def taken_from(self) -> OnEngine | None:
        """Whose data this bench's engine takes over, which those may have taken over as well; None where it
        makes its own."""
        first = self.engines.get(self.study.engine.written)
        if not self.study.upgraded or first is None or first.installation.digest == self.installation.digest:
            return None
        # Here, because few studies compare versions.
        from dbdyno.engines.upgrade import step_before

        by_digest = {one.installation.digest: one for one in self.engines.values()}
        installations = [one.installation for one in by_digest.values()]
        return by_digest[
            step_before(self.engine, self.installation, first.installation, installations).digest
        ]

    def levels_by_layer(self, trial: Trial) -> dict[str, dict[str, Level]]:
        """Every level of a trial, the study's fixed settings included, as layer -> knob -> level. Of a server
        that runs already those alone that it can be given."""
        levels = by_layer({**self.study.settings, **trial.variant.levels})
        return (
            levels if self.switch is None else {name: levels[name] for name in OF_RUNNING if name in levels}
        )


@dataclass(frozen=True)
class OnNetwork:
    """How a server listens, and for whom."""

    wish: VolumeSpecification
    network: Network
    listening: Listening
    settings: Mapping[str, Level]

    def load(self, server: Server, beside: LoadDriver, undo: ExitStack) -> RemoteLoad:
        """Lets the load in, and starts its driver on each load host, which `undo` ends. Raises DriverFailed
        where one cannot be reached, has no driver, or does not reach the server."""
        database = unquote(urlsplit(server.url).path.removeprefix("/"))
        for statement in self.network.account(self.listening, server.version, database):
            beside.query(server.url, statement)
        at, drivers = self.listening, list[DriverOnHost]()
        shown = at.certificate.certificate.read_text() if at.certificate else ""
        reached = ReachedServer(at.address, at.port, at.url(server.url), shown)
        for host in self.wish.hosts:
            drivers.append(DriverOnHost(host))
            undo.callback(drivers[-1].kill)
            drivers[-1].connects_s(reached, 1)
        return RemoteLoad(beside, drivers, reached)


def network_of(setup: Setup, bench: Bench, runtime: Path) -> OnNetwork | None:
    """How the server of a trial listens; None where its load comes from this host. What is counted or trained
    is not timed, so it is loaded from here."""
    wish = bench.study.driver
    if wish is None or bench.callgrind or bench.instrumented or setup.engine.network is None:
        return None
    listening = listening_at(wish.address, wish.tls, runtime)
    settings = setup.engine.network.settings(listening, runtime)
    return OnNetwork(wish, setup.engine.network, listening, settings)
