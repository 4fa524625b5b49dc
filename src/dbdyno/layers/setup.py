"""One variant on its way to a running server: what its levels ask for of the host and of a build, how that is
applied, the parts by which production takes them, and the server once it answers."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dbdyno.driver.job import ANSWER_TIMEOUT_S
from dbdyno.driver.load import LoadOfNodes
from dbdyno.driver.tally import Acknowledged
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Frozen, Level
from dbdyno.host import cgroups
from dbdyno.host.launch import Launch
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.obtain.source.build import BuildSpecification

if TYPE_CHECKING:
    from dbdyno.applications.front import Front, FrontWish
    from dbdyno.driver.job import Job
    from dbdyno.driver.load import LoadDriver
    from dbdyno.driver.remote.load import RemoteLoad
    from dbdyno.driver.tally import Tally
    from dbdyno.engines.built import Built
    from dbdyno.engines.engine import Engine, Server
    from dbdyno.engines.nodes import Nodes
    from dbdyno.errors import DynoError
    from dbdyno.host.journal import Journal
    from dbdyno.host.volumes.volume import Volume, VolumeSpecification
    from dbdyno.host.writers import Allowed
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.record import Counted, Reading

RESTORED = "restored after each trial"
REMOVED = "removed after each trial"
STAYS = "not restored"
LOOP_DEVICES = "/dev/loop*"
CONTROL_GROUPS = ("/sys/fs/cgroup",)
"""Places that several changes write to."""
MORE_MEMORY = "give the server more memory, or smaller caches and fewer clients"


class PartPlace(StrEnum):
    """Where production takes a part from."""

    SETTING = "setting"
    ENVIRONMENT = "environment"
    UNIT = "unit"
    KERNEL = "kernel"
    QUEUE = "queue"
    MOUNT = "mount"
    BY_HAND = "by hand"


class Part(Frozen):
    """One thing that puts a level of a factor into production.

    `name` is a setting's, a variable's of the server's environment, a directive's of its systemd unit, or the
    path of a value under /proc/sys or /sys, in which `*` stands for all. In the queue of the device that
    holds the data, it is the file. The options of a mount have none. What a person must do has a title as its
    name, and the command, or the deed, as its value.
    """

    factor: str
    place: PartPlace
    name: str
    value: Level


@dataclass(frozen=True)
class RequestedChange:
    """One thing that is done to the host beyond processes and folders of Dyno's own.

    `after` says what becomes of it, and `places` where it writes: paths, in which `*` stands for anything.
    """

    factor: str
    does: str
    after: str = RESTORED
    places: tuple[str, ...] = ()


class Before(Enum):
    """What is not there yet when a request is applied."""

    ENGINE = "engine"
    DATA = "data"
    START = "start"


class Request(ABC):
    """One thing that a level asks for, as data: it is made without looking at the host, then applied."""

    before: ClassVar[Before] = Before.DATA

    def change(self) -> RequestedChange | None:
        """What applying it does to the host; None where it changes Dyno's own processes and folders alone."""
        return None

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        """What puts it into production, where the server has these settings; none where nothing does."""
        return ()

    def require_here(self) -> None:
        """Raises Blocked where this host lacks a tool, a library or a device that it takes, as far as that
        shows without a change of anything."""
        return

    def put_on(self, running: Running) -> Mapping[str, Level]:
        """What it does once the server answers, and what a record is to tell of that. Raises Blocked where
        the server refuses it."""
        return {}

    @abstractmethod
    def apply(self, setup: Setup) -> None:
        """Adds it to the setup; what touches the host goes through the setup's journal. Raises Blocked."""


@dataclass
class Setup:
    """One variant on its way to a running server; what its levels asked for is applied to it.

    `settings` go to the engine, `launch` to its process, `load_launch` to the load process, `job` to the
    driver (see the driver's `Job`). `build` asks for an engine built from source (None: the installation as
    it is), `built` is the one that is there; `data_maker` is the installation that makes the pristine data.
    `wish` asks for a volume (None: a folder), `volume` is the one in place. A volume that is there for power
    cuts alone, all of which may be left out, is `spared` where it cannot be made; `powerless` then says why
    no power is cut. `scratch` is this trial's own folder, removed when the trial ends; changes to the host go
    through `journal`. `beside` are processes of Dyno's own, by the factor that asks for them, which end with
    the journal. `front` is the program that is to pass the load on. `nodes` are the servers of a cluster, of
    which the one that the load goes to is the server.
    """

    engine: Engine
    installation: Installation
    scratch: Path
    journal: Journal
    job: Job
    asked: tuple[Request, ...] = ()
    settings: dict[str, Level] = field(default_factory=dict)
    launch: Launch = field(default_factory=Launch)
    load_launch: Launch = field(default_factory=Launch)
    build: BuildSpecification | None = None
    built: Built | None = None
    wish: VolumeSpecification | None = None
    volume: Volume | None = None
    spared: bool = False
    powerless: DynoError | None = None
    page_cache_emptied: bool = False
    allowed: Allowed = NOTHING_ALLOWED
    beside: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)
    nodes: Nodes | None = None
    front: FrontWish | None = None

    def __post_init__(self) -> None:
        self.data_maker = self.installation

    @property
    def data(self) -> Path:
        """Where the server's data directory is, or will be."""
        if self.nodes is not None and self.nodes.placed:
            return self.nodes.first.site.data
        return self.volume.data if self.volume else self.scratch / "data"

    @property
    def own_groups(self) -> list[Path]:
        """The control groups that were made for the server."""
        return [group for group in self.launch.cgroups if group.name.startswith(cgroups.PREFIX)]

    @property
    def killed_for_memory(self) -> str:
        """That the kernel killed the server because its group has no memory left; empty where it did not."""
        for group in self.own_groups:
            if limit := cgroups.killed_for_memory(group):
                return f"the kernel killed it, because its control group has no more than {limit} of memory"
        return ""

    def launch_of_load(self, server: Server) -> Launch:
        """How the load process of this server is started. An embedded engine runs in it, so what the layers
        ask for the engine's process goes there, and it may write where the engine writes."""
        launch = self.launch if self.engine.embedded else self.load_launch
        return launch.confined_to(*server.driver_folders)

    def join_group(self, controller: str, values: Mapping[str, str], factor: str) -> Path:
        """Puts the server into a control group with these values (file name: content): into the one that it
        has, where that will do. Raises Blocked, for `factor`."""
        groups = self.launch.cgroups
        group = cgroups.shared(self.journal, controller, groups, self.scratch.name, values, factor)
        if group not in groups:
            self.launch.cgroups = (*groups, group)
        return group


