"""A record in the making: what a trial has shown so far, whole at every moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbdyno.errors import Blocked, DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.frozen import Level
from dbdyno.layers.setup import Running
from dbdyno.records.record import Check, Doubt, Evidence, Observation, Outcome, Record
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench

UNDER_LOAD = ("drive", "check")
"""A server that dies in one of these stages was broken by the load; one that dies earlier failed to start."""


@dataclass
class Draft:
    """Gathers one trial's evidence. `record` may be called at any time."""

    trial: Trial
    bench: Bench
    on_stage: Callable[[Trial, str], None]
    evidence: tuple[Evidence, ...] = ()
    observation: Observation | None = None
    reset: Mapping[str, Level] = field(default_factory=dict)
    _running: Running | None = None
    _outcome: Outcome = Outcome.MEASURED
    _cause: str = ""
    _remedy: str = ""
    _log: str = ""
    _checks: tuple[Check, ...] = ()
    _warnings: dict[Doubt, str] = field(default_factory=dict)
    _stages_s: dict[str, float] = field(default_factory=dict)
    _stage: str = ""

    def __post_init__(self) -> None:
        self._started_unix_s = self._finished_unix_s = self.bench.clock()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Names the stage that runs and times it."""
        self._stage = name
        self.on_stage(self.trial, name)
        began = time.monotonic()
        try:
            yield
        finally:
            self._stages_s[name] = round(time.monotonic() - began, 3)
            self._finished_unix_s = self.bench.clock()

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Turns a failure into the trial's outcome. What Dyno itself did wrong passes through."""
        try:
            yield
        except (DynoError, OSError) as failure:
            self._outcome = self._outcome_of(failure)
            self._cause = failure.message if isinstance(failure, DynoError) else str(failure)
            self._remedy = failure.hint if isinstance(failure, DynoError) else ""
            self._log = getattr(failure, "log", "") or self._log

    def started(self, running: Running, reset: Mapping[str, Level]) -> Running:
        """The server is up."""
        self._running, self.reset = running, reset
        return running

    def driven(self, running: Running, observation: Observation) -> Observation:
        """The load is over. Raises ServerFailed when the server did not live through it."""
        self._running, self.observation = running, observation
        if not running.server.alive():
            raise ServerFailed("the server died under the load", log=running.server.log())
        return observation

    def judged(self, checks: tuple[Check, ...], warnings: Mapping[Doubt, str]) -> None:
        """The checks are made: one that does not hold takes the trial's speed away, and so does a driver that
        had no time left."""
        self._checks = checks
        self._warnings |= warnings
        broken = [f"{check.name}: {check.detail}" for check in checks if not check.holds]
        if broken:
            self._outcome, self._cause = Outcome.BROKEN, "; ".join(broken)
        elif Doubt.DRIVER_SATURATED in warnings:
            # A speed that the driver set says nothing of the server.
            self._outcome, self._cause = Outcome.FAILED, warnings[Doubt.DRIVER_SATURATED]
            self._remedy = "raise workload.threads, give the driver more CPUs, or lower workload.clients"

    def warn(self, warning: Doubt, text: str) -> None:
        self._warnings[warning] = "; ".join(filter(None, [self._warnings.get(warning, ""), text]))

    def record(self) -> Record:
        """All that is known of the trial by now."""
        running, run, trial = self._running, self.bench.run, self.trial
        return Record(
            run=run.run,
            trial=trial.index,
            block=trial.block,
            position=trial.position,
            variant=trial.variant.name,
            levels=trial.variant.levels,
            host=str(run.host.get("name", "")),
            started_unix_s=self._started_unix_s,
            finished_unix_s=self._finished_unix_s,
            outcome=self._outcome,
            cause=self._cause,
            remedy=self._remedy,
            engine_version=running.server.version if running else self.bench.installation.version,
            ready_s=running.server.ready_s if running else None,
            stages_s=dict(self._stages_s),
            reset=dict(self.reset),
            evidence=self.evidence,
            checks=self._checks,
            warnings=dict(self._warnings),
            observation=self.observation,
            tally=running.tally.model_dump(mode="json") if running and running.tally else None,
            server_log=running.server.log() if running else self._log,
        )

    def _outcome_of(self, failure: DynoError | OSError) -> Outcome:
        if isinstance(failure, Blocked):
            return Outcome.BLOCKED
        crashed = isinstance(failure, ServerFailed | LoadDied)
        if isinstance(failure, DriverFailed) and self._running is not None:
            crashed = crashed or not self._running.server.alive()
        return Outcome.BROKEN if crashed and self._stage in UNDER_LOAD else Outcome.FAILED
