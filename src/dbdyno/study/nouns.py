"""What a study is made of, read and frozen: its engine, its factors and the space that they span, its
goal."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, SerializerFunctionWrapHandler, model_serializer

from dbdyno.driver.job import Arrivals, Opening
from dbdyno.frozen import (
    ENGINE_FACTOR,
    Configuration,
    Frozen,
    Level,
    absent,
    layer_and_knob,
    level_text,
    listed,
)
from dbdyno.study.files import StudyFile
from dbdyno.study.front import FRONT_KIND, NO_FRONT, FrontProgram
from dbdyno.study.phases import LoadPhase
from dbdyno.study.published import PublishedFigure
from dbdyno.study.soak import Meanwhile, Soak

SIZE_LETTERS = "KMGT"


class Promise(StrEnum):
    """What a level can give up for its speed. A search keeps all of them but those that its study allows."""

    DURABILITY = "durability"
    INTEGRITY = "integrity"
    ISOLATION = "isolation"
    SECURITY = "security"


class Condition(Frozen):
    """A factor varies only where another one, which stands before it, has one of these levels."""

    factor: str
    levels: tuple[Level, ...]

    def holds(self, levels: Mapping[str, Level]) -> bool:
        return level_text(levels[self.factor]) in {level_text(level) for level in self.levels}


class Term(Frozen):
    """So many times the amount of a factor's level; without a factor, so much."""

    times: float
    factor: str = ""

    def value(self, levels: Mapping[str, Level]) -> float:
        return self.times * (amount(levels[self.factor]) if self.factor else 1.0)


class Constraint(Frozen):
    """The sum of terms on the left is at most the sum of those on the right."""

    text: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(term.factor for term in (*self.left, *self.right) if term.factor)

    def holds(self, levels: Mapping[str, Level]) -> bool:
        return sum(term.value(levels) for term in self.left) <= sum(term.value(levels) for term in self.right)


class Search(Frozen):
    """How a study of the design `search` looks: for how long, under which constraints, which promises a level
    may give up, and below which share bad starts of the winner have to be shown to be."""

    time_s: float = 1800.0
    allow: tuple[Promise, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    bad_starts: float | None = absent(None)

    def keeps(self, levels: Mapping[str, Level]) -> bool:
        """Whether levels keep all constraints."""
        return all(one.holds(levels) for one in self.constraints)


def amount(level: Level) -> float:
    """What a level counts in a sum: its number, in bytes where it is a size. Raises ValueError for a level
    that is no amount."""
    if isinstance(level, int | float) and not isinstance(level, bool):
        return float(level)
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?) ?([A-Za-z]*)", level_text(level).strip())
    if found is None:
        raise ValueError(level_text(level))
    return float(found[1]) * (size_unit_bytes(found[2]) or 1)


def size_unit_bytes(unit: str) -> int:
    """How many bytes a unit of sizes has (`M`, `MB`, `MiB`, `kB`); 0 for another unit."""
    if not re.fullmatch(r"[kmgt](i?b)?", unit, re.IGNORECASE):
        return 0
    return int(1024 ** (1 + SIZE_LETTERS.index(unit[0].upper())))


@dataclass(frozen=True)
class Reference:
    """How a study names its engine: `mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`. A relative path counts from
    `folder`. That of a server that runs already begins with two slashes: with the engine's name before it, it
    is its URL."""

    engine: str
    version: str = ""
    path: str = ""
    folder: Annotated[str, Field(exclude=True)] = ""

    @classmethod
    def of(cls, written: str) -> Reference:
        """That of a level which the study's reader has taken, as `written` gives it."""
        name, path = written.partition(":")[::2]
        if path:
            return cls(engine=name, path=path)
        name, _, version = written.partition("@")
        return cls(engine=name, version=version)

    def within(self, folder: Path) -> Reference:
        """The same of a study in that folder, which a relative path counts from."""
        return replace(self, folder=str(folder.absolute())) if self.path.startswith(".") else self

    @property
    def place(self) -> Path:
        """Where the path leads."""
        return Path(os.path.normpath(Path(self.folder) / Path(self.path).expanduser()))

    @property
    def written(self) -> str:
        """As a study writes it."""
        if self.path:
            return f"{self.engine}:{self.path}"
        return f"{self.engine}@{self.version}" if self.version else self.engine

    @property
    def url(self) -> str:
        """That of a server that runs already, which holds no password; empty for an engine to be started."""
        return f"{self.engine}:{self.path}" if self.path.startswith("//") else ""


