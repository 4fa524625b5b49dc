"""The record: all evidence of one trial, written to disk as soon as the trial ends, failed or not.

Records are the only input of an analysis. They are versioned: `FORMAT` rises with every change that an older
reader could not follow, and `tests/records/golden/` keeps a record of every version that must stay readable.

On what machine's programs a trial ran, where a study varies that.

How an engine would execute the statements of a load, as a trial has asked it.

The stages of a trial.

How an engine came back after an act that ended it, and what its settings permit the act to take along.

Which variants have no further trial, because of what their records show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from pydantic import Field, model_validator

from dbdyno.driver.link import LoadHost
from dbdyno.driver.tally import StoredTally, Tally
from dbdyno.frozen import Frozen, Level, absent
from dbdyno.records.binary import CodeBeside
from dbdyno.records.capacity import Capacity, TriedRate
from dbdyno.records.load_words import StatementAnswers, StatementCosts
from dbdyno.records.meanwhile import ActMeanwhile
from dbdyno.records.reset import Reset
from dbdyno.study.soak import Act
from dbdyno.study.trials import NO_BLOCK, RESTARTS_FROM, Purpose, Variant


def leaves_out(record: Record) -> bool:
    """Whether a record can leave a variant out by what stands below."""
    return record.outcome is Outcome.INERT or (record.block == 0 and record.outcome is Outcome.BLOCKED)


def inert_in(records: Sequence[Record]) -> frozenset[str]:
    """The variants whose build was found to be the baseline's: they have no further trial."""
    return frozenset(record.variant for record in records if record.outcome is Outcome.INERT)


def over_for_good(variants: Sequence[Variant], records: Sequence[Record]) -> frozenset[str]:
    """The inert variants; all variants, the baseline too, where that leaves none to compare it with, and no
    placebo or twin to measure luck and noise by."""
    ended = [record for record in records if record.outcome is not Outcome.MEASURED]
    inert, blocked = inert_in(ended), blocked_at_first(ended)
    others = [variant for variant in variants[1:] if not variant.shares]
    candidates = {variant.name for variant in others if variant.candidate}
    beside = {variant.name for variant in others if not variant.candidate}
    is_over = candidates and candidates <= inert and beside <= blocked
    return frozenset(variant.name for variant in variants) if is_over else inert


def blocked_at_first(records: Sequence[Record]) -> frozenset[str]:
    """The variants that the first block found blocked: another trial of them would only take time."""
    return frozenset(
        record.variant for record in records if record.block == 0 and record.outcome is Outcome.BLOCKED
    )


class Loss(StrEnum):
    """What a power cut takes along at most: nothing; the latest commits, as if they had never been; or the
    data, which may be damaged."""

    NOTHING = "nothing"
    COMMITS = "commits"
    DATA = "data"

    @classmethod
    def gravest(cls, losses: Iterable[Loss]) -> Loss:
        """The worst of several losses; nothing where there are none."""
        return max(losses, key=list(cls).index, default=cls.NOTHING)


class Clustered(Frozen):
    """What an act on one node of a cluster, `struck`, came to.

    It was back `rejoin_s` after it was started again or let go, by a `transfer` of what it had missed; None
    where it did not come back. Another node took its place within `replaced_s`, where it was the first. The
    longest time without an acknowledged commit was `silent_s`. Where it got all data from another node, that
    is the `donor`, which came no further for `donor_still_s` at the longest meanwhile. `lost` are
    acknowledged transactions that a node lacks, by its name, once it has all that the first one has. `looks`
    at a commit that a client had been told of were made on another node before the act; it was not there yet
    in `stale` of them, the latest `stale_ms` after the client was told.
    """

    struck: str
    rejoin_s: float | None = None
    transfer: str = ""
    replaced_s: float | None = None
    silent_s: float = 0.0
    donor: str = absent("")
    donor_still_s: float | None = absent(None)
    lost: dict[str, int] = Field(default_factory=dict)
    looks: int = 0
    stale: int = 0
    stale_ms: float = 0.0


