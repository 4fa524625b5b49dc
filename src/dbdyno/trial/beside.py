"""A server outside of any trial: for data that are made or looked at, for the defaults of its settings, and
for a study's own statements, which one that holds their tables prepares before any trial.

The server is that of the baseline, on a data folder of its own, and it executes none of the statements. The
folder holds a copy of the data that the study brings, or else empty tables. What the server said is kept
under `cache/statements/KEY`, where KEY digests all that the answer depends on: the installation, the
baseline's settings, what each connection begins with, what the data hold, and the statements themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno import __version__
from dbdyno.driver.job import Job
from dbdyno.driver.load import Examined, Flaw, LoadDriver
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.engine import Ask, Engine, Server, ending
from dbdyno.engines.server import ServerProcess
from dbdyno.engines.values import answer_text
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level, level_shown
from dbdyno.host import cache, paths
from dbdyno.host.cache import Tell, silently
from dbdyno.host.fingerprint import Host
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.layers.config import held_file
from dbdyno.layers.setup import Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.run import ComparisonRun
from dbdyno.study import Study
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench


def runtime_of(setup: Setup, bench: Bench, part: str) -> Path:
    """A short folder for servers of one purpose, one after the other."""
    runtime = paths.runtime() / f"{setup.scratch.name}{part}"
    bench.journal.note_tree(runtime)
    runtime.mkdir(exist_ok=True)
    return runtime


def launch_of(setup: Setup) -> Launch:
    """Of the trial's own launch its patience alone: an instrumented build may make the data."""
    return Launch(patience=setup.launch.patience, writable=setup.launch.writable)


@contextmanager
def serving(
    setup: Setup, data: Path, runtime: Path, settings: Mapping[str, Level], stop_s: float | None
) -> Iterator[Server]:
    """The setup's server on the data, with what speeds up loading. It ends cleanly within so many seconds, or
    at once where nobody keeps what it wrote."""
    launch = launch_of(setup)
    settings = {**setup.engine.settings.LOADING, **settings}
    server = setup.engine.life.start(setup.data_maker, data, runtime, settings, launch)
    with ending(server, None if stop_s is None else stop_s * launch.patience):
        yield server


@contextmanager
def loading(bench: Bench, server: Server, launch: Launch) -> Iterator[LoadDriver]:
    """A load process for the server."""
    load = bench.open_load(server.driver_environment, launch.confined_to(*server.driver_folders))
    try:
        yield load
    except BaseException:
        load.kill()
        raise
    load.close()


def stop_or_kill(stop: Callable[[], None], kill: Callable[[], None]) -> Callable[..., None]:
    """Ends cleanly after a trial, at once after an interruption: the data are thrown away anyway."""

    def end(failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            stop()
        else:
            kill()

    return end


def has_defaults(trial: Trial, bench: Bench) -> bool:
    """Whether a trial asks its server: each variant does so once where engines are compared."""
    return bool(bench.engines) and trial.block == 0 and bench.engine.compared is not None


def defaults_of(running: Running) -> dict[str, str]:
    """The value of each setting where nobody sets it, by its name."""
    asked = running.setup.engine.compared
    rows = running.ask(asked.defaults) if asked is not None else []
    return {str(name): answer_text(value) for name, value in rows if value is not None}


COMPILED = re.compile(r"compiled by ([^,]+)")


def server_compiler(running: Running) -> str:
    """What compiled the server's program, by its own word, or else by what a compiler leaves in a file; empty
    where neither tells."""
    asked = running.setup.engine.compared
    if asked is not None and asked.program:
        [[told]] = running.ask(asked.program)
        named = COMPILED.search(answer_text(told) if told is not None else "")
        return named[1] if named is not None else ""
    # Here, because most servers are asked.
    from dbdyno.obtain.binary.read import compilers_of

    file = held_file(running.setup.installation, running.process_ids)
    return " and ".join(compilers_of(file)) if file is not None else ""


def not_in_effect(
    engine: Engine, installation: Installation, settings: Mapping[str, Level]
) -> dict[str, str]:
    """Which of these settings a server does not have after a start with them, and what it has instead. Where
    it does not start, those that keep it from that. The servers run on empty data in Dyno's cache."""
    if not settings:
        return {}
    try:
        with open_journal() as journal, journal.scope():
            return _other_than_asked(engine, installation, settings, journal)
    except (ServerFailed, DriverFailed) as failed:
        if len(settings) == 1:
            [name] = settings
            return {name: f"the server does not start with it ({failed.message})"}
    names = list(settings)
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    found: dict[str, str] = {}
    for half in halves:
        found |= not_in_effect(engine, installation, {name: settings[name] for name in half})
    return _not_beside(engine, installation, settings, found)


def _not_beside(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], found: Mapping[str, str]
) -> dict[str, str]:
    """Of settings that some others keep from their effect, those that all the good ones keep from it as well:
    a setting may need another one. One that no others are to blame for is the last one."""
    good = {name: level for name, level in settings.items() if name not in found}
    kept: dict[str, str] = {}
    for name in [*found, *([] if found else list(settings)[-1:])]:
        tried = {**good, name: settings[name]}
        try:
            with open_journal() as journal, journal.scope():
                wrong = _other_than_asked(engine, installation, tried, journal)
        except (ServerFailed, DriverFailed) as failed:
            wrong = {name: f"the server does not start with it beside the others ({failed.message})"}
        if name in wrong:
            kept[name] = found.get(name, wrong[name])
        else:
            good = tried
    return kept