BASELINE = "baseline"
"""The name of the variant that every ratio divides by."""
TWIN = "baseline-twin"
"""The name of the baseline's second copy in an A/A study."""
CANDIDATE = "candidate"
"""How the names of what a search tries begin."""
OWN_CANDIDATE = "own"
"""The same of Dyno's own search, where a searcher of others is judged beside it."""
TRIALS_MAX = 10_000
"""More trials than this are a mistake in the study: they take days at the least."""
TPCC = "tpcc"
STATEMENTS = "statements"
"""The workload that sends each statement by itself."""
KEEPS_LEDGER = ("tpcb", TPCC)
"""Workloads whose transactions are known one by one afterwards."""
INSTRUCTIONS_PER_OP = "instructions_per_op"
"""The response of a study whose trials are all counted where the CPU's own counters cannot be read."""
CAPACITY = "capacity"
"""The response that is searched in each trial: the highest rate at which a promise holds."""
RATES = 12
"""How many rates a trial tries, where the study does not say."""
SLICE_S = 0.5
"""How long a slice is measured: long beside its settling, short beside the wandering of a host's speed."""


class Design(StrEnum):
    """Which combinations of levels become variants."""

    ONE_AT_A_TIME = "one-at-a-time"
    LADDER = "ladder"
    FACTORIAL = "factorial"
    FRACTIONAL = "fractional-factorial"
    LIST = "list"
    SEARCH = "search"


class Arrangement(StrEnum):
    """How the trials of a block share the host: all servers up, and the load goes round in slices; or each
    trial by itself."""

    SIDE_BY_SIDE = "side-by-side"
    ONE_AFTER_THE_OTHER = "one-after-the-other"


class Factor(Frozen):
    """What is varied. `name` is `layer.knob`, or `engine` alone; the first level is the baseline's. Levels
    that are steps of a range stand in `rising` in their order as well. A search varies a factor only where
    all of `only_if` hold.
    """

    name: str
    levels: tuple[Level, ...]
    rising: tuple[Level, ...] = absent(())
    only_if: tuple[Condition, ...] = absent(())

    @property
    def layer(self) -> str:
        return layer_and_knob(self.name)[0]

    @property
    def knob(self) -> str:
        return layer_and_knob(self.name)[1]

    @property
    def baseline(self) -> Level:
        return self.levels[0]


InOrder = Annotated[frozenset[str], PlainSerializer(sorted, return_type=list[str], when_used="json")]
"""Names that are written in their order, because a set's own order is another one in each process."""


class Workload(Frozen):
    """The load of every trial. `options` are the workload's own, as the driver lists them, with defaults.

    `run_options` are the names of those that only the run looks at, so that they do not shape the data.
    Where `clients`, `threads`, `rate_per_s`, `arrivals`, `schedule`, `think_time` or an option is a factor,
    this is its baseline. `threads` 0 lets the driver choose; without `rate_per_s` and `schedule` the loop is
    closed. `schedule` and `think_time` are as the study writes them; `pacing.py` reads them. `gather` never
    goes by the machine's idle time in a study, because variants would differ by the instrument. `opening` is
    what each connection begins with, those that make the data included. With `by_statement` the driver times
    each statement of every variant. With `plans` each trial asks the engine how it would execute them, and
    with `actual_rows` the first block's execute each read once more, so that its plan tells rows. A statement
    that takes longer than `timeout_s` is ended by the server.
    """

    name: str
    clients: int = 1
    threads: int = 0
    warmup_s: float = 5.0
    duration_s: float = 20.0
    ramp_s: float = 0.0
    rate_per_s: float | None = None
    arrivals: Arrivals = "poisson"
    schedule: str = ""
    think_time: str = ""
    gather: Literal["off", "on"] = "off"
    # These are left out where they are the default, so that a study means what it meant to earlier
    # versions.
    plans: bool = absent(True)
    actual_rows: bool = absent(False)
    by_statement: bool = absent(False)
    opening: Opening = absent(Opening())
    timeout_s: float | None = absent(None)
    options: dict[str, Level] = Field(default_factory=dict)
    run_options: InOrder = frozenset()

    @property
    def is_cold(self) -> bool:
        """Whether each of its statements is timed on an engine that was just started as well."""
        return self.name == STATEMENTS and self.options.get("cache") == "cold"

    @property
    def keeps_ledger(self) -> bool:
        """Whether each of its transactions writes, and can be looked for after a restart."""
        return self.name in KEEPS_LEDGER and not self.options.get("select_only", False)


