"""An engine, a load and a progress for tests of the spine: real processes and files, no database."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.driver.job import Job, Open
from dbdyno.driver.load import Explained, Invariant, Prepared, StatementsAnswered
from dbdyno.driver.tally import Acknowledged, Latency, Slice, Tally, TransactionType
from dbdyno.engines.engine import Ask, Engine, HugePageSettings, Proposal, Refused, Risk, Searchable
from dbdyno.engines.facts import ConfigurationLine, SettingNeed
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.host import process
from dbdyno.host.fingerprint import Host
from dbdyno.host.journal import Journal
from dbdyno.host.launch import Launch
from dbdyno.kinds.registry import ask_for
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.installation import Installation, Offer
from dbdyno.records.record import Loss, Reading, Record
from dbdyno.records.run import ComparisonRun, Run
from dbdyno.records.store import Store
from dbdyno.run import Progress, RunSide, run_study
from dbdyno.study import Factor, Study, Workload
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import Phase, Trial, Variant
from dbdyno.trial.bench import Bench

ROWS = b"x" * 8192
"""The pristine data."""


class Clock:
    """Seconds that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class FakeServer:
    """A `sleep` for a server: a real process with a real file where its socket would be."""

    child: subprocess.Popen[bytes]
    problems: list[str] = field(default_factory=list)
    slow_to_stop: bool = False
    url: str = "fake://server"
    version: str = "1.0"
    ready_s: float = 0.01
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    driver_folders: tuple[Path, ...] = ()

    @property
    def process_ids(self) -> tuple[int, ...]:
        return (self.child.pid,)

    def alive(self) -> bool:
        return self.child.poll() is None

    def log(self) -> str:
        return "\n".join(self.problems)

    def log_problems(self) -> list[str]:
        return self.problems

    def stop(self, timeout_s: float = 30.0) -> None:
        already_over = not self.alive()
        self.kill()
        if self.slow_to_stop and not already_over:
            raise ServerFailed("the server did not stop within 30 s and was killed")

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


