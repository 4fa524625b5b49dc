"""The stage that puts the load on a server, or lets it rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from dbdyno.errors import ServerFailed
from dbdyno.layers.setup import Running
from dbdyno.study.phases import Phase

T = TypeVar("T")
AtWork = Callable[[], AbstractContextManager[object]]
"""What surrounds each stretch in which the load is on the server."""
LOOK_EVERY_S = 0.5
"""How long a server that rests may be gone before that is noticed."""


Steps = Generator[int | None, bool | None, T]
"""What stops where another trial may have a turn. It gives how many transactions its clients have been told
of, where a load waits, and True sent to it ends that load."""


def drive(running: Running, phase: Phase, at_work: AtWork) -> Steps[Running]:
    """Puts the phase's load on the server, with the engine's own counters read right before and right after
    it. Stops before each of its slices, so that another server can have one meanwhile.

    A phase that rests has neither load nor tally. Raises ServerFailed where the server dies of that.
    """
    told = running.told_so_far
    if phase.rests:
        with at_work():
            _rest(running, phase.duration_s)
        return replace(running, tally=None, told=told)
    job = running.setup.job.but(
        clients=phase.clients or running.setup.job.clients,
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
        over = yield running.load.told.acknowledged if running.load.told else None
        with at_work():
            tally = running.load.end() if over else running.load.go_on()
    return replace(running, tally=tally, told=told, status_before=before, status_after=running.status())


def _rest(running: Running, duration_s: float) -> None:
    over_s = time.monotonic() + duration_s
    while (left_s := over_s - time.monotonic()) > 0.0:
        if not running.server.alive():
            raise ServerFailed("the server died while it rested", log=running.server.log())
        time.sleep(min(left_s, LOOK_EVERY_S))