ANSWERS = "answers"
"""The guard that statements have the answers that they have under the baseline."""
DURABLE = "durable"
"""The guard that no power cut takes an acknowledged transaction along, or damages the data."""


class Guard(Frozen):
    """A condition that a variant must keep to count: `invariants`, `durable`, `answers`, or a metric with a
    bound, absolute (`p99_ms <= 50`) or a multiple of the baseline's (`p99_ms <= 1.2x`)."""

    text: str
    metric: str
    bound: float | None = None
    relative: bool = False
    at_most: bool = True


class Interval(StrEnum):
    """How an interval is made of the blocks' log ratios. A study chooses between the first two. A sequential
    run has `PLANNED`, which holds at every look up to a number of blocks that is known beforehand, or
    `ANYTIME`, which holds at every look however many there are.
    """

    STUDENT = "student"
    SIGNED_RANK = "signed-rank"
    ANYTIME = "anytime"
    PLANNED = "planned-looks"


class Adjustment(StrEnum):
    """What a comparison is held equal in, beside the block."""

    OTHER_CPU = "other-cpu"


class Goal(Frozen):
    """What is asked of the variants. `margin` is a share: 0.02 means closer than 2 % counts as no effect.

    `confidence` is that of all intervals together, after the correction for the number of comparisons. A
    study without an `interval` has the one that its host's calibration suggests, else Student's. With
    `counted`, each variant's instructions are counted once, in a trial after the timed blocks; a study that
    leaves that open counts builds, where they can be. The response `capacity` is the highest rate at which
    all of `promise` holds, and each trial tries so many `rates` to find it.
    """

    response: str = "throughput"
    margin: float = 0.02
    confidence: float = 0.95
    interval: Interval | None = None
    guards: tuple[Guard, ...] = (Guard(text="invariants", metric="invariants"),)
    # A study that counts nothing and one that leaves it open are written alike.
    counted: bool | None = Field(default=None, exclude_if=lambda counted: not counted)
    adjust: Adjustment | None = absent(None)
    promise: tuple[Guard, ...] = absent(())
    rates: int = absent(RATES)

    def comparisons(self, candidates: int) -> int:
        """How many intervals decide verdicts: each candidate's response, and each of its bounded guards."""
        return candidates * (1 + sum(guard.bound is not None for guard in self.guards))