class Recovery(Frozen):
    """How an engine came back after an act that ended it.

    Its settings permit the act to take along what `permits` says. A clean stop took `stop_s`. From the start
    of its process until it answered a first question it took `ready_s`; None where it did not come up, and
    where nothing is timed.
    `damage` says which invariants fail, or why it did not come up.
    By the act `acknowledged` transactions stood in the clients' own ledger, and `lost` of them are gone:
    clients had been told of the first of these `lost_ms` before the act. `present` is how many rows of the
    ledger are there, those included of which nobody was told. `torn_pages` were cut in half.
    Where one bit of a row was turned, `told` says whether the engine said so; None where it did not read it.
    Before the act the load came to `speed_per_s`. From its first transaction it needed `full_speed_s` until
    it was as fast as the fastest of the loads before it, or lasted so long without; None for the first load,
    and for one that was too short to tell.
    Where the act cannot be done on this host, `blocked` says why, and `remedy` what would allow it; nothing
    was done then. What an act on a node of a cluster came to is in `cluster`, and a reset of a machine in
    `reset`.
    """

    act: Act
    permits: Loss = Loss.NOTHING
    stop_s: float | None = None
    ready_s: float | None = None
    damage: str = ""
    acknowledged: int = 0
    lost: int = 0
    lost_ms: float = 0.0
    present: int = 0
    torn_pages: int | None = None
    told: bool | None = absent(None)
    full_speed_s: float | None = None
    speed_per_s: float = absent(0.0)
    blocked: str = ""
    remedy: str = ""
    cluster: Clustered | None = absent(None)
    reset: Reset | None = absent(None)

    @property
    def untimed(self) -> Recovery:
        """The same without its times: those of an emulator say nothing."""
        return self.but(stop_s=None, ready_s=None, full_speed_s=None, speed_per_s=0.0)

    @property
    def fault(self) -> str:
        """What went wrong that the settings do not permit; empty where nothing did."""
        if self.damage and self.permits is not Loss.DATA:
            return f"after a {self.act.words}, {self.damage}"
        if self.lost and self.permits is Loss.NOTHING:
            return (
                f"after a {self.act.words}, {self.lost} of {self.acknowledged} acknowledged transactions"
                f" were gone, the first of them {self.lost_ms:.1f} ms old"
            )
        return ""


class Stage(StrEnum):
    """A stage by the name that records have of it, with what happens in it, in the order of a trial. A trial
    with several phases comes back to the stages of a load, and keeps its record after each phase."""

    contents: str

    PREPARE = "prepare", "data restored, server started"
    VERIFY = "verify", "levels proved"
    GATE = "gate", "the build's correctness"
    FILL = "fill", "caches of an index"
    DRIVE = "drive", "connecting, counters"
    CHECK = "check", "invariants, log"
    PLANS = "plans", "plans of the statements"
    ANSWERS = "answers", "answers and costs of the statements"
    RESTART = "restart", "server ended and started again"
    RECORD = "record", "to disk"
    RESTORE = "restore", "server stopped, host restored"

    def __new__(cls, name: str, contents: str) -> Stage:
        member = str.__new__(cls, name)
        member._value_ = name
        member.contents = contents
        return member


NO_PLAN_NEEDED = "it needs no plan"
"""Why a statement has no plan, and nobody has to be told: a commit, a SET."""


class StatementPlan(Frozen):
    """One kind of statement with its plan, or with why it has none.

    `statement` names it by its transaction; in `text` a `?` stands for a value. `summary` is what is done, in
    that order; `steps` are the same as a tree, with how it is done, and of a very long plan its beginning.
    Plans of one `digest` are the same. Of a statement that was executed for its plan, `rows` are for each
    step those that it was expected to give each time and those that it gave, None where the engine does not
    say; and `rows_why_not` says why nothing is known of them.
    """

    statement: str
    text: str
    summary: str = ""
    steps: tuple[str, ...] = ()
    digest: str = ""
    why_not: str = absent("")
    rows: tuple[tuple[float, float] | None, ...] = absent(())
    rows_why_not: str = absent("")


class Plans(Frozen):
    """The plans of all statements that were met. `unreached` says why a transaction may have more of them, by
    its name. Where nothing could be asked, `why_not` says why."""

    statements: tuple[StatementPlan, ...] = ()
    unreached: dict[str, str] = absent({})
    why_not: str = absent("")


class Platform(Frozen):
    """The engine's packages of one `architecture`, or a build for it, and what ran them here.

    `version` is the engine's, and `packages` are the engine's own and the C library with Debian's versions.
    `byte_order` and `alignment_bytes` stand in the header of its program: a kernel whose pages are larger
    cannot map it. `page_bytes` is what a program of it was told of the pages here, None where it was told
    nothing. What was `built` here tells its compiler and flags, and its `packages` are the build itself and
    the C library. `emulator` is the program that ran it with its version; empty where this machine ran it
    itself. An engine that is asked by its shell takes so many `instructions` for one transaction.
    """

    architecture: str
    version: str
    packages: str
    byte_order: str
    alignment_bytes: int
    page_bytes: int | None = None
    emulator: str = ""
    built: str = absent("")
    instructions: int | None = absent(None)