def apply(setup: Setup, before: Before) -> None:
    """Applies what of the variant's requests is due now. Raises Blocked, with who refused and what would
    allow it."""
    for request in setup.asked:
        if request.before is before:
            request.apply(setup)


@dataclass(frozen=True)
class Running:
    """A server that answers, and the means to look at it: what a layer reads its proof from.

    There is no tally, and the engine's counters around the load are empty, until the load is over; there is
    none either after a rest. `told` is what clients were told in the loads before. `counted` is what was
    counted in place of a speed. `logged` are the doubtful lines of the server's log that the phases before
    have told. `fastest_per_s` is the speed of the fastest load before an act on the server, in acknowledged
    transactions. `lagged` is how far a cluster's nodes were behind right after the load, and what it added to
    their counts. `front` is the application that takes the load, or the program that passes it on, where
    there is one. `afar` is the load where it comes from another host.
    """

    setup: Setup
    server: Server
    load: LoadDriver
    tally: Tally | None = None
    told: Acknowledged = field(default_factory=Acknowledged)
    counted: Counted | None = None
    logged: tuple[str, ...] = ()
    fastest_per_s: float = 0.0
    status_before: Mapping[str, float] = field(default_factory=dict)
    status_after: Mapping[str, float] = field(default_factory=dict)
    lagged: Mapping[str, float] = field(default_factory=dict)
    front: Front | None = None
    afar: RemoteLoad | None = None

    @property
    def data_job(self) -> Job:
        """The job as it concerns the data, which are the server's whoever takes the load."""
        return self.setup.job.but(url=self.server.url, answer_timeout_s=ANSWER_TIMEOUT_S)

    def ask(self, sql: str) -> list[list[str | float | None]]:
        """Runs one SQL statement on the system under test and returns its rows."""
        return self.load.query(self.server.url, sql)

    @property
    def told_so_far(self) -> Acknowledged:
        """What clients were told in all loads, the last one included."""
        return self.told if self.tally is None else self.told.plus(Acknowledged.by([self.tally]))

    @property
    def driver_ids(self) -> tuple[int, ...]:
        """The load processes."""
        load = self.load
        return load.process_ids if isinstance(load, LoadOfNodes) else (load.process_id,)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The server's processes, with those of all nodes; an embedded engine lives in the load process."""
        if self.setup.engine.embedded:
            return (self.load.process_id,)
        beside = self.setup.nodes.process_ids if self.setup.nodes else ()
        return (*self.server.process_ids, *beside)

    def readings(self, names: frozenset[str]) -> dict[str, Reading]:
        """What the live server says of settings, by name."""
        return self.setup.engine.settings.read(self.ask, names)

    def accepted_by(self, _name: str) -> str:
        """How the server was given the level of a setting."""
        return f"{self.setup.engine.title} {self.server.version} started with it"

    def log(self) -> str:
        """The server's log, and that of what stands in front of it."""
        return self.server.log() + (self.front.process.log() if self.front else "")

    def log_problems(self) -> list[str]:
        """The doubtful lines of the server's log, and of what stands in front of it."""
        of_front = self.front.process.log_problems() if self.front else []
        return [*self.server.log_problems(), *of_front]

    def lag(self) -> dict[str, float]:
        """How far a cluster's nodes are behind, now; nothing without another node, or where one is lost."""
        nodes = self.setup.nodes
        if nodes is None or nodes.count == 1:
            return {}
        with suppress(DriverFailed):
            return dict(nodes.cluster.lag(nodes.asks, nodes.first.name))
        return {}

    def status(self) -> dict[str, float]:
        """The engine's own counters, now: those of all nodes together, where all are loaded."""
        nodes = self.setup.nodes
        asks = list(nodes.asks.values()) if nodes is not None and nodes.loads_all else [self.ask]
        total: dict[str, float] = {}
        for ask in asks:
            for name, value in self.setup.engine.counters.status(ask).items():
                total[name] = total.get(name, 0.0) + value
        return total


@dataclass(frozen=True)
class Building(Request):
    """One knob of a build. All of them together make the wish for it."""

    knob: str
    level: str
    before = Before.ENGINE

    def apply(self, setup: Setup) -> None:
        setup.build = self.added_to(setup.build)

    def added_to(self, wish: BuildSpecification | None) -> BuildSpecification:
        return (wish or BuildSpecification()).but(**{self.knob: self.level})