@dataclass
class FakeEngine:
    """Settings: `speed`, of which the server takes at most `cap`, and `page`, fixed at creation."""

    embedded: bool = False
    CREATION: frozenset[str] = frozenset({"page"})
    LOADING: Mapping[str, Level] = field(default_factory=dict)
    LOGGED: Mapping[str, Level] = field(default_factory=dict)
    DURABLE: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    RISKS: Mapping[str, Risk] = field(default_factory=dict)
    LOSING: Mapping[str, Level] = field(default_factory=lambda: {"speed": 0})
    NEEDS: Sequence[SettingNeed] = ()
    CONFINED: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    CACHE_MISSES: str = "misses"
    idle: str = ""
    cap: int = 100
    fails_to_start_with_speed: int | None = None
    slow_to_stop: bool = False
    initialised: list[dict[str, Level]] = field(default_factory=list)
    servers: list[FakeServer] = field(default_factory=list)
    running_settings: dict[str, Level] = field(default_factory=dict)

    @property
    def engine(self) -> Engine:
        """The engine, of which this object is every part."""
        return Engine("fake", "Fake", self.embedded, self, self, self, self)

    def locate(self, reference: Reference) -> Installation:
        return INSTALLATION

    def offers(self) -> list[Offer]:
        return []

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        return INSTALLATION

    def proposals(self, memory_bytes: int) -> tuple[Proposal, ...]:
        return ()

    def searchable(self, memory_bytes: int) -> tuple[Searchable, ...]:
        return ()

    def names(self, installation: Installation) -> frozenset[str]:
        return frozenset({"speed", "page"})

    def configured(self, text: str, installation: Installation | None) -> list[ConfigurationLine]:
        return []

    def refused(self, installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
        return {}

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        self.initialised.append(dict(settings))
        data.mkdir()
        (data / "rows").write_bytes(ROWS)

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> FakeServer:
        if settings.get("speed") == self.fails_to_start_with_speed is not None:
            raise ServerFailed("the server did not start: speed refused", log="[ERROR] speed refused")
        assert (data / "rows").read_bytes() == ROWS, "the data were not restored"
        is_trial = bool(settings.keys() - self.CREATION)
        if is_trial:
            # What a trial does to its rows must not last; the pristine data are made without such settings.
            (data / "rows").write_bytes(b"changed by this trial")
        (runtime / "socket").touch()
        with (runtime / "log").open("wb") as output:
            child = process.start(["sleep", "600"], environment={"PATH": "/usr/bin:/bin"}, output=output)
        server = FakeServer(child, slow_to_stop=self.slow_to_stop and is_trial)
        self.servers.append(server)
        self.running_settings = dict(settings)
        return server

    def permits(self, settings: Mapping[str, Level]) -> Loss:
        return Loss.NOTHING if settings.get("speed", 1) else Loss.COMMITS

    def page_bytes(self, settings: Mapping[str, Level]) -> int:
        return 4096

    def memory_bytes(self, settings: Mapping[str, Level]) -> int:
        return 1 << 20

    def huge_pages(self, settings: Mapping[str, Level], page_bytes: int) -> HugePageSettings | None:
        return None

    def read(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        values = {name: self.running_settings.get(name, 1) for name in names}
        if "speed" in values:
            values["speed"] = min(int(values["speed"]), self.cap)
        return {name: Reading(value=str(value), source=f"SHOW {name}") for name, value in values.items()}

    def same(self, name: str, requested: Level, effective: str) -> bool:
        return str(requested) == effective

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        return Reading(value=str(after["uses"] - before["uses"]), source="uses") if name == "speed" else None

    def unmoved(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
        return self.idle

    def sampled(self, ask: Ask) -> dict[str, float]:
        return {}

    def waits(self, ask: Ask) -> dict[str, float]:
        return {}

    def held(self, ask: Ask) -> dict[str, float]:
        return {"heap_bytes": 4096.0}

    def status(self, ask: Ask) -> dict[str, float]:
        return {"uses": float(len(self.servers))}

    def view(self, gained: Mapping[str, float]) -> dict[str, float]:
        return {"uses": gained.get("uses", 0.0)}


@dataclass
class FakeLoad:
    """Drives nothing: throughput is what the setting `speed` says."""

    engine: FakeEngine
    invariant_holds: bool = True
    on_run: Callable[[FakeLoad], None] = lambda load: None
    process_id: int = 0
    closed: bool = False
    job: Job = field(default_factory=lambda: Job(workload="tpcb"))
    speed: int = field(init=False)
    told: Acknowledged | None = None
    began: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.speed = int(self.engine.running_settings.get("speed", 1))

    def prepare(self, job: Job) -> Prepared:
        return Prepared(rows=1, bytes=8192, duration_s=0.0, sessions=1)

    def run(self, job: Job) -> Tally:
        self.on_run(self)
        slices = [
            a_slice(started_unix_s=one, duration_s=1.0 / len(self.began), operations=self.speed)
            for one in self.began
        ]
        if isinstance(job.load, Open):
            return self.offered(job.load.rate_per_s, job)
        return make_tally(operations=self.speed * 1000, clients=job.clients, slices=slices)

    def offered(self, rate_per_s: float, job: Job) -> Tally:
        """In open loop it keeps up with four fifths of its speed."""
        kept_per_s = min(rate_per_s, self.speed * 800.0)
        open_loop = {
            "offered_per_s": rate_per_s,
            "achieved_per_s": kept_per_s,
            "backlog_max": 0,
            "backlog_end": 0,
            "kept": kept_per_s == rate_per_s,
        }
        return make_tally(
            operations=max(1, round(kept_per_s * job.duration_s)),
            duration_s=job.duration_s,
            clients=job.clients,
            open_loop=open_loop,
        )

    def begin(self, job: Job) -> Tally | None:
        self.job = job
        return None if job.slices else self.run(job)

    def go_on(self) -> Tally | None:
        self.began.append(time.time())
        return self.run(self.job) if len(self.began) == self.job.slices else None

    def end(self) -> Tally:
        return self.run(self.job).but(interrupted=True)

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        holds = self.invariant_holds or acknowledged is None
        return [Invariant(name="balances_equal", holds=holds, detail="12, 12")]

    def explain(self, job: Job) -> Explained:
        return Explained(statements=(), unreached={})

    def answers(self, job: Job) -> StatementsAnswered:
        return StatementsAnswered(statements=())

    def query(self, url: str, sql: str, timeout_s: float = 0.0) -> list[list[str | float | None]]:
        return []

    def close(self) -> None:
        self.closed = True

    def kill(self) -> None:
        self.closed = True


def carried_out(bench: Bench, store: Store, progress: Progress | None = None) -> list[Record]:
    """All records of the bench's study and run."""
    return run_study(RunSide(ask_for(bench.run), bench, progress or Stages()), store)


class Stages:
    """A progress that remembers every stage, and calls `at` as each begins."""

    def __init__(self, at: Callable[[Trial, str], None] = lambda trial, stage: None) -> None:
        self.seen: list[tuple[int, str]] = []
        self._at = at

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: str) -> None:
        self.seen.append((trial.index, stage))
        self._at(trial, stage)

    def trial_ended(self, record: Record) -> None: ...


INSTALLATION = Installation(
    engine="fake",
    version="1.0",
    origin="tests",
    prefix=Path("/"),
    command=("sleep",),
    digest="0" * 64,
)


def make_tally(**changes: Any) -> Tally:
    """A tally as the driver gives it, of one second that has just ended."""
    latency = {"count": 1000, "mean": 900.0, "min": 100, "p50": 800, "p90": 1500, "p95": 1800, "p99": 2500}
    tally: dict[str, Any] = {
        "workload": "tpcb",
        "protocol": "fake",
        "server_version": "1.0",
        "backend": "epoll",
        "gather": "off",
        "gathered_share": 0.0,
        "sched_batch": False,
        "gather_us_max": 0,
        "threads": 1,
        "clients": 1,
        "seed": 1,
        "started_unix_s": time.time() - 1.0,
        "warmup_s": 0.0,
        "duration_s": 1.0,
        "operations": 1000,
        "throughput_per_s": 1000.0,
        "rows_read": 0,
        "bytes_received": 0,
        "bytes_sent": 0,
        "errors": {},
        "error_examples": {},
        "retries": 0,
        "rollbacks": 0,
        "acknowledged": 1000,
        "unknown": 0,
        "clients_lost": 0,
        "unfinished": 0,
        "by_client": None,
        "start": {},
        "latency_us": {**latency, "p99_9": 3000, "p99_99": 3500, "max": 4000, "sum": 900000},
        "by_transaction": {},
        "by_statement": {},
        "driver_cpu_us_per_op": {"user": 3.0, "system": 1.0},
        "driver_cpu_s": {"user": 0.003, "system": 0.001},
        "driver_busy_share": [0.004],
        "driver_run_wait_share": [0.0],
        "engine_cpu_s": None,
        "system_calls_per_op": None,
        "saturated": None,
        "open_loop": None,
        "series": [],
        "fine_series": None,
        "slices": [],
        "failed_latency_us": None,
        "failed_histogram": "",
        "recall": None,
        "phases": [],
        "replay": None,
        "histogram": "",
        "histogram_unit": "ns",
        "interrupted": False,
    }
    merged = {**tally, **changes}
    if "throughput_per_s" not in changes:
        merged["throughput_per_s"] = merged["operations"] / (merged["duration_s"] or 1.0)
    return Tally.model_validate(merged)


def a_slice(started_unix_s: float, duration_s: float, operations: int) -> Slice:
    """A slice at whose borders no transaction was under way."""
    per_s = operations / duration_s
    return Slice(
        started_unix_s=started_unix_s, duration_s=duration_s, operations=operations, throughput_per_s=per_s
    )


def a_kind(operations: int, duration_s: float, latency_us: Latency) -> TransactionType:
    """A kind of transaction that had none under way at the borders of the measured part."""
    return TransactionType(
        operations=operations,
        throughput_per_s=operations / duration_s,
        acknowledged=operations,
        latency_us=latency_us,
    )


def no_latency() -> Latency:
    """Where no transaction was done."""
    return Latency.model_validate({**dict.fromkeys(Latency.model_fields), "count": 0, "sum": 0.0})


def make_study(*levels: Level, factor: str = "config.speed", blocks: int = 2, **changes: Any) -> Study:
    """A study of the fake engine that compares the levels of one factor."""
    study = Study(
        title="Which speed?",
        engine=Reference("fake"),
        blocks=blocks,
        workload=Workload(name="tpcb", warmup_s=0.0, duration_s=1.0),
        factors=(Factor(name=factor, levels=levels or (1, 2)),),
        digest="d" * 64,
    )
    return study.but(**changes)


def make_run(study: Study, name: str = "first") -> ComparisonRun:
    return ComparisonRun(
        run=name,
        study_path="study.toml",
        study_text=study.text,
        study_digest=study.digest,
        seed=1,
        mirrored=True,
        blocks=study.blocks,
        created_unix_s=time.time(),
        dyno_version="0",
        host=Host(name="here"),
    )


def make_bench(
    study: Study, run: Run, journal: Journal, engine: FakeEngine | None = None, **load: Any
) -> Bench:
    """A bench with the fake engine, and a fake load made with `load` for each trial."""
    engine = engine or FakeEngine()
    return Bench(
        study=study,
        run=run,
        engine=engine.engine,
        installation=INSTALLATION,
        layers=LAYERS,
        journal=journal,
        open_load=lambda environment, launch: FakeLoad(engine, **load),
        cores=2,
    )


def make_trial(variant: str, *phases: Phase, block: int = 0) -> Trial:
    """A trial of a variant without levels."""
    return Trial(index=0, block=block, position=0, variant=Variant(name=variant, levels={}), phases=phases)