def defaults_here(engine: Engine, installation: Installation, names: Collection[str]) -> dict[str, Level]:
    """What a server has for these settings where nobody sets them, as a study writes it: its own word for the
    default, or else what it runs with. Starts one on empty data in Dyno's cache. Those that it does not tell
    are left out. Raises ServerFailed where it does not start."""
    with open_journal() as journal, journal.scope(), _started(engine, installation, {}, journal) as ask:
        read = engine.settings.read(ask, frozenset(names))
        asked = engine.compared
        rows = ask(asked.defaults) if asked is not None else []
    found: dict[str, Level] = {name: reading.value for name, reading in read.items()}
    for name, value in rows:
        if asked is not None and name in found and value is not None:
            found[str(name)] = asked.level(answer_text(value))
    return found


def _other_than_asked(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], journal: Journal
) -> dict[str, str]:
    with _started(engine, installation, settings, journal) as ask:
        read = engine.settings.read(ask, frozenset(settings))
    return {
        one: f"the server then has {level_shown(read[one].value)}"
        if one in read
        else "the server does not tell it"
        for one, level in settings.items()
        if one not in read or not engine.settings.same(one, level, read[one].value)
    }


@contextmanager
def _started(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], journal: Journal
) -> Iterator[Ask]:
    """A server with these settings on empty data, to be asked; it is killed at the end."""
    name = f"defaults-{os.getpid()}"
    folder, runtime = paths.cache() / "trials" / name, paths.runtime() / name
    for path in (folder, runtime):
        journal.note_tree(path)
        path.mkdir(parents=True)
    creation = {one: settings[one] for one in settings.keys() & engine.settings.CREATION}
    engine.life.initialise(installation, folder / "data", creation)
    server = engine.life.start(installation, folder / "data", runtime, settings, Launch())
    journal.note_processes(server.process_ids)
    try:
        launch = Launch().confined_to(*server.driver_folders)
        with LoadProcess(server.driver_environment, launch) as load:
            yield lambda sql: load.query(server.url, sql)
    finally:
        server.kill()


SPARE_BYTES = 256 << 20
FOUND = "examined.json"
KIND = "statements"
LOGGED_S = 60.0
"""A load that is logged ends then, however few its transactions were."""
Place = Callable[[Setup, Bench, Path], None]
"""Puts a copy of the data that a study brings at a path."""


@dataclass(frozen=True)
class AskedStatements:
    """Statements that are put before a server: those of the study's workload with these options, which are
    `own_sql`. `settings` are the engine's, by their own names. `digests` are of the data that the study
    brings, in the order in which they are loaded. The user lets the server write to what is `writable`."""

    study: Study
    engine: Engine
    installation: Installation
    settings: Mapping[str, Level]
    options: Mapping[str, Level]
    own_sql: str
    digests: tuple[str, ...] = ()
    writable: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """Of all that the answer depends on."""
        asked: dict[str, object] = {
            "dyno": __version__,
            "engine": self.engine.name,
            "installation": self.installation.digest,
            "settings": dict(self.settings),
            "opening": self.study.workload.opening.model_dump(),
            "own_sql": self.own_sql,
        }
        if (data := self.study.data) is not None:
            asked["data"] = [self.digests, data.database, data.setup]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def job(self) -> Job:
        """What the driver is asked, but for the server's URL."""
        workload = self.study.workload
        return Job(
            workload=workload.name,
            options=dict(self.options),
            opening=workload.opening,
            folder=str(self.study.folder),
        )


def kept(asked: AskedStatements) -> Examined | None:
    """What a server said to the same statements before; None where nobody asked."""
    found = cache.shelf(KIND).take(asked.key)
    return Examined.model_validate_json((found / FOUND).read_text()) if found else None


