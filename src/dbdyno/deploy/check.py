"""A running server held against a recipe: each level by the proof that a trial asks of it.

The layers look at a server that Dyno did not start, for their proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbdyno.deploy.deployment import DeployedBuild, Deployment, ProductionChange
from dbdyno.deploy.made import production_of
from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.engine import Ask, Engine
from dbdyno.engines.facts import Production
from dbdyno.engines.runtime import FoundServer, process_at
from dbdyno.errors import Blocked, DriverFailed, UserError
from dbdyno.frozen import Frozen, Level, layer_and_knob, level_text
from dbdyno.host import cgroups, fingerprint, process
from dbdyno.host.journal import open_journal
from dbdyno.host.kernel_files import UnreadableFile
from dbdyno.host.launch import Launch
from dbdyno.host.process import family
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import LAYERS, in_production
from dbdyno.layers.setup import PartPlace, Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source.toolchain import recorded
from dbdyno.records.record import Evidence
from dbdyno.study.designs import of_build


@dataclass
class FoundSetup(Setup):
    """What is known of how that server was set up: the recipe's settings, and where its data lie."""

    folder: Path | None = None

    @property
    def data(self) -> Path:
        return self.folder if self.folder is not None else super().data


@dataclass(frozen=True)
class CheckedServer(Running):
    """That server. An engine in the process of its application is not in the load process."""

    @property
    def process_ids(self) -> tuple[int, ...]:
        return self.server.process_ids

    @property
    def is_here(self) -> bool:
        """Whether it runs on this host."""
        return process.is_here(urlsplit(self.server.url).hostname or "")

    @property
    def knows_data(self) -> bool:
        """Whether the folder of its data is on this host."""
        return isinstance(self.setup, FoundSetup) and self.setup.folder is not None


@contextmanager
def found_server(
    url: str, process_id: int | None, engine: Engine, production: Production, settings: Mapping[str, Level]
) -> Iterator[CheckedServer]:
    """The server at a URL. Raises DriverFailed where it does not answer, and UserError for a URL of another
    engine, for a file that is not there, and for a process that is not there."""
    _require_fitting(url, engine, production)
    if process_id is not None and not family(process_id):
        raise UserError(f"there is no process {process_id}", "give the number of the server's process")
    with open_journal() as journal, LoadProcess({}, Launch()) as load:

        def ask(sql: str) -> list[list[str | float | None]]:
            return load.query(url, sql)

        version = _told(ask, production.version_sql)
        server = FoundServer(url, version, process_id or process_at(url, production))
        setup = FoundSetup(
            engine=engine,
            installation=_installation(engine, version),
            scratch=Path("/nonexistent"),
            journal=journal,
            job=Job(url=url, workload=""),
            settings=dict(settings),
            launch=Launch(cgroups=_groups(server.process_id)),
            folder=_folder(ask, production, url),
        )
        yield CheckedServer(setup, server, load)


def _require_fitting(url: str, engine: Engine, production: Production) -> None:
    target = urlsplit(url)
    path = unquote(target.path)
    if target.scheme and target.scheme not in production.protocols:
        raise UserError(
            f"the recipe is for {engine.title}, and the URL leads to {target.scheme}",
            f"give a URL that begins with {production.protocols[0]}:",
        )
    # SQLite would make an empty file without a word.
    if target.scheme and is_file(url) and not Path(path).is_file():
        raise UserError(f"there is no database {path}", "correct the path")


def is_file(url: str) -> bool:
    """Whether a URL leads to a database file, which the asking process itself opens."""
    return not urlsplit(url).hostname


def _told(ask: Ask, sql: str) -> str:
    return str(ask(sql)[0][0])


def _folder(ask: Ask, production: Production, url: str) -> Path | None:
    """Where the data lie, if that is on this host, and if the server tells it to this account."""
    if not process.is_here(urlsplit(url).hostname or ""):
        return None
    with suppress(DriverFailed):
        path = Path(_told(ask, production.data_sql))
        return path if path.exists() else None
    return None


def _installation(engine: Engine, version: str) -> Installation:
    return Installation(
        engine=engine.name,
        version=version,
        origin="a server that runs already",
        prefix=Path("/"),
        command=(),
        digest="",
    )


def _groups(process_id: int | None) -> tuple[Path, ...]:
    """The server's own control group, which a unit of systemd has made."""
    return cgroups.groups_of(process_id, "cpu")[:1] if process_id is not None else ()


VERSION, BUILD = "version", "build"
OF_THE_HOST = frozenset({"cpu.smt", "cpu.governor", "cpu.boost"})
"""Factors whose levels the host shows without the server."""
OF_PROCESSES = frozenset({"memory", "cpu"})
"""Layers of all other levels that the server's processes show."""
OF_DATA = frozenset({"storage"})
"""Those whose levels the folder of the data shows."""
ELSEWHERE = "the server is on another host: run it there"
NO_PROCESS = "the server's process is not found: run it as root, or name it by --pid"
NO_DATA = "the folder of the server's data is not found: run it as root"
OF_CONNECTIONS = "the application sets it on each of its connections, which nobody else sees"


class State(StrEnum):
    """Whether a level of a recipe is in effect on a server."""

    IN_EFFECT = "in effect"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class LevelFinding(Frozen):
    """What the server shows of one level: what the recipe has, what is there, and why that is not known."""

    factor: str
    wanted: str
    found: str = ""
    state: State
    reason: str = ""