FORMAT = 2


class Outcome(StrEnum):
    """How a trial ended. Only `measured` trials have a speed."""

    MEASURED = "measured"
    BROKEN = "broken"
    BLOCKED = "blocked"
    FAILED = "failed"
    INERT = "inert"


class Doubt(StrEnum):
    """The closed list of what can make a measured trial doubtful. Text and next step stand in
    `report/words/remarks.py`."""

    NOT_SETTLED = "not_settled"
    DRIVER_SATURATED = "driver_saturated"
    DRIVER_WAITED = "driver_waited"
    RATE_NOT_KEPT = "rate_not_kept"
    STEAL = "steal"
    HOST_BUSY = "host_busy"
    ERRORS_IN_LOAD = "errors_in_load"
    SERVER_LOG = "server_log"
    THROTTLED = "throttled"
    MIXED_RESETS = "mixed_resets"
    CACHES_FILLING = "caches_filling"
    SHORT_SLICES = "short_slices"
    BESIDE_BUSY = "beside_busy"
    DEFERRED = "deferred"
    REPLAY_LATE = "replay_late"
    LOAD_HOST_BUSY = "load_host_busy"
    NETWORK_BOUND = "network_bound"
    LINK_UNSTEADY = "link_unsteady"
    LOAD_NOT_TOGETHER = "load_not_together"
    CAPACITY_AT_LEAST = "capacity_at_least"
    FEW_ABOVE = "few_above"


class Reading(Frozen):
    """One value and where it was read, so that a reader could read it again."""

    value: str
    source: str


class Evidence(Frozen):
    """For one factor of one trial: what was asked, and what each later reading showed.

    `in_effect` is the proof's conclusion. When false, `reason` says who refused or changed the value and
    `remedy` what would allow it. `idle` says why a level that was in effect could not matter under this load.
    """

    factor: str
    requested: str
    accepted: Reading | None = None
    effective: Reading | None = None
    exercised: Reading | None = None
    in_effect: bool
    reason: str = ""
    remedy: str = ""
    idle: str = absent("")


class Check(Frozen):
    """One condition that a trial must meet: an invariant, the server's log, the driver's headroom."""

    name: str
    holds: bool
    detail: str = ""


class Observation(Frozen):
    """What the samplers saw between the first and the last measured operation.

    `totals` are differences over the measured part, in the unit of their name (`server_cpu_user_s`,
    `context_switches`, `read_bytes` ...); `series` are per-second values, one list per name, all of one
    length. A name that could not be read is absent and stands in `missing` with the reason.
    `engine_status` is what the engine's own counters gained over the whole load, warm-up included;
    `engine_view` are those that tell where its time went, by a title with its unit. Where the engine was
    asked while the load went on, `engine_series` are those second by second, and `waits` how many sessions on
    average were at what the engine calls so.
    """

    duration_s: float
    totals: dict[str, float] = Field(default_factory=dict)
    series: dict[str, list[float]] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    engine_status: dict[str, float] = Field(default_factory=dict)
    engine_view: dict[str, float] = Field(default_factory=dict)
    engine_series: dict[str, list[float]] = absent({})
    waits: dict[str, float] = absent({})


INSTRUCTIONS = "Ir"
"""Callgrind's name for instructions executed."""


class CountedFunction(Frozen):
    """One function's own events per transaction, by callgrind's names, and its instructions with all that it
    calls. `module` is the file of the program or library that holds it."""

    name: str
    module: str
    own: dict[str, float]
    whole: float


class Counted(Frozen):
    """What the server's own code executed, per transaction, as Valgrind's callgrind counted it.

    `operations` were counted at a time; `repeats` are the instructions per transaction of each time, and all
    else is of the time with the median. `per_op` are all events, by callgrind's names. Functions with next to
    nothing are left out of `functions`.
    """

    operations: int
    per_op: dict[str, float]
    repeats: tuple[float, ...] = ()
    functions: tuple[CountedFunction, ...] = ()


