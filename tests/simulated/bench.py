"""The engine, the driver, the observer and the host of a simulated run: models without a process."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.driver.job import Job
from dbdyno.driver.load import Explained, Invariant, Prepared, StatementsAnswered
from dbdyno.driver.tally import Acknowledged, Slice, Tally
from dbdyno.engines.engine import Ask
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.layers.layer import LayerOfKnobs
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Observation, Reading
from dbdyno.trial.bench import Clock
from tests.fakes import FakeEngine, a_slice, make_tally
from tests.simulated.world import MAKING, World

UNTIL_KILLED_S = 60.0
"""A load that is to go on for so long is one in whose midst the engine is killed."""
ENTRIES = 5
"""So many transactions each round of restarts acknowledges."""
_ENTRY = struct.Struct("<QQQ")


@dataclass
class Server:
    """A server of the model: its data are real files, and it is up until it is stopped, killed or dead."""

    world: World
    data: Path
    maker: bool
    speed: int
    dead: threading.Event = field(default_factory=threading.Event)
    url: str = "simulated://server"
    version: str = "1.0"
    ready_s: float = 0.01
    process_ids: tuple[int, ...] = ()
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    driver_folders: tuple[Path, ...] = ()

    def at(self, name: str) -> str:
        """A step of this server. A server that dies is dead from there on."""
        kind = self.world.at(f"{MAKING}{name}" if self.maker else name)
        if kind == "server dies":
            self.dead.set()
        return kind

    def alive(self) -> bool:
        return not self.dead.is_set()

    def log(self) -> str:
        return ""

    def log_problems(self) -> list[str]:
        return []

    def stop(self, timeout_s: float = 30.0) -> None:
        if not self.alive():
            return
        try:
            self.at("stop")
        finally:
            # What does not end by itself is killed; after an interruption the journal would end its process.
            self.dead.set()

    def kill(self) -> None:
        if self.alive():
            self.dead.set()
            self.at("kill")


@dataclass
class SimulatedEngine(FakeEngine):
    """Settings: `speed`, which is what the load comes to, and `page`, fixed at creation."""

    world: World = field(default_factory=lambda: World(Path()))
    up: list[Server] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        self.world.at(f"{MAKING}initialise")
        data.mkdir()
        (data / "rows").write_text(f"none {settings.get('page', 1)}")

    def start(  # type: ignore[override]
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> Server:
        maker = data.parent.suffix == ".making"
        self.world.at(f"{MAKING}start" if maker else "start")
        image, page = (data / "rows").read_text().split()
        again = (runtime / "socket").exists()
        if not maker and not again:
            if not image.isdigit() or page != str(settings.get("page", 1)):
                self.world.wrong(f"{self.world.trial}: the data were not restored: {image} {page}")
            (data / "rows").write_text(f"changed {page}")
            self.world.images[self.world.trial] = int(image) if image.isdigit() else 0
        (runtime / "socket").touch()
        server = Server(self.world, data, maker, int(settings.get("speed", 1)))
        self.up.append(server)
        self.running_settings = dict(settings)
        return server

    def read(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        capped = self.world.at("read") == "capped"
        values = {name: self.running_settings.get(name, 1) for name in names}
        said = {name: "0" if capped else str(value) for name, value in values.items()}
        return {name: Reading(value=value, source=f"SHOW {name}") for name, value in said.items()}

    def status(self, ask: Ask) -> dict[str, float]:
        ask("STATUS")
        return {"uses": float(len(self.up))}

    @property
    def clock(self) -> Clock:
        """Shows the world's time. Whoever waits by it lets the server rest."""
        return Clock(unix_s=self._now_s, monotonic_s=self._now_s, sleep=self._rest)

    def _now_s(self) -> float:
        return self.world.now_s

    def _rest(self, seconds: float) -> None:
        self.world.now_s += seconds
        self.up[-1].at("rest")

    def open_load(self, environment: Mapping[str, str], launch: Launch) -> Load:
        server = self.up[-1]
        server.at("open load")
        load = Load(server)
        self.loads.append(load)
        return load


