"""A record in the making: what a trial has shown so far, whole at every moment.

It says of a failure whose fault it is: the engine's, which is measured, or that of Dyno's own driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.engines.engine import Engine
from dbdyno.errors import (
    Blocked,
    DriverFailed,
    DynoError,
    Incorrect,
    Inert,
    LoadDied,
    ServerFailed,
    Stopped,
    UserError,
)
from dbdyno.layers.setup import MORE_MEMORY
from dbdyno.plan.capacity import capacity_of, few_above, tried_rate
from dbdyno.records.load_words import by_kind
from dbdyno.records.record import Doubt, Observation, Outcome, PhaseRecord, Record, Stage

if TYPE_CHECKING:
    from dbdyno.engines.facts import ShellRound
    from dbdyno.frozen import Level
    from dbdyno.layers.setup import Running
    from dbdyno.records.binary import CodeBeside
    from dbdyno.records.capacity import Capacity, TriedRate
    from dbdyno.records.load_words import StatementAnswers, StatementCosts
    from dbdyno.records.meanwhile import ActMeanwhile
    from dbdyno.records.record import Check, Evidence, Filled, Guested, Plans, Platform, Recovery, Watched
    from dbdyno.study.trials import Phase, Trial
    from dbdyno.trial.acts.endings import Acted
    from dbdyno.trial.bench import Bench
    from dbdyno.trial.correctness import Correctness


def died(failure: Exception, engine: Engine) -> bool:
    """Whether the engine died. An embedded one lives in the load process and dies with it. The load process
    of a server that dies says nothing of the server."""
    return isinstance(failure, ServerFailed) or (isinstance(failure, LoadDied) and engine.embedded)


def of_the_engine(failure: Exception, engine: Engine) -> bool:
    """Whether the engine died, refused, was not reached or spoke nonsense."""
    return died(failure, engine) or (isinstance(failure, DriverFailed) and failure.of_the_engine)


def is_mistake(failure: Exception) -> bool:
    """Whether the user's input caused it: a file that is not there, a statement that no server takes."""
    return isinstance(failure, UserError) or (isinstance(failure, DriverFailed) and failure.kind == "user")


UNDER_LOAD = (Stage.FILL, Stage.DRIVE, Stage.RESTART, Stage.CHECK)
"""A server that dies in one of these stages was broken by the load, or by what was done to it on purpose; one
that dies earlier failed to start."""