def examined(asked: AskedStatements, place: Place, tell: Tell = silently) -> Examined:
    """What a server says to the statements. Starts one where that is not kept, and removes it with its copy
    of the data, which `place` puts there. Pristine data that had to be made of what the study brings stay,
    and the run clones them.

    Raises ServerFailed where it does not start with the baseline's settings, and UserError where the data
    cannot be had.
    """
    with open_journal() as journal:
        folder = cache.shelf(KIND).once(
            asked.key,
            lambda making: _make(making, asked, place, journal, tell),
            tell,
            note=journal.note_tree,
        )
    return Examined.model_validate_json((folder / FOUND).read_text())


def _make(
    making: Path, asked: AskedStatements, place: Place, journal: Journal, tell: Tell
) -> tuple[str, str]:
    with journal.scope():
        try:
            if asked.study.data is not None:
                place(*_trial_of(asked, journal, tell), making / "data")
        except DriverFailed as refused:
            found = _first(refused)
        else:
            with _server(making, asked, journal) as (_, load, job):
                found = _said(load, job, has_tables=asked.study.data is not None)
    (making / FOUND).write_text(found.model_dump_json(indent=2) + "\n")
    return f"what {asked.engine.title} said to {found.asked} statements", asked.installation.origin


LOG = "statements.log"


def log_on_copy(asked: AskedStatements, transactions: int, log: Path, place: Place, tell: Tell) -> None:
    """Has a server of the baseline, on a copy of the data that the study brings, carry out so many
    transactions of one client, and puts at `log` what it wrote of their statements. `place` puts the copy.

    Raises ServerFailed, DriverFailed or UserError where that cannot be.
    """
    settings = {**asked.settings, **asked.engine.settings.LOGGED}
    with open_journal() as journal, journal.scope():
        folder = paths.cache() / "trials" / f"copy-{os.getpid()}"
        journal.note_tree(folder)
        folder.mkdir(parents=True)
        place(*_trial_of(asked, journal, tell), folder / "data")
        with _server(folder, replace(asked, settings=settings), journal) as (server, load, job):
            load.run(job.but(clients=1, operations=transactions, duration_s=LOGGED_S))
            own = next((folder / "data").rglob(LOG), None)
            told = server.log_path if isinstance(server, ServerProcess) else log
            shutil.copyfile(own or told, log)


def _said(load: LoadProcess, job: Job, has_tables: bool) -> Examined:
    """The tables are made first, unless they came with the data."""
    if not has_tables:
        try:
            load.create(job)
        except DriverFailed as refused:
            return _first(refused)
    return load.examine(job)


def _first(refused: DriverFailed) -> Examined:
    """What is refused while the tables are made is told alone, because all else would follow from it."""
    if refused.kind not in ("server", "user"):
        raise refused
    hint = refused.hint or "mend the statement"
    return Examined(asked=1, refused=(Flaw(message=refused.message, hint=hint),))


def _trial_of(asked: AskedStatements, journal: Journal, tell: Tell) -> tuple[Setup, Bench]:
    """What a trial of the baseline would find its data by."""
    study = asked.study
    run = ComparisonRun(
        run=f"{KIND}-{os.getpid()}",
        study_path=study.path,
        study_text=study.text,
        study_digest=study.digest,
        seed=0,
        blocks=1,
        created_unix_s=time.time(),
        dyno_version=__version__,
        host=Host(),
    )
    # No layer is asked: only what is fixed when data are made shapes them.
    bench = Bench(study, run, asked.engine, asked.installation, {}, journal, LoadProcess, 1, tell=tell)
    setup = Setup(asked.engine, asked.installation, paths.cache() / "trials" / run.run, journal, asked.job)
    setup.settings |= asked.settings
    setup.launch.writable = asked.writable
    return setup, bench


@contextmanager
def _server(
    folder: Path, asked: AskedStatements, journal: Journal
) -> Iterator[tuple[Server, LoadProcess, Job]]:
    """A server of the baseline on data below a folder, how it is asked, and what with. It ends with all that
    it has made when the scope of the journal does."""
    life, installation = asked.engine.life, asked.installation
    creation = {name: asked.settings[name] for name in asked.settings.keys() & asked.engine.settings.CREATION}
    runtime = paths.runtime() / f"statements-{os.getpid()}"
    for path in (folder / "data", runtime):
        journal.note_tree(path)
    runtime.mkdir()
    if asked.study.data is None:
        require_disk(folder, SPARE_BYTES, "an empty copy of the schema")
        life.initialise(installation, folder / "data", creation)
    launch = Launch(writable=asked.writable)
    server = life.start(installation, folder / "data", runtime, asked.settings, launch)
    with ExitStack() as undo:
        # Its data are thrown away: a clean end would only take time.
        undo.callback(server.kill)
        journal.note_processes(server.process_ids)
        load = undo.enter_context(
            LoadProcess(server.driver_environment, launch.confined_to(*server.driver_folders))
        )
        yield server, load, asked.job.but(url=server.url)
