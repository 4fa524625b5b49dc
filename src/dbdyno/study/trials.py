"""What a study is carried out as: variants and their trials, each with its phases, which are loads that
follow one another, each observed and checked by itself. A bisection's are points of a line of setups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from dbdyno.frozen import Frozen, Level, absent
from dbdyno.study.nouns import (
    BASELINE,
    SLICE_S,
    TRIALS_MAX,
    Arrangement,
    Design,
    Factor,
    Goal,
    ListedVariant,
    Study,
)
from dbdyno.study.phases import LoadPhase, options_of
from dbdyno.study.soak import OF_POWER, Act, Disturbance, Soak

SETTLE_S = 0.1
"""How long the load runs before a slice is measured: the server's caches and the CPUs' are those of another
server's slice until then."""


SETTLED_SHARE = 0.2
"""How long a rate goes on before it is judged, of the time for which it is then."""
EACH_LEAST = 2.0
"""A client that ends fewer transactions in a slice shows how a load begins, and not how it goes on: clients
begin each slice anew, and together."""

SUSTAINED, CONTROL = "sustained", "control"
"""The names of the phases of a soak that are judged for drift, and against which."""
BURST_S, BURST_SHARE = 10.0, 0.1
"""How long the load lasts that shows that all connections are open, at most, and of the sustained one."""
BEFORE_ACT_S = 1.5
"""How long the load goes on before something is done to the server."""
GUESTS_SHARE = 0.1
"""How many others there are for each client of the load."""


class Guest(Frozen):
    """Clients beside those of the load: they disturb it, put another workload on the server, or send the
    transactions of the script `file` at a rate."""

    clients: int
    disturbance: Disturbance | None = None
    workload: str = ""
    file: str = absent("")
    rate_per_s: float | None = absent(None)

    @property
    def name(self) -> str:
        return self.disturbance.value if self.disturbance else self.workload or self.file


class Phase(Frozen):
    """One stretch of load: its clients come within `ramp_s`, and the first `warmup_s` are not measured.

    With `slices` the rest is measured in so many pieces, and the load waits before each of them. `clients` is
    their number where it is not the study's. A phase that `rests` has no load of its own. `guests` are there
    all the time. What the server holds is `watched` where that is asked for. `then` is done to the server: a
    stop after the load, anything else in its midst. With a `ledger` nothing is measured: each transaction is
    written down as soon as its client is told, and looked for afterwards. An `optional` act that cannot be
    done on this host is left out, with the reason, and the trial goes on. One that `tries_rate` is a step of
    the search for a capacity: its `rate_per_s` is chosen when it begins. One with `acts` has those of its
    study beside its load. One of a study's phases can have `options` of the
    workload of its own, and end after so many `operations`.
    """

    name: str
    ramp_s: float = 0.0
    warmup_s: float = 0.0
    duration_s: float
    slices: int | None = None
    clients: int | None = None
    rests: bool = False
    guests: tuple[Guest, ...] = ()
    watched: bool = False
    then: Act | None = None
    ledger: bool = False
    optional: bool = False
    tries_rate: bool = False
    rate_per_s: float | None = None
    acts: bool = False
    options: dict[str, Level] = absent({})
    operations: int | None = absent(None)

    @property
    def cuts_power(self) -> bool:
        """Whether it needs a volume whose power can be cut."""
        return self.ledger and self.then in OF_POWER

    @property
    def settle_s(self) -> float:
        """Before each slice."""
        return SETTLE_S if self.slices else 0.0

    @property
    def stretches_s(self) -> tuple[float, ...]:
        """Each time that the load is on the server: once, or for the warm-up and then for each slice."""
        if not self.slices:
            return (self.takes_s,)
        slice_s = self.settle_s + self.duration_s / self.slices
        return (self.ramp_s + self.warmup_s, *[slice_s] * self.slices)

    @property
    def takes_s(self) -> float:
        return self.ramp_s + self.warmup_s + self.duration_s + (self.slices or 0) * self.settle_s


COUNTED = (Phase(name="counted", duration_s=0.0),)
"""The phases of a trial whose work is counted: it takes as long as its transactions take."""


FULL_SPEED = {
    "full_speed_after_stop_s": Act.STOP,
    "full_speed_after_kill_s": Act.KILL,
    "full_speed_after_cut_s": Act.CUT,
}
"""Metrics of the load after an act."""
ACT_OF_METRIC = {
    "stop_s": Act.STOP,
    "ready_after_stop_s": Act.STOP,
    "ready_after_kill_s": Act.KILL,
    "ready_after_cut_s": Act.CUT,
    **FULL_SPEED,
}
"""Metrics that a trial has only where its engine is restarted, and after what."""