class RemoteDriver(Frozen):
    """The hosts that share the load, by names that `ssh` knows, and the address of this host at which they
    reach the server. The way is encrypted (`tls`), or the user states that the network is private."""

    hosts: tuple[str, ...]
    address: str
    network: Literal["private"] | None = None
    tls: bool = False

    @model_serializer(mode="wrap")
    def _one_host_alone(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """So that a study of one host asks what it asked when there could be no more."""
        written: dict[str, Any] = handler(self)
        hosts = written.pop("hosts")
        return {"host": hosts[0], **written} if len(hosts) == 1 else {"hosts": hosts, **written}

    @property
    def hosts_text(self) -> str:
        """load1, load2 and load3."""
        return listed(self.hosts)


class ServerInUse(Frozen):
    """How a study treats a server that runs already. Its `data` are a schema of Dyno's own that is dropped,
    or the user's tables, which are read. `restart` is the shell command that restarts it; empty where it is
    not to be. Its levels may give up what `allow` names. The run ends where the server's own load passes a
    bound: the 99th percentile of the ages of its statements (s), or errors per second."""

    data: Literal["own", "mine"] = "own"
    restart: str = ""
    allow: tuple[Promise, ...] = ()
    guard_p99_s: float | None = None
    guard_errors_per_s: float | None = None

    @property
    def guarded(self) -> bool:
        """Whether the server's own load is watched."""
        return self.guard_p99_s is not None or self.guard_errors_per_s is not None


class GivenData(Frozen):
    """Data that a study brings, in the place of those that its workload makes: the `dump` files, which are
    loaded in their order, or the `folder` of a server that was stopped (the file of an embedded engine).
    Paths are as written; relative ones count from the study's folder. The load connects to `database`;
    without it, to the only one that the data hold. With `setup` the workload's own statements and rows
    follow."""

    dump: tuple[str, ...] = ()
    folder: str = ""
    database: str = ""
    setup: bool = False

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """The files or the folder, as a study in `folder` names them."""
        return tuple(folder / Path(path).expanduser() for path in self.dump or (self.folder,))


class Restarts(Frozen):
    """How often each variant's engine is started again beside the timed blocks, and after what: power cuts,
    power cuts that tear pages, kills, clean stops, and stops after which a bit of a row is wrong. Of a
    cluster's nodes one is killed, paused, cut off or emptied, or the first one is lost. `resets` are those of
    an emulated machine. Before each other act the load goes on for `load_s` on average. `control` are the
    settings under which a power cut must take commits along."""

    power_cuts: int = 0
    torn_pages: int = 0
    kills: int = 0
    stops: int = 0
    flipped_bits: int = absent(0)
    nodes_killed: int = absent(0)
    nodes_paused: int = absent(0)
    nodes_cut_off: int = absent(0)
    nodes_emptied: int = absent(0)
    first_nodes_lost: int = absent(0)
    resets: int = absent(0)
    load_s: float = 2.0
    control: dict[str, Level] = Field(default_factory=dict)


class ListedVariant(Frozen):
    """A variant that a study names, with a level for every factor. In the design `list` the first is the
    baseline; in a search none is, and the best candidates are held against them."""

    name: str
    levels: dict[str, Level]


PLATFORM_FACTOR = "platform.architecture"
"""The factor whose levels are architectures. A study with it has no blocks."""
MACHINE_FACTOR = "machine.reset"
"""The factor whose levels are ways to reset an emulated machine, in whose guest the engine runs."""
OF_FILES = frozenset(("source.patches", "source.recipe"))
"""Factors whose levels name files."""


class Study(Frozen):
    """A study as read. Its `engine` is the baseline's where engines are a factor. Without a `seed` each run
    draws its own, and without an `arrangement` each run has the one that its host and its factors allow.
    `slice_s` is about how long a slice is measured; without it, as long as the host's calibration found best,
    else `SLICE_S`. Blocks take `images` of the pristine data in turn; without it, as many as cost little
    beside the run. `settings` are levels that hold for every variant, by factor name, those of the
    `configuration` included that nothing else gives. Each block has so many `baselines`; without it one, or
    as many as suit a budget. `variants` is only for `list`, whose factors are what its variants set, and for
    `search`, which alone has a `search`. `soak` says how `dyno soak` carries it out. `text` is the file as it
    was, `digest` its hash. Its paths count from the folder `place`; `files` are those that it refers to, None
    where they are not known. Engines are restarted beside the blocks as `restarts` says; `meanwhile` are acts
    beside the load of each trial. `fronts` are the user's own programs by name, which a level puts in front
    of the server. `data` take the place of those that the workload makes. With `upgraded` the baseline's
    engine alone has data made, and every other engine takes over a copy of them. Where there are `phases`,
    they are the load. It comes from this host, or from that of the `driver`. Where the engine is a URL,
    `server` says how that server is treated. An hour of its host costs `price_per_hour`, in whatever money.
    `published` are others' figures of its variants."""

    title: str
    engine: Reference
    configuration: Configuration | None = absent(None)
    server: ServerInUse | None = absent(None)
    fronts: dict[str, FrontProgram] = absent({})
    driver: RemoteDriver | None = absent(None)
    data: GivenData | None = absent(None)
    upgraded: bool = absent(False)
    phases: tuple[LoadPhase, ...] = absent(())
    design: Design = Design.ONE_AT_A_TIME
    blocks: int = 6
    seed: int | None = None
    aa: bool = False
    images: int | None = None
    baselines: int | None = absent(None)
    arrangement: Arrangement | None = None
    slice_s: float | None = None
    workload: Workload
    settings: dict[str, Level] = Field(default_factory=dict)
    factors: tuple[Factor, ...]
    variants: tuple[ListedVariant, ...] = ()
    restarts: Restarts | None = absent(None)
    meanwhile: tuple[Meanwhile, ...] = absent(())
    goal: Goal = Goal()
    search: Search | None = absent(None)
    soak: Soak | None = absent(None)
    price_per_hour: float | None = absent(None)
    published: tuple[PublishedFigure, ...] = absent(())
    path: str = ""
    # Where it lies, and what lies there, is no part of what it asks.
    place: str = Field(default="", exclude=True)
    files: tuple[StudyFile, ...] | None = Field(default=None, exclude=True)
    text: str = ""
    digest: str = ""

    @property
    def folder(self) -> Path:
        """What paths in the study count from."""
        return Path(self.place or Path(self.path).parent)

    @property
    def names_files(self) -> bool:
        """Whether a workload, a patch or a recipe of it is a file, as far as that can be told without
        reading."""
        levels = {**self.settings, **self.baseline}
        options = self.workload.options
        named = options.get("file") or options.get("folder")
        return bool(named) or bool(levels.keys() & OF_FILES)

    @property
    def meaning(self) -> str:
        """A digest of what the study asks, however its file spells it: comments, spacing, the order of keys
        and the spelling of values do not matter. How it is soaked, what its host costs and what others
        published are other questions."""
        # What follows from the workload's name is left out, because a set has no order of its own.
        spelling: Any = {
            "path": True,
            "text": True,
            "digest": True,
            "configuration": True,
            "soak": True,
            "price_per_hour": True,
            "published": True,
            "workload": {"run_options"},
        }
        asked = self.model_dump(mode="json", exclude=spelling)
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    @property
    def untimed(self) -> bool:
        """Whether nothing of it is timed, because its engine runs as packages of named architectures, and an
        emulator's speed is not theirs. It has no blocks then, and its answer is what works."""
        return PLATFORM_FACTOR in {*self.settings, *self.baseline}

    @property
    def in_guest(self) -> bool:
        """Whether its engine runs in the guest of an emulated machine, which is reset."""
        return MACHINE_FACTOR in {*self.settings, *self.baseline}

    @property
    def baseline(self) -> dict[str, Level]:
        """The baseline's level of every factor."""
        return {factor.name: factor.baseline for factor in self.factors}

    @property
    def baselines_each(self) -> int:
        """How often a block measures the baseline."""
        return self.baselines or 1

    @property
    def engines(self) -> tuple[Reference, ...]:
        """Every engine that a variant runs on, the baseline's first."""
        varied = (factor for factor in self.factors if factor.name == ENGINE_FACTOR)
        others = (
            Reference.of(level_text(level)).within(self.folder)
            for factor in varied
            for level in factor.levels
        )
        return tuple(dict.fromkeys((self.engine, *others)))

    @property
    def front_kinds(self) -> tuple[str, ...]:
        """What stands in front of the server in some variant, each once."""
        varied = [level for factor in self.factors if factor.name == FRONT_KIND for level in factor.levels]
        named = (self.settings.get(FRONT_KIND, NO_FRONT), *varied)
        return tuple(kind for kind in dict.fromkeys(map(level_text, named)) if kind != NO_FRONT)

    @property
    def applications(self) -> tuple[str, ...]:
        """Those of them that take requests in the place of SQL."""
        return tuple(kind for kind in self.front_kinds if kind in self.fronts and self.fronts[kind].ready)

    @property
    def application_levels(self) -> dict[str, Level]:
        """What puts the baseline's application in front of a server; none where the load is SQL."""
        given = {**self.settings, **self.baseline} if self.applications else {}
        return {name: level for name, level in given.items() if name.startswith("front.")}

    def engine_of(self, levels: Mapping[str, Level]) -> Reference:
        """The engine that a variant with these levels runs on."""
        chosen = levels.get(ENGINE_FACTOR)
        return self.engine if chosen is None else Reference.of(level_text(chosen)).within(self.folder)