class Filled(Frozen):
    """How the caches of an index were filled before the load: by passes over all `queries`. `per_query` is
    what the server's `counter` gained for each query, pass by pass; the caches stand where the last pass
    needed no less than the one before. `errors` are those of all passes, by kind."""

    counter: str
    queries: int
    per_query: tuple[float, ...]
    stands: bool
    errors: dict[str, int] = absent({})


class Limit(Frozen):
    """How much of something the server may hold at most, in the unit of its gauge, and what says so."""

    most: float
    source: str


class Watched(Frozen):
    """What a server held while a phase went on: a value of each gauge (`records/metrics.py`) at each of
    `seconds`, which count from `started_unix_s`. A moment at which a gauge could not be read has none (None).
    `limits` are those of the gauges that have one. A gauge that could never be read stands in `missing` with
    the reason."""

    started_unix_s: float
    seconds: tuple[float, ...]
    series: dict[str, tuple[float | None, ...]]
    limits: dict[str, Limit] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)


class Guested(Frozen):
    """What the clients beside the load did in a phase: `rounds` is how often `clients` of them came,
    `operations` what those that were asked to the end had done, `errors` theirs by kind."""

    name: str
    clients: int
    rounds: int
    operations: int = 0
    errors: dict[str, int] = Field(default_factory=dict)


class PhaseRecord(Frozen):
    """What one phase of a trial showed. A phase that its load did not live through has no `tally`, nor has
    one that was `counted` in place of timed, that rested, or that ended in an act, whose `recovery` it has.
    `clients` is their number where it is the phase's own. `load_hosts` are where the load came from, where
    that were other hosts. One that was a step of the search for a capacity has what it `tried`, and one with
    acts beside its load what was done `meanwhile`."""

    name: str
    tally: StoredTally | None = None
    observation: Observation | None = None
    counted: Counted | None = None
    checks: tuple[Check, ...] = ()
    doubts: dict[Doubt, str] = Field(default_factory=dict)
    clients: int | None = absent(None)
    watched: Watched | None = absent(None)
    guests: tuple[Guested, ...] = absent(())
    recovery: Recovery | None = absent(None)
    load_hosts: tuple[LoadHost, ...] = absent(())
    tried: TriedRate | None = absent(None)
    meanwhile: tuple[ActMeanwhile, ...] = absent(())

    @model_validator(mode="before")
    @classmethod
    def _of_one_load_host(cls, document: Any) -> Any:
        """A phase of a Dyno that knew one load host at most."""
        if not isinstance(document, dict) or "load_host" not in document:
            return document
        host = document["load_host"]
        rest = {name: value for name, value in document.items() if name != "load_host"}
        return {**rest, "load_hosts": [] if host is None else [host]}


