"""A trial under perf: carried out like any other, and sampled while its load runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dbdyno.driver.tally import Tally
from dbdyno.errors import DynoError
from dbdyno.host.cache import scratch
from dbdyno.host.perf import PROBES_MOST_S, Sample, Sampler
from dbdyno.layers.setup import Running
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Study

Beside = Callable[[Running], AbstractContextManager[object]]
"""What looks on while the load runs."""


@dataclass(frozen=True)
class Sampled:
    """The samples of a trial's measured part, as (weight, frames from root to leaf), and the CPU time per
    operation that the kernel counted in the same trial. `way` is how perf found the callers."""

    variant: str
    samples: tuple[tuple[int, tuple[tuple[str, str], ...]], ...]
    cpu_us_per_op: float
    way: str


def with_time_to_probe(study: Study) -> Study:
    """The study with a warm-up in which the ways to find callers can be tried."""
    warmup_s = max(study.workload.warmup_s, PROBES_MOST_S + 1.0)
    return study.but(workload=study.workload.but(warmup_s=warmup_s))


def sampled(carry_out: Callable[[Beside], Record], embedded: bool) -> Sampled:
    """Samples a trial while `carry_out` carries it out. Raises DynoError for one that was not measured."""
    with scratch("profile") as folder:
        sampler = Sampler(folder)
        ahead_s = time.time() - time.monotonic()

        def beside(running: Running) -> AbstractContextManager[object]:
            nonlocal ahead_s
            ahead_s = time.time() - time.monotonic()
            return sampler.on(running.process_ids)

        record = carry_out(beside)
        if record.outcome is not Outcome.MEASURED or record.tally is None:
            raise DynoError(f"{record.variant} could not be profiled: {record.cause}", record.remedy)
        own = "driver_cpu_us_per_op" if embedded else ""
        spent = [metrics.find(name).read(record) for name in ("server_cpu_us_per_op", own) if name]
        measured = _measured_part(list(sampler.samples()), record.tally, ahead_s)
        return Sampled(
            variant=record.variant,
            samples=tuple((one.weight, one.frames) for one in measured),
            cpu_us_per_op=sum(value or 0.0 for value in spent),
            way=sampler.way.name,
        )


def _measured_part(samples: list[Sample], tally: Tally, ahead_s: float) -> list[Sample]:
    """Without the warm-up. perf's clock is the monotonic one, the tally's is unix time, which was so much
    ahead when the load began: a clock may have been set since."""
    start_s = tally.started_unix_s + tally.warmup_s - ahead_s
    return [one for one in samples if start_s <= one.time_s <= start_s + tally.duration_s]