@dataclass
class Draft:
    """Gathers one trial's evidence. `record` may be called at any time."""

    trial: Trial
    bench: Bench
    on_stage: Callable[[Trial, Stage], None]
    evidence: tuple[Evidence, ...] = ()
    code: CodeBeside | None = None
    platform: Platform | None = None
    plans: Plans | None = None
    answers: StatementAnswers | None = None
    costs: StatementCosts | None = None
    cold_ms: Mapping[str, float] = field(default_factory=dict)
    capacity: Capacity | None = None
    reset: Mapping[str, Level] = field(default_factory=dict)
    defaults: Mapping[str, str] | None = None
    compiler: str = ""
    _running: Running | None = None
    _ready_s: float | None = None
    _filled: Filled | None = None
    _outcome: Outcome = Outcome.MEASURED
    _cause: str = ""
    _remedy: str = ""
    _mistaken: bool = False
    _log: str = ""
    _phases: list[PhaseRecord] = field(default_factory=list)
    _doubts: dict[Doubt, str] = field(default_factory=dict)
    _stages_s: dict[str, float] = field(default_factory=dict)
    _stage: Stage = Stage.PREPARE
    _damaged: bool = False
    _acts_from_unix_s: float = 0.0

    def __post_init__(self) -> None:
        self._started_unix_s = self._finished_unix_s = self.bench.clock.unix_s()
        self._began_s = self.bench.clock.monotonic_s()

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Says which stage runs, and times it."""
        self._stage = stage
        self.on_stage(self.trial, stage)
        clock = self.bench.clock
        began = clock.monotonic_s()
        try:
            yield
        finally:
            spent_s = self._stages_s.get(stage.value, 0.0) + clock.monotonic_s() - began
            self._stages_s[stage.value] = round(spent_s, 3)
            # Somebody may set the clock in the midst of a trial, which takes as long as before.
            self._finished_unix_s = self._started_unix_s + clock.monotonic_s() - self._began_s

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Turns a failure into the trial's outcome. What Dyno itself did wrong passes through."""
        try:
            yield
        except (DynoError, OSError) as failure:
            if self._stage is Stage.RECORD or isinstance(failure, Stopped):
                # That nothing can be kept, or that the whole run ends, is no fault of the variant.
                raise
            self._outcome = self._outcome_of(failure)
            self._mistaken = self._outcome is Outcome.FAILED and is_mistake(failure)
            self._cause = failure.message if isinstance(failure, DynoError) else str(failure)
            if self._outcome is Outcome.BROKEN and self._dead_behind(failure):
                # What the driver met says nothing of why, and a server that the kernel killed says nothing.
                self._cause = f"the server died under the load: {self._cause}"
            self._remedy = failure.hint if isinstance(failure, DynoError) else ""
            if self._running is not None and (killed := self._running.setup.killed_for_memory):
                self._cause, self._remedy = f"{self._cause}: {killed}", MORE_MEMORY
            self._log = getattr(failure, "log", "") or self._log

    def started(self, running: Running, reset: Mapping[str, Level]) -> Running:
        """The server is up. It may be started again later, which is another story."""
        self._running, self.reset = running, reset
        # A study of platforms times nothing, not even on this machine's own.
        self._ready_s = None if self.platform else running.server.ready_s
        return running

    def gated(self, found: Correctness) -> None:
        """The correctness gate has asked the build that runs. Raises Incorrect for one that failed, and
        Blocked where the gate could not run. What it checked then stands in the record."""
        if not found.passed:
            self._phases.append(PhaseRecord(name="gate", checks=found.checks))
        found.require_passed()

    def filled(self, filled: Filled | None) -> None:
        """The caches were filled, or as far as they could be; None where the server does not tell."""
        self._filled = filled
        if filled is None:
            return
        if filled.errors:
            self.doubt(Doubt.ERRORS_IN_LOAD, f"while the caches were filled: {by_kind(filled.errors)}")
        if not filled.stands:
            each = ", ".join(f"{gained:.1f}" for gained in filled.per_query) or "no whole pass"
            self.doubt(
                Doubt.CACHES_FILLING,
                f"{filled.counter} per query, pass by pass over {filled.queries} queries: {each}",
            )

    def phase_began(self, phase: Phase) -> None:
        self._phases.append(PhaseRecord(name=phase.name, clients=phase.clients))

    def acted(self, acted: Acted) -> Running:
        """Something was done to the server on purpose, and it runs again."""
        self._running = acted.running
        self._note(recovery=acted.recovery)
        self.judged(acted.checks, {})
        return acted.running

    def timed_cold(self, running: Running, times_ms: Mapping[str, float]) -> None:
        """Each statement was sent to a server that was just started; the last of these runs."""
        self._running, self.cold_ms = running, times_ms

    @property
    def tried(self) -> list[TriedRate]:
        """The rates that were tried so far."""
        return [phase.tried for phase in self._phases if phase.tried is not None]

    @property
    def closed_per_s(self) -> float:
        """The throughput of the trial's first load, which was in closed loop."""
        tally = self._phases[0].tally
        assert tally is not None, "a rate is tried after the load in closed loop"
        return tally.throughput_per_s

    def of_search(self, phase: Phase, doubts: Mapping[Doubt, str]) -> Mapping[Doubt, str]:
        """Notes what the rate came to that a phase has tried. The doubts without those that a search for a
        capacity asks for: a rate that is not kept is a finding of it, and so is a driver without CPU time."""
        goal = self.bench.study.goal
        if not any(one.tries_rate for one in self.trial.phases):
            return doubts
        tally = self._phases[-1].tally
        asked = {Doubt.DRIVER_SATURATED}
        if phase.rate_per_s is not None and tally is not None:
            self._note(tried=tried_rate(phase.rate_per_s, tally, goal.promise))
            asked |= {Doubt.RATE_NOT_KEPT, Doubt.ERRORS_IN_LOAD}
        return {doubt: text for doubt, text in doubts.items() if doubt not in asked}

    def searched(self) -> None:
        """All rates are tried. Raises DynoError where none of them kept the promise."""
        promise = self.bench.study.goal.promise
        self.capacity = found = capacity_of(self.closed_per_s, self.tried, promise)
        if found.at_least:
            self.doubt(Doubt.CAPACITY_AT_LEAST, found.why)
        if few := few_above(found, self.bench.study.workload.duration_s, promise):
            self.doubt(Doubt.FEW_ABOVE, few)

    def seen(self, watched: Watched | None, guests: Sequence[Guested]) -> None:
        """What the server held in the phase, and who was there beside the load."""
        self._note(watched=watched, guests=tuple(guests))

    def acted_beside(self, acts: tuple[ActMeanwhile, ...], zero_unix_s: float) -> None:
        """What was done beside the phase's load, counted from then. An act that failed is the variant's
        fault, because its levels asked for it."""
        self._note(meanwhile=acts)
        self._acts_from_unix_s = zero_unix_s
        failed = [f"{act.name}: {act.fault}" for act in acts if act.fault]
        if failed and not self.failed:
            self._outcome, self._cause = (
                Outcome.FAILED,
                f"what was done beside the load failed: {'; '.join(failed)}",
            )
            self._remedy = "mend the statement or the command under [[meanwhile]], or its level"

    def driven(self, running: Running, observation: Observation) -> Observation:
        """The phase's load, or its rest, is over. Raises ServerFailed when the server did not live through
        it."""
        self._running = running
        if running.counted:
            # Under Valgrind nothing goes at its own speed.
            observation = Observation(duration_s=0.0)
            self._note(counted=running.counted)
        elif running.tally is not None:
            load_hosts = running.afar.seen if running.afar is not None else ()
            self._note(tally=running.tally, observation=observation, load_hosts=load_hosts)
            ahead_s = self._acts_from_unix_s - running.tally.windows[0][0]
            self._note(meanwhile=tuple(act.after(ahead_s) for act in self._phases[-1].meanwhile))
        if not running.server.alive():
            raise ServerFailed("the server died under the load", log=running.server.log())
        front = running.front
        if front is not None and not front.process.alive():
            raise ServerFailed(f"{front.process.title} died under the load", log=front.process.log())
        return observation

    def counted(self, observation: Observation, totals: Mapping[str, float]) -> Observation:
        """The rows of the phase's load are counted. The observation with these totals as well."""
        observation = observation.but(totals={**observation.totals, **totals})
        self._note(observation=observation)
        return observation

    def judged(self, checks: tuple[Check, ...], doubts: Mapping[Doubt, str], compared: bool = True) -> None:
        """The phase's checks are made: one that does not hold takes the trial's speed away. Where speeds are
        `compared`, so does a driver that had no time left."""
        self._note(checks=checks, doubts=dict(doubts))
        broken = [f"{check.name}: {check.detail}" for check in checks if not check.holds]
        if broken:
            self._outcome, self._cause = Outcome.BROKEN, "; ".join(broken)
        elif compared and Doubt.DRIVER_SATURATED in doubts:
            # A speed that the driver set says nothing of the server.
            self._outcome, self._cause = Outcome.FAILED, doubts[Doubt.DRIVER_SATURATED]
            self._remedy = "raise workload.threads, give the driver more CPUs, or lower workload.clients"

    def survived(self, acted: Acted) -> Running:
        """A round is over."""
        self._running = acted.running
        self._log = acted.log or self._log
        self._ended(acted.recovery, acted.checks)
        return acted.running

    def shell_ended(self, done: ShellRound) -> None:
        """A round of an engine that is asked by its shell is over."""
        self._ended(done.recovery, done.checks)

    def _ended(self, recovery: Recovery, checks: tuple[Check, ...]) -> None:
        """Only what the settings do not permit breaks the trial."""
        self._note(recovery=recovery.untimed if self.platform else recovery, checks=checks)
        self._damaged = bool(recovery.damage)
        if recovery.fault:
            self._outcome, self._cause = Outcome.BROKEN, recovery.fault

    def doubt(self, doubt: Doubt, text: str) -> None:
        """Notes what makes the trial as a whole doubtful."""
        self._doubts[doubt] = text

    @property
    def failed(self) -> bool:
        return self._outcome is not Outcome.MEASURED

    @property
    def over(self) -> bool:
        """Whether no phase is to follow: nothing is learnt from a load on data that are not sound."""
        return self.failed or self._damaged

    def record(self, whole: bool = True) -> Record:
        """All that is known of the trial by now; not `whole` while phases are to come."""
        running, run, trial = self._running, self.bench.run, self.trial
        timed, leased = self.bench.callgrind is None, self.bench.leased
        return Record(
            run=run.run,
            trial=trial.index,
            block=trial.block,
            purpose=trial.purpose,
            position=trial.position,
            variant=trial.variant.name,
            levels=trial.variant.levels,
            host=run.host.name or "",
            fleet_host=leased.host if leased else "",
            fence=leased.fence if leased else 0,
            started_unix_s=self._started_unix_s,
            finished_unix_s=self._finished_unix_s,
            outcome=self._outcome,
            cause=self._cause,
            remedy=self._remedy,
            mistaken=self._mistaken,
            engine_version=self._engine_version,
            compiler=self.compiler,
            ready_s=self._ready_s if timed else None,
            stages_s=dict(self._stages_s),
            reset=dict(self.reset),
            evidence=self.evidence,
            filled=self._filled,
            code=self.code,
            platform=self.platform,
            phases=tuple(self._phases),
            plans=self.plans,
            answers=self.answers,
            costs=self.costs,
            cold_ms=dict(self.cold_ms),
            capacity=self.capacity,
            defaults=None if self.defaults is None else dict(self.defaults),
            trial_doubts=dict(self._doubts),
            # Once the host is restored, the log of what has died is known from its failure alone.
            server_log=(running.log() if running else "") or self._log,
            whole=whole,
        )

    @property
    def _engine_version(self) -> str:
        """By the server's word, else by that of its packages."""
        if self._running is not None:
            return self._running.server.version
        return self.platform.version if self.platform else self.bench.installation.version

    def _note(self, **found: object) -> None:
        """What the phase that runs has shown."""
        self._phases[-1] = self._phases[-1].but(**found)

    def _outcome_of(self, failure: DynoError | OSError) -> Outcome:
        if isinstance(failure, Blocked):
            return Outcome.BLOCKED
        if isinstance(failure, Incorrect):
            return Outcome.BROKEN
        if isinstance(failure, Inert):
            return Outcome.INERT
        crashed = died(failure, self.bench.engine) or self._dead_behind(failure)
        return Outcome.BROKEN if crashed and self._stage in UNDER_LOAD else Outcome.FAILED

    def _dead_behind(self, failure: Exception) -> bool:
        """Whether the driver failed at a server that is dead."""
        if not isinstance(failure, DriverFailed) or self._running is None:
            return False
        # A server that was ended on purpose says nothing of what failed after that.
        says = self._stage is not Stage.RESTART or failure.of_the_engine
        return says and not self._running.server.alive()