class Record(Frozen):
    """All evidence of one trial.

    `ready_s` is what the server needed from the start of its process until it answered; `stages_s` maps
    each stage's name to the seconds it took, over all phases; `reset` tells how the pristine data came back
    and how long that took; `evidence` holds the settings read from the live server; `filled` says how its
    caches were filled, where they were. `code` tells how that of its build differs from the baseline's, where
    it is another one. A study of platforms has the `platform` of each trial. `plans` are those of the load's
    statements, asked after it, `answers` what they were answered, and `costs` what one execution of each
    took; `cold_ms` are the times of those that were sent once more, each to a server that was just started.
    Where engines are compared, the first block has the server's own `defaults` of its settings. `phases` are
    those that began; `trial_doubts` belong to none of them.
    A trial beside the timed blocks, whose work was counted or whose engine was restarted, has the `block`
    NO_BLOCK, and one of a search says what its block was for. A record that is not `whole` was kept between
    two phases of a trial that went on. A record of a fleet names its host there, and its `fence` is the
    number of the lease under which it was made.
    """

    format: int = FORMAT
    run: str
    trial: int
    block: int
    purpose: Purpose | None = absent(None)
    position: int
    variant: str
    levels: dict[str, Level]
    host: str
    fleet_host: str = absent("")
    fence: int = absent(0)
    started_unix_s: float
    finished_unix_s: float
    outcome: Outcome
    cause: str = ""
    remedy: str = ""
    mistaken: bool = absent(False)
    engine_version: str = ""
    compiler: str = absent("")
    ready_s: float | None = None
    stages_s: dict[str, float] = Field(default_factory=dict)
    reset: dict[str, Level] = Field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    filled: Filled | None = absent(None)
    code: CodeBeside | None = absent(None)
    platform: Platform | None = absent(None)
    phases: tuple[PhaseRecord, ...] = ()
    plans: Plans | None = absent(None)
    answers: StatementAnswers | None = absent(None)
    costs: StatementCosts | None = absent(None)
    cold_ms: dict[str, float] = absent({})
    defaults: dict[str, str] | None = absent(None)
    capacity: Capacity | None = absent(None)
    trial_doubts: dict[Doubt, str] = Field(default_factory=dict)
    server_log: str = ""
    whole: bool = True

    @model_validator(mode="before")
    @classmethod
    def _of_any_format(cls, document: Any) -> Any:
        if isinstance(document, dict) and document.get("format") == 1:
            return _from_format_1(document)
        return document

    @property
    def measured_phase(self) -> PhaseRecord | None:
        """The last phase that has a tally: what the trial's metrics are read from. Of the steps of a search
        for a capacity only those count that kept the promise, because others say how an overload ends."""
        for phase in reversed(self.phases):
            if phase.tally is not None and (phase.tried is None or phase.tried.kept):
                return phase
        return None

    @property
    def tally(self) -> Tally | None:
        phase = self.measured_phase
        return None if phase is None else phase.tally

    @property
    def observation(self) -> Observation | None:
        phase = self.measured_phase
        return None if phase is None else phase.observation

    @property
    def load_hosts(self) -> tuple[LoadHost, ...]:
        """Where the load of the measured phase came from; empty where it came from the server's host."""
        phase = self.measured_phase
        return () if phase is None else phase.load_hosts

    @property
    def instructions(self) -> Counted | None:
        """What the last phase that was counted executed."""
        return next((phase.counted for phase in reversed(self.phases) if phase.counted), None)

    @property
    def of_no_block(self) -> bool:
        """Whether the trial stands beside the timed blocks, so that nothing is timed against it."""
        return self.block == NO_BLOCK

    @property
    def of_restarts(self) -> bool:
        """Whether the trial shows what survives restarts and how long they take, so that it has no speed."""
        return self.trial >= RESTARTS_FROM

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        """Those of all phases that ended in an act, in their order."""
        return tuple(phase.recovery for phase in self.phases if phase.recovery is not None)

    @property
    def rounds(self) -> tuple[tuple[Recovery, float | None], ...]:
        """Each recovery, with the seconds that the load after it needed to its full speed: the next recovery
        tells them."""
        recoveries = self.recoveries
        speeds_s = [recovery.full_speed_s for recovery in recoveries[1:]]
        return tuple(zip_longest(recoveries, speeds_s))

    @property
    def checks(self) -> tuple[Check, ...]:
        """Those of all phases."""
        return tuple(check for phase in self.phases for check in phase.checks)

    @property
    def doubts(self) -> dict[Doubt, str]:
        """Those of all phases and of the trial, each with all that was seen."""
        found: dict[Doubt, str] = {}
        for doubts in (*(phase.doubts for phase in self.phases), self.trial_doubts):
            for doubt, text in doubts.items():
                found[doubt] = "; ".join(filter(None, [found.get(doubt, ""), text]))
        return found

    @property
    def took_s(self) -> float:
        """Seconds that the trial took, without the turns that others had between its slices, or after it had
        failed beside them."""
        own_s = sum(self.stages_s.values())
        if own_s and (self.tally is None or self.tally.slices or self.capacity):
            return own_s
        return self.finished_unix_s - self.started_unix_s

    @property
    def beside_load_s(self) -> float:
        """Seconds that the trial took beside its load."""
        return max(0.0, self.took_s - self.load_s)

    @property
    def load_s(self) -> float:
        """Seconds that the load took, warm-up and measured part; 0 where there was none."""
        tallies = [phase.tally for phase in self.phases if phase.tally is not None]
        return sum(tally.warmup_s + tally.duration_s for tally in tallies)


def _from_format_1(document: dict[str, Any]) -> dict[str, Any]:
    """A trial had one load, whose findings stood in the record itself."""
    names = {"tally": "tally", "observation": "observation", "checks": "checks", "warnings": "doubts"}
    upgraded = {name: value for name, value in document.items() if name not in names}
    phase = {name: document[old] for old, name in names.items() if document.get(old)}
    if phase.keys() - {"doubts"}:
        upgraded["phases"] = [{"name": "load", **phase}]
    else:
        upgraded["trial_doubts"] = phase.get("doubts", {})
    return {**upgraded, "format": FORMAT}