class Checked(Frozen):
    """A server beside a recipe. `conditions` are levels that variant and baseline shared: where they differ,
    the gain may be another."""

    run: str
    variant: str
    version: str
    findings: tuple[LevelFinding, ...]
    conditions: tuple[LevelFinding, ...] = ()

    @property
    def differing(self) -> tuple[LevelFinding, ...]:
        return tuple(finding for finding in self.findings if finding.state is State.DIFFERS)


def checked(deployment: Deployment, engine: Engine, url: str, process_id: int | None) -> Checked:
    """The server at a URL held against a recipe. Raises DriverFailed where it does not answer."""
    levels = {change.factor: change.level for change in (*deployment.changes, *deployment.held)}
    settings = by_layer(levels).get("config", {})
    with found_server(url, process_id, engine, production_of(engine), settings) as found:
        conditions = () if deployment.whole else deployment.held
        return Checked(
            run=deployment.run,
            variant=deployment.variant,
            version=found.server.version,
            findings=(
                _version(deployment, found),
                *_findings(deployment.deployed, found),
                *_build(deployment.build, found),
            ),
            conditions=tuple(_findings(conditions, found)),
        )


def _version(deployment: Deployment, found: CheckedServer) -> LevelFinding:
    """Another release may not know a setting, or mean something else by it."""
    production, version = production_of(found.setup.engine), found.server.version
    same = production.release(deployment.version) == production.release(version)
    return LevelFinding(
        factor=VERSION,
        wanted=production.release(deployment.version),
        found=version,
        state=State.IN_EFFECT if same else State.DIFFERS,
        reason="" if same else "the recipe was measured on another release: measure again on this one",
    )


def _findings(changes: Iterable[ProductionChange], found: CheckedServer) -> Iterator[LevelFinding]:
    for change in changes:
        if not of_build(change.factor) and in_production(change.factor):
            yield _finding(change, found)


def _finding(change: ProductionChange, found: CheckedServer) -> LevelFinding:
    layer, knob = layer_and_knob(change.factor)
    wanted = level_text(change.level)
    if why := _unseen(change.factor, found):
        return LevelFinding(factor=change.factor, wanted=wanted, state=State.UNKNOWN, reason=why)
    try:
        [evidence] = LAYERS[layer].prove({knob: change.level}, found)
    except OSError as refused:
        reason = f"cannot read {refused.filename or 'it'}: {refused.strerror or refused}"
        return LevelFinding(factor=change.factor, wanted=wanted, state=State.UNKNOWN, reason=reason)
    return _of_evidence(change, evidence, found)


def _unseen(factor: str, found: CheckedServer) -> str:
    """Why the level of a factor cannot be seen from here; empty where it can."""
    layer = factor.partition(".")[0]
    if layer not in OF_PROCESSES | OF_DATA:
        return ""
    if not found.is_here:
        return ELSEWHERE
    if layer in OF_PROCESSES and factor not in OF_THE_HOST and not found.process_ids:
        return NO_PROCESS
    return NO_DATA if layer in OF_DATA and not found.knows_data else ""


def _of_evidence(change: ProductionChange, evidence: Evidence, found: CheckedServer) -> LevelFinding:
    value = evidence.effective.value if evidence.effective else ""
    state = State.IN_EFFECT if evidence.in_effect else State.DIFFERS
    reason = evidence.reason
    if state is State.DIFFERS and evidence.effective is None:
        state = State.UNKNOWN
    elif state is State.DIFFERS and _of_a_connection(change, found):
        state, value, reason = State.UNKNOWN, "", OF_CONNECTIONS
    return LevelFinding(
        factor=change.factor, wanted=level_text(change.level), found=value, state=state, reason=reason
    )


def _of_a_connection(change: ProductionChange, found: CheckedServer) -> bool:
    """Whether a setting is one of who opens the database, and Dyno opened it by itself."""
    is_setting = any(part.place is PartPlace.SETTING for part in change.parts)
    return found.setup.engine.embedded and is_file(found.server.url) and is_setting


def _build(build: DeployedBuild | None, found: CheckedServer) -> Iterator[LevelFinding]:
    """Whether a process of the server has mapped the program, or the library, that was measured."""
    if build is None:
        return
    ids = _build_ids(found.process_ids)
    if not found.process_ids:
        state, reason = State.UNKNOWN, NO_PROCESS if found.is_here else ELSEWHERE
    elif not build.build_id or not ids:
        state, reason = State.UNKNOWN, "no build id can be read: run it as root, with binutils installed"
    elif build.build_id in ids:
        state, reason = State.IN_EFFECT, ""
    else:
        state, reason = State.DIFFERS, "the server runs another build"
    yield LevelFinding(
        factor=BUILD,
        wanted=build.build_id or build.key,
        found=build.build_id if state is State.IN_EFFECT else "",
        state=state,
        reason=reason,
    )


def _build_ids(process_ids: Iterable[int]) -> frozenset[str]:
    """Of all programs and libraries that processes hold, as far as this user can read them."""
    files: set[Path] = set()
    for process_id in process_ids:
        with suppress(UnreadableFile):
            files |= fingerprint.mapped(process_id)
    with suppress(Blocked):
        return frozenset(recorded(file).build_id for file in files if _is_code(file)) - {""}
    return frozenset()


def _is_code(file: Path) -> bool:
    """Whether a mapped file is a program or a library. One that cannot be read is none."""
    try:
        with file.open("rb") as opened:
            return opened.read(4) == b"\x7fELF"
    except OSError:
        return False
