"""The workload layer: clients, rate and the workload's own options, proved by what the driver says it
drove."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.engines.engine import Engine
from dbdyno.errors import Mistake
from dbdyno.frozen import Level, level_text
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor, pacing

_JOB_KNOBS = ("clients", "threads")
"""Knobs that stand in the job itself."""


def _as_it_is(level: Level) -> Level:
    return level


_LOAD_KNOBS: Mapping[str, tuple[str, Callable[[Level], Any]]] = {
    "rate_per_s": ("open", _as_it_is),
    "arrivals": ("open", _as_it_is),
    "schedule": ("open", pacing.schedule),
    "think_time": ("closed", pacing.think_time),
}
"""Knobs of when transactions start: the kind of load they make, and their form in the job. All others are
options of the workload."""


@dataclass(frozen=True)
class JobChange(Request):
    """Values of the driver's job, or of one table in it (`load`, `options`)."""

    values: Mapping[str, Any]
    table: str = ""

    def apply(self, setup: Setup) -> None:
        if self.table:
            table = setup.job.model_dump(exclude_unset=True).get(self.table, {})
            setup.job = setup.job.but(**{self.table: {**table, **self.values}})
        else:
            setup.job = setup.job.but(**self.values)


class WorkloadLayer:
    """`workload.NAME = VALUE` changes the load, not the server."""

    name = "workload"
    related: Mapping[str, tuple[str, ...]] = {"clients": ("cpu.usable_cores",)}

    def mistakes(self, factor: Factor, engine: Engine, installation: Installation | None) -> list[Mistake]:
        # The study's reader knows the workloads' options and has checked names and levels.
        return []

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(_job_change(knob, level) for knob, level in levels.items())

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [self._from_job(knob, level, running) for knob, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """The tally repeats what was driven: clients that never connected would show here."""
        knob = evidence.factor.removeprefix("workload.")
        if knob not in _JOB_KNOBS or running.tally is None:
            return evidence
        driven: int = getattr(running.tally, knob)
        shown = Reading(value=level_text(driven), source=f"tally: {knob}")
        if getattr(running.setup.job, knob) not in (0, driven):
            reason = f"asked for {evidence.requested}, the driver drove {driven}"
            return evidence.model_copy(update={"exercised": shown, "in_effect": False, "reason": reason})
        return evidence.model_copy(update={"exercised": shown})

    def _from_job(self, knob: str, level: Level, running: Running) -> Evidence:
        job = running.setup.job.model_dump(mode="json", exclude_unset=True)
        where = job if knob in _JOB_KNOBS else job["load"] if knob in _LOAD_KNOBS else job["options"]
        wanted = _LOAD_KNOBS[knob][1](level) if knob in _LOAD_KNOBS else level
        found = where[knob]
        shown = json.dumps(found) if isinstance(found, dict) else level_text(found)
        reading = Reading(value=shown, source="the driver's job")
        return Evidence(
            factor=f"workload.{knob}",
            requested=level_text(level),
            accepted=reading,
            effective=reading,
            in_effect=found == json.loads(json.dumps(wanted)),
        )


def _job_change(knob: str, level: Level) -> JobChange:
    if knob in _JOB_KNOBS:
        return JobChange({knob: level})
    if knob in _LOAD_KNOBS:
        kind, read = _LOAD_KNOBS[knob]
        return JobChange({"kind": kind, knob: read(level)}, "load")
    return JobChange({knob: level}, "options")
