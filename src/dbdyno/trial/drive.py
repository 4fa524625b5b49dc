"""The stage that puts the load on a server."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.layers.setup import Running
from dbdyno.study.phases import Phase


def drive(running: Running, phase: Phase) -> Running:
    """Puts the phase's load on the server, with the engine's own counters read right before and right after
    it."""
    times = {"ramp_s": phase.ramp_s, "warmup_s": phase.warmup_s, "duration_s": phase.duration_s}
    before = running.status()
    tally = running.load.run(running.setup.job.model_copy(update=times))
    earlier = (*running.earlier, *([running.tally] if running.tally else []))
    return replace(running, tally=tally, earlier=earlier, status_before=before, status_after=running.status())
