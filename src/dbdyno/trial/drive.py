"""The stage that puts the load on a server."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import replace

from dbdyno.layers.setup import Running
from dbdyno.study.phases import Phase

AtWork = Callable[[], AbstractContextManager[object]]
"""What surrounds each stretch in which the load is on the server."""


def drive(running: Running, phase: Phase, at_work: AtWork) -> Generator[None, None, Running]:
    """Puts the phase's load on the server, with the engine's own counters read right before and right after
    it. Stops before each of its slices, so that another server can have one meanwhile."""
    job = running.setup.job.but(
        ramp_s=phase.ramp_s,
        warmup_s=phase.warmup_s,
        duration_s=phase.duration_s,
        slices=phase.slices,
        settle_s=phase.settle_s,
    )
    with at_work():
        before = running.status()
        tally = running.load.begin(job)
    while tally is None:
        yield
        with at_work():
            tally = running.load.go_on()
    return replace(
        running,
        tally=tally,
        told=running.told_so_far,
        status_before=before,
        status_after=running.status(),
    )
