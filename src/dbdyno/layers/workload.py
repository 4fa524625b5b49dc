"""The workload layer: clients, rate and the workload's own options, proved by what the driver says it
drove."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.datasets import SET_FILE, VECTOR_SEARCH, placed
from dbdyno.driver.job import Closed, Job, Open, Schedule, ThinkTime
from dbdyno.driver.load import files_read
from dbdyno.engines.engine import Engine
from dbdyno.errors import Mistake
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.layer import GivenUp
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor, pacing
from dbdyno.study.files import FileKind, NamedFile

_JOB_KNOBS = ("clients", "threads")
"""Knobs that stand in the job itself."""


def _as_it_is(level: Level) -> Level:
    return level


Pace = Level | Schedule | ThinkTime

_LOAD_KNOBS: Mapping[str, tuple[type[Open | Closed], Callable[[Level], Pace]]] = {
    "rate_per_s": (Open, _as_it_is),
    "arrivals": (Open, _as_it_is),
    "schedule": (Open, pacing.schedule),
    "think_time": (Closed, pacing.think_time),
}
"""Knobs of when transactions start: the kind of load they make, and their form in the job. All others are
options of the workload."""


def files_of_workload(workload: str, options: Mapping[str, Level], folder: Path) -> tuple[NamedFile, ...]:
    """The files that a workload with these options reads in a study's folder."""
    if workload == VECTOR_SEARCH:
        return _vectors(str(options.get("dataset", "")), folder)
    read = files_read(workload, options, folder)
    return tuple(NamedFile(FileKind.WORKLOAD, one.name, one.option, one.named_at) for one in read)


def _vectors(dataset: str, folder: Path) -> tuple[NamedFile, ...]:
    """The file of vectors, or what a folder of them says of itself; none for a set that Dyno keeps."""
    path = Path(placed(dataset, folder))
    if path.is_dir() and dataset:
        return (NamedFile(FileKind.VECTORS, str(Path(dataset) / SET_FILE), "dataset"),)
    return (NamedFile(FileKind.VECTORS, dataset, "dataset"),) if path.suffix else ()


@dataclass(frozen=True)
class DriverChange(Request):
    """A knob of the driver's job, or of its load or its workload's options, and the level it gets."""

    knob: str
    level: Level

    def apply(self, setup: Setup) -> None:
        setup.job = _changed(setup.job, self.knob, self.level)


class WorkloadLayer:
    """`workload.NAME = VALUE` changes the load, not the server."""

    name = "workload"
    related: Mapping[str, tuple[str, ...]] = {"clients": ("cpu.usable_cores",)}

    def in_production(self, knob: str) -> bool:
        return False

    def mistakes(
        self,
        factor: Factor,
        engine: Engine,
        installation: Installation | None,
        allowed: Allowed = NOTHING_ALLOWED,
    ) -> list[Mistake]:
        # The study's reader knows the workloads' options and has checked names and levels.
        return []

    def gives_up(
        self, knob: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None
    ) -> GivenUp | None:
        """Nothing: a load is not the server's."""
        return None

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(DriverChange(knob, level) for knob, level in levels.items())

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
            return evidence.but(exercised=shown, in_effect=False, reason=reason)
        return evidence.but(exercised=shown)

    def _from_job(self, knob: str, level: Level, running: Running) -> Evidence:
        found = _found(running.setup.job, knob)
        wanted = _LOAD_KNOBS[knob][1](level) if knob in _LOAD_KNOBS else level
        reading = Reading(value=_shown(found), source="the driver's job")
        return Evidence(
            factor=f"workload.{knob}",
            requested=level_text(level),
            accepted=reading,
            effective=reading,
            in_effect=found == wanted,
        )


def _changed(job: Job, knob: str, level: Level) -> Job:
    """The job with one knob at its level. A knob of the other kind of loop changes the load to that kind."""
    if knob in _JOB_KNOBS:
        return job.but(**{knob: level})
    if knob in _LOAD_KNOBS:
        kind, read = _LOAD_KNOBS[knob]
        kept = dict(job.load) if isinstance(job.load, kind) else {}
        return job.but(load=kind.model_validate({**kept, knob: read(level)}))
    return job.but(options={**job.options, knob: level})


def _found(job: Job, knob: str) -> Pace | None:
    """What the job has for a knob; None where its load is of the other kind of loop."""
    where = job if knob in _JOB_KNOBS else job.load if knob in _LOAD_KNOBS else None
    found: Pace | None = getattr(where, knob, None) if where is not None else job.options[knob]
    return found


def _shown(found: Pace | None) -> str:
    if found is None:
        return "nothing"
    return json.dumps(found.model_dump()) if isinstance(found, Frozen) else level_text(found)


WORKLOAD = WorkloadLayer()
