"""Pairs of slices on a server that runs: one setup against itself, under one binding after another."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence

from dbdyno.calibrate.binding import ALL, Binding
from dbdyno.calibrate.finding import Pair
from dbdyno.host.process import bind
from dbdyno.layers.setup import Running
from dbdyno.study.trials import SETTLE_S

ROUNDS_LEAST = 6
Pairs = dict[Binding, list[Pair]]
"""By binding, in the order in which they are given."""


def measured(
    running: Running,
    bindings: Sequence[Binding],
    seconds: float,
    draw: random.Random,
    clock: Callable[[], float] = time.monotonic,
) -> Pairs:
    """As many rounds as `seconds` hold; a round has one pair of each binding, in an order that it draws.

    A binding in which a slice ended no transaction is left out, because that slice has no speed.
    """
    pairs: Pairs = {each: [] for each in bindings}
    over, rounds = clock() + seconds, 0
    while pairs and (rounds < ROUNDS_LEAST or clock() < over):
        for each in draw.sample(list(pairs), len(pairs)):
            _bind(running, each)
            if pair := _pair(running, each, seed=rounds):
                pairs[each].append(pair)
            else:
                del pairs[each]
        rounds += 1
    return pairs


def _bind(running: Running, binding: Binding) -> None:
    """Moves server and driver to the binding's CPUs while they run."""
    launch, load_launch = running.setup.launch, running.setup.load_launch
    bind(running.process_ids, _cpus(binding.server, launch.affinity))
    if not running.setup.engine.embedded:
        bind((running.load.process_id,), _cpus(binding.driver, load_launch.affinity))


def _cpus(listed: str, started_on: Sequence[int]) -> set[int]:
    """The CPUs of a list; all are those that the process was started on."""
    if listed == ALL:
        return set(started_on) or os.sched_getaffinity(0)
    bounds = [part.split("-") for part in listed.split(",")]
    return {cpu for ends in bounds for cpu in range(int(ends[0]), int(ends[-1]) + 1)}


def _pair(running: Running, binding: Binding, seed: int) -> Pair | None:
    job = running.setup.job.but(
        ramp_s=0.0,
        warmup_s=SETTLE_S,
        duration_s=binding.slice_s,
        gather="on" if binding.gather else "off",
        seed=seed,
    )
    first, second = running.load.run(job), running.load.run(job)
    if not (first.operations and second.operations):
        return None
    saturated = sum(tally.saturated is not None for tally in (first, second))
    return Pair(first_per_s=first.throughput_per_s, second_per_s=second.throughput_per_s, saturated=saturated)