@dataclass
class Load:
    """A load process of the model. What it comes to follows from the job and the server's speed."""

    server: Server
    process_id: int = 0
    open: bool = True
    told: Acknowledged | None = None
    job: Job = field(default_factory=lambda: Job(workload="tpcb"))
    slices: list[Slice] = field(default_factory=list)
    saturated: bool = False

    @property
    def world(self) -> World:
        return self.server.world

    def at(self, name: str) -> str:
        """A step of the driver. It says no more of a server that is dead than that it does not answer."""
        if not self.open:
            self.world.wrong(f"{self.world.trial}: {name} of a load that is over")
        kind = self.server.at(name)
        if not self.server.alive():
            raise DriverFailed("the connection was lost", kind="connect")
        return kind

    def prepare(self, job: Job) -> Prepared:
        self.at("prepare")
        rows = self.server.data / "rows"
        rows.write_text(f"{job.seed} {rows.read_text().split()[1]}")
        return Prepared(rows=1, bytes=8192, duration_s=0.0, sessions=1)

    def run(self, job: Job) -> Tally:
        self._begin(job)
        if job.ledger is not None:
            self._enter(Path(job.ledger.path), job.ledger.cut)
        return self._driven(job.warmup_s + job.duration_s)

    def begin(self, job: Job) -> Tally | None:
        self._begin(job)
        if job.slices is None:
            return self._driven(job.warmup_s + job.duration_s)
        self.world.now_s += job.warmup_s
        self.told = Acknowledged(acknowledged=10)
        return None

    def _begin(self, job: Job) -> None:
        self.job, self.slices = job, []
        self.saturated = self.at("begin") == "saturated"

    def go_on(self) -> Tally | None:
        if self.job.duration_s < UNTIL_KILLED_S:
            self.at("go on")
        assert self.job.slices and self.told
        slice_s = self.job.duration_s / self.job.slices
        operations = self._operations(len(self.slices) + self.job.seed)
        self.slices.append(
            a_slice(started_unix_s=self.world.now_s, duration_s=slice_s, operations=operations)
        )
        self.world.now_s += slice_s
        self.told = Acknowledged(acknowledged=self.told.acknowledged + operations)
        return self._driven(0.0) if len(self.slices) == self.job.slices else None

    def end(self) -> Tally:
        self.at("end")
        return self._driven(0.0).but(interrupted=True)

    def _driven(self, seconds: float) -> Tally:
        if self.job.duration_s >= UNTIL_KILLED_S:
            self.server.dead.wait()
        began_s = self.world.now_s
        self.world.now_s += min(seconds, UNTIL_KILLED_S)
        operations = sum(one.operations for one in self.slices) or self._operations(self.job.seed)
        return make_tally(
            clients=self.job.clients,
            seed=self.job.seed,
            started_unix_s=began_s,
            warmup_s=self.job.warmup_s,
            duration_s=self.job.duration_s,
            operations=operations,
            throughput_per_s=operations / self.job.duration_s,
            slices=self.slices,
            saturated="thread 0 was busy" if self.saturated else None,
        )

    def _operations(self, draw: int) -> int:
        """About as many as the server's speed says; noise follows from the seed of the keys."""
        noise = random.Random(f"{draw} {self.server.speed}").uniform(0.99, 1.01)
        return round(1000 * self.server.speed * noise)

    def _enter(self, ledger: Path, cut: int) -> None:
        """Acknowledges transactions, each of which left a row."""
        told_ns = time.monotonic_ns()
        with (self.server.data / "ledger").open("a") as rows:
            for number in range(ENTRIES):
                print(cut, number, file=rows)
        ledger.write_bytes(b"".join(_ENTRY.pack(0, number, told_ns) for number in range(ENTRIES)))

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        broken = self.at("check") == "broken"
        return [Invariant(name="balances_equal", holds=not broken, detail="12, 13" if broken else "12, 12")]

    def explain(self, job: Job) -> Explained:
        return Explained(statements=(), unreached={})

    def answers(self, job: Job) -> StatementsAnswered:
        return StatementsAnswered(statements=())

    def query(self, url: str, sql: str, timeout_s: float = 0.0) -> list[list[str | float | None]]:
        self.at("query")
        table = self.server.data / "ledger"
        if sql.startswith("CREATE TABLE"):
            table.touch()
        elif "dyno_ledger" in sql and not table.exists():
            raise DriverFailed("no such table", kind="server")
        elif "WHERE cut = " in sql:
            rows = [line.split() for line in table.read_text().splitlines()]
            return [[0.0, float(entry)] for cut, entry in rows if cut == sql.rpartition(" ")[2]]
        return []

    def close(self) -> None:
        if self.open:
            self.open = False
            self.world.at("close")

    def kill(self) -> None:
        self.open = False


class SimulatedObserver:
    """Sees nothing: the load has no process."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> SimulatedObserver:
        return self

    def __exit__(self, *_: object) -> None: ...

    @contextmanager
    def looking(self, first_s: float) -> Iterator[None]:
        yield

    def observation(self, running: Running) -> Observation:
        return Observation(duration_s=running.tally.duration_s if running.tally else 0.0)


@dataclass(frozen=True)
class Change(Request):
    """A value of the host that a trial changes, and that another trial may have changed before it."""

    world: World
    value: str

    def apply(self, setup: Setup) -> None:
        place = self.world.host_value
        setup.journal.note("simulated", path=str(place), value=place.read_text())
        self.world.at("change")
        place.write_text(self.value)


class HostLayer(LayerOfKnobs):
    """The layer of the host's value. Each trial changes it twice, so that only undoing in reverse restores
    it."""

    def __init__(self, world: World) -> None:
        super().__init__("host")
        self._world = world

    def ask(self, levels: Mapping[str, Level], engine: Any) -> tuple[Request, ...]:
        return tuple(Change(self._world, f"{level} {half}") for level in levels.values() for half in (1, 2))

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        now = self._world.host_value.read_text()
        return [
            Evidence(factor=f"host.{name}", requested=str(level), in_effect=now == f"{level} 2", reason=now)
            for name, level in levels.items()
        ]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        return evidence