def phases_of(study: Study) -> tuple[Phase, ...]:
    """The phases of each trial of a study's blocks: its load, once, the rates that a search for a capacity
    tries, and then the acts that its goal times."""
    load = study.workload
    tried = study.goal.rates if study.goal.promise else 0
    # A rate is tried in one piece, so that a queue which grows is seen to grow.
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE and not tried and not study.meanwhile
    slices = _slices(load.duration_s, study.slice_s or SLICE_S) if beside else None
    measured = Phase(
        name="load",
        ramp_s=load.ramp_s,
        warmup_s=load.warmup_s,
        duration_s=load.duration_s,
        slices=slices,
        acts=bool(study.meanwhile),
    )
    settled_s = min(load.warmup_s, SETTLED_SHARE * load.duration_s)
    rates = (
        Phase(name=f"rate {number}", warmup_s=settled_s, duration_s=load.duration_s, tries_rate=True)
        for number in range(1, tried + 1)
    )
    acts = (
        Phase(name=act.value, duration_s=load.duration_s, then=act, ledger=True) for act in timed_acts(study)
    )
    loads = [_load_of(one, study) for one in study.phases] or [measured]
    return (*loads, *rates, *acts)


def _load_of(phase: LoadPhase, study: Study) -> Phase:
    """One of a study's phases. It has no warm-up: what it does first is a part of its work."""
    clients = phase.clients or study.workload.clients
    return Phase(
        name=phase.name,
        duration_s=phase.duration_s or study.workload.duration_s,
        clients=phase.clients,
        rate_per_s=phase.rate_per_s,
        options=options_of(phase.file) if phase.file else {},
        operations=phase.operations,
        guests=(Guest(clients=clients, file=phase.beside, rate_per_s=phase.beside_rate_per_s),)
        if phase.beside
        else (),
    )


def timed_acts(study: Study) -> tuple[Act, ...]:
    """The acts that the goal's response and guards time, in the order of `Act`. A kill follows where the full
    speed after the last of them is asked for, because the load before it shows that."""
    named = {study.goal.response, *(guard.metric for guard in study.goal.guards)}
    asked = {ACT_OF_METRIC[name] for name in named & ACT_OF_METRIC.keys()}
    acts = tuple(act for act in Act if act in asked)
    loaded_again = {FULL_SPEED[name] for name in named & FULL_SPEED.keys()}
    return (*acts, Act.KILL) if acts and acts[-1] in loaded_again else acts


def rung_of(soak: Soak, study: Study, rung: int) -> tuple[Phase, ...]:
    """The phases of a soak's trial, on the rung of that number from 0."""
    clients = soak.clients[rung]
    others = max(1, round(GUESTS_SHARE * clients))
    guests = [Guest(clients=others, disturbance=one) for one in soak.disturb]
    guests += [Guest(clients=others, workload=name) for name in soak.beside]
    burst_s = min(BURST_S, BURST_SHARE * soak.duration_s)

    def phase(name: str, duration_s: float, **more: Any) -> Phase:
        return Phase(name=name, duration_s=duration_s, clients=clients, watched=True, **more)

    phases = [
        phase("storm", burst_s),
        phase("gradual", burst_s, ramp_s=soak.opening_s),
        phase(SUSTAINED, soak.duration_s, warmup_s=study.workload.warmup_s),
        # On a warm server, so that what grows only now is the guests' doing.
        *(phase(guest.name, soak.disturbed_s, guests=(guest,)) for guest in guests),
    ]
    if soak.control_s:
        waiting = (Guest(clients=clients, disturbance=Disturbance.IDLE),) if soak.sessions else ()
        phases.append(phase(CONTROL, soak.control_s, rests=True, guests=waiting))
    return (*phases, *_ends(soak, study, clients))


def _ends(soak: Soak, study: Study, clients: int) -> Iterator[Phase]:
    """What is done to the server last. Until the first power cut the transactions of all phases are counted.
    From it on they are known one by one, because a cut may take along what the settings permit."""
    known = False
    for act in soak.ends:
        known = known or (act in OF_POWER and study.workload.keeps_ledger)
        yield Phase(
            name=act.value,
            duration_s=BEFORE_ACT_S,
            clients=clients,
            then=act,
            ledger=known,
            optional=True,
        )


def _slices(duration_s: float, slice_s: float) -> int:
    """An even number, because every second round runs the order of the one before it backwards."""
    return 2 * max(1, round(duration_s / slice_s / 2))


