"""A tally of what another tool counted. What its logs do not tell is absent, or empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dbdyno.driver.tally import Cpu, CpuPerOperation, FineSeries, Kind, Latency, Second, Tally
from dbdyno.imported.histogram import encode

Integers = npt.NDArray[np.int64]
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
UNKNOWN_CPU = CpuPerOperation(user=None, system=None)


@dataclass(frozen=True)
class Counted:
    """What the logs of one repetition hold. Without single latencies there is no `histogram`. `remarks` tell
    what a reader of the figures must know."""

    tool: str
    started_unix_s: float
    duration_s: float
    operations: int
    latency: Latency
    clients: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    seconds: Sequence[Second] = ()
    intervals: FineSeries | None = None
    histogram: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def tally(self) -> Tally:
        return Tally(
            workload=self.tool,
            protocol="",
            server_version="",
            backend=self.tool,
            gather=None,
            gathered_share=None,
            sched_batch=None,
            gather_us_max=0,
            threads=0,
            clients=self.clients,
            seed=0,
            started_unix_s=self.started_unix_s,
            warmup_s=0.0,
            duration_s=self.duration_s,
            operations=self.operations,
            throughput_per_s=self.operations / self.duration_s,
            rows_read=0,
            bytes_received=0,
            bytes_sent=0,
            errors=dict(self.errors),
            retries=self.retries,
            rollbacks=0,
            acknowledged=self.operations,
            unknown=0,
            clients_lost=0,
            error_examples={},
            unfinished=0,
            by_client=None,
            start={},
            latency_us=self.latency,
            failed_latency_us=None,
            by_transaction=dict(self.kinds),
            by_statement={},
            driver_cpu_us_per_op=UNKNOWN_CPU,
            driver_cpu_s=Cpu(user=0.0, system=0.0),
            driver_busy_share=(),
            driver_run_wait_share=(),
            engine_cpu_s=None,
            system_calls_per_op=None,
            saturated=None,
            open_loop=None,
            series=tuple(self.seconds),
            fine_series=self.intervals,
            slices=(),
            recall=None,
            phases=(),
            replay=None,
            histogram=self.histogram,
            failed_histogram="",
            histogram_unit="us",
            interrupted=False,
        )


def latency_of(values_us: Integers, counts: Integers) -> Latency:
    """The distribution of `counts` latencies at rising `values_us`: exact percentiles, by nearest rank."""
    total = int(counts.sum())
    if total == 0:
        return summary(0, 0.0)
    whole = float((values_us * counts).sum())
    reached = np.cumsum(counts)
    ranks = {name: max(1, int(np.ceil(share * total - 1e-9))) for name, share in SHARES.items()}
    points = {name: float(values_us[np.searchsorted(reached, rank)]) for name, rank in ranks.items()}
    return summary(total, whole, low=float(values_us[0]), high=float(values_us[-1]), **points)


def summary(
    count: int, total_us: float, low: float | None = None, high: float | None = None, **points: float
) -> Latency:
    """A distribution of which so much alone is known."""
    known = {name: points.get(name) for name in SHARES}
    mean = total_us / count if count else None
    return Latency(count=count, sum=total_us, mean=mean, min=low, max=high, **known)


def distribution(latencies_us: Integers) -> tuple[Latency, str]:
    """Of single latencies, and their histogram."""
    values, counts = np.unique(latencies_us, return_counts=True)
    return latency_of(values, counts), encode(values, counts)
