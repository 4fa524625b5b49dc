"""The workload layer: clients, rate and the workload's own options, proved by what the driver says it
drove."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines.base import Engine, Installation
from dbdyno.errors import Mistake
from dbdyno.layers.base import Running, Setup
from dbdyno.record import Evidence, Level, Reading
from dbdyno.study import Factor, level_text

_JOB_KNOBS = ("clients", "threads")
"""Knobs that stand in the job itself; all others but the rate are options of the workload."""


class WorkloadLayer:
    """`workload.NAME = VALUE` changes the load, not the server."""

    name = "workload"
    needs_fresh_data = False

    def mistakes(self, factor: Factor, engine: Engine, installation: Installation | None) -> list[Mistake]:
        # The study's reader knows the workloads' options and has checked names and levels.
        return []

    def put(self, levels: Mapping[str, Level], setup: Setup) -> None:
        for knob, level in levels.items():
            if knob in _JOB_KNOBS:
                setup.job[knob] = level
            elif knob in ("rate_per_s", "arrivals"):
                setup.job["load"] = {**setup.job["load"], "kind": "open", knob: level}
            else:
                setup.job["options"] = {**setup.job["options"], knob: level}

    def placed(self, setup: Setup) -> None:
        """Nothing of this layer depends on where the data lie."""

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [self._from_job(knob, level, running) for knob, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """The tally repeats what was driven: clients that never connected would show here."""
        knob = evidence.factor.removeprefix("workload.")
        driven = running.tally.get(knob)
        if driven is None:
            return evidence
        shown = Reading(value=level_text(driven), source=f"tally: {knob}")
        if knob in _JOB_KNOBS and running.setup.job[knob] not in (0, driven):
            reason = f"asked for {evidence.requested}, the driver drove {driven}"
            return evidence.model_copy(update={"exercised": shown, "in_effect": False, "reason": reason})
        return evidence.model_copy(update={"exercised": shown})

    def _from_job(self, knob: str, level: Level, running: Running) -> Evidence:
        job = running.setup.job
        where = job if knob in _JOB_KNOBS else job["load"] if knob in job["load"] else job["options"]
        reading = Reading(value=level_text(where[knob]), source="the driver's job")
        return Evidence(
            factor=f"workload.{knob}",
            requested=level_text(level),
            accepted=reading,
            effective=reading,
            in_effect=where[knob] == level,
        )