NO_BLOCK = -1
"""In place of a block's number: what is counted, work or losses, is compared with no block."""
COUNTED_FROM, RESTARTS_FROM = TRIALS_MAX, 2 * TRIALS_MAX
"""The indices of trials beside the blocks begin where those of blocks never come, because blocks may still be
added."""


class Variant(Frozen):
    """What is compared: a level for every factor. The first variant of a plan is the baseline.

    `name` is unique in the plan: `baseline`, or the levels that differ from the baseline's
    (`config.innodb_buffer_pool_size=1G`), or the name a `list` design gives. `twin` marks a copy of the
    baseline; one that `shares` counts with it when candidates are compared, that of an A/A study does not.
    A `placebo` has the baseline's code at other addresses.
    """

    name: str
    levels: dict[str, Level]
    twin: bool = False
    shares: bool = False
    placebo: bool = absent(False)

    @property
    def candidate(self) -> bool:
        """Whether it is compared with the baseline for a verdict, if it is not the baseline."""
        return not (self.twin or self.placebo)


class Purpose(StrEnum):
    """What a block of a search is for, in the order in which they come. An evaluation begins with those that
    show how far two servers of the baseline lie apart."""

    FLOOR = "floor"
    SEARCH = "search"
    CONFIRMATION = "confirmation"
    ELIMINATION = "elimination"
    STARTS = "starts"


class Trial(Frozen):
    """One variant in one block. `index` counts trials from 0 in the order in which they run; `phases` follow
    one another on one server. A trial of no block has its work counted, or its engine restarted. The trials
    of a search say what their block is for."""

    index: int
    block: int
    position: int
    variant: Variant
    phases: tuple[Phase, ...]
    purpose: Purpose | None = absent(None)

    @property
    def counts_instructions(self) -> bool:
        """Whether its work is counted beside the timed blocks."""
        return self.phases == COUNTED

    @property
    def restarts(self) -> bool:
        """Whether its engine is restarted beside the timed blocks."""
        return self.index >= RESTARTS_FROM

    @property
    def of_no_block(self) -> bool:
        return self.block == NO_BLOCK


class Plan(Frozen):
    """The trials of a study in their order. `seed` is the one that drew the order."""

    variants: tuple[Variant, ...]
    trials: tuple[Trial, ...]
    seed: int


class Along(StrEnum):
    """What changes from one point of a line to the next."""

    COMMITS = "commits"
    SETTINGS = "settings"
    VERSIONS = "versions"


class TouchedFile(Frozen):
    """A file that a commit changes, with the lines that it adds and takes away; None for one of no lines."""

    path: str
    added: int | None = None
    removed: int | None = None


class Point(Frozen):
    """One setup on a line: `levels` are those of all that varies on it. `title` says what changed since the
    point before, such as a commit's subject, and `touched` in which files."""

    name: str
    title: str = ""
    levels: dict[str, Level]
    touched: tuple[TouchedFile, ...] = absent(())


class Line(Frozen):
    """The points in their order: the first is good, the last bad. `source` says where they come from."""

    along: Along
    source: str = ""
    points: tuple[Point, ...]

    @property
    def last(self) -> int:
        """The place of the bad end."""
        return len(self.points) - 1

    def variant(self, place: int) -> str:
        """The name of a point's trials: those of the good end are what all others are compared with."""
        return self.points[place].name if place else BASELINE


def on_line(study: Study, line: Line, places: Iterable[int] | None = None) -> Study:
    """The study as a bisection carries it out: its baseline at each point, or at those of some `places`, the
    good end first. Nothing else of it is varied, and no work is counted but what the bisection asks for. Its
    engine is that of the first of them."""
    shown = sorted(set(range(len(line.points)) if places is None else places))
    varied = line.points[0].levels.keys()
    fixed = {**study.settings, **study.baseline}
    factors = tuple(
        Factor(name=name, levels=tuple(dict.fromkeys(line.points[place].levels[name] for place in shown)))
        for name in varied
    )
    return study.but(
        engine=study.engine_of(line.points[shown[0]].levels),
        design=Design.LIST,
        settings={name: level for name, level in fixed.items() if name not in varied},
        factors=factors,
        variants=tuple(
            ListedVariant(name=line.variant(place), levels=line.points[place].levels) for place in shown
        ),
        aa=False,
        baselines=1,
        restarts=None,
        search=None,
        soak=None,
        goal=Goal(
            response=study.goal.response,
            margin=study.goal.margin,
            confidence=study.goal.confidence,
            counted=False,
            promise=study.goal.promise,
            rates=study.goal.rates,
        ),
    )
