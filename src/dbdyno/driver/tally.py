"""What the driver counted: the same shape as the `Tally` of `crates/driver/src/count/tally.rs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dbdyno.frozen import Frozen
from dbdyno.passwords import without_passwords

Gather = Literal["off", "on", "when_crowded"]
"""Whether the driver lets the server go first, see docs/concepts/driver.md. Only the first two are constant
through a run."""


class Latency(Frozen):
    """Latencies in microseconds: how many, their sum, mean and percentiles; None where there was none."""

    count: int
    sum: float
    mean: float | None
    min: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None
    p99_99: float | None
    max: float | None


class TransactionType(Frozen):
    """One type of transaction. `acknowledged` includes the warm-up."""

    operations: int
    throughput_per_s: float
    acknowledged: int
    latency_us: Latency


class Statement(Frozen):
    """The statements of one kind: the latencies of all that were answered, and how many of these answers were
    errors."""

    errors: int
    latency_us: Latency


class ByClient(Frozen):
    """The fewest and the most transactions of the measured part that a client had done, those over its
    borders by their shares."""

    least: float
    most: float


class CpuTime(Frozen):
    """CPU time in seconds."""

    user: float
    system: float


class CpuPerOperation(Frozen):
    """CPU time in microseconds per operation; None where there was no operation."""

    user: float | None
    system: float | None


class OpenLoop(Frozen):
    """How an open loop's rate was kept. A backlog is of arrivals that no client has taken."""

    offered_per_s: float
    achieved_per_s: float
    backlog_max: int
    backlog_end: int
    kept: bool


class Second(Frozen):
    """One second, counted from the start of the measured part: negative in the warm-up. Latencies in us."""

    second: int
    phase: Literal["warmup", "measured"]
    operations: int
    errors: int
    p50_us: float
    p99_us: float
    max_us: float


class FineSeries(Frozen):
    """How many transactions ended in each interval of `interval_s`. The first one begins `start_s` after the
    start of the measured part: before it where there is a warm-up."""

    interval_s: float
    start_s: float
    operations: tuple[int, ...]


class Slice(Frozen):
    """One slice of the measured part; other servers may have had theirs before the next one began."""

    started_unix_s: float
    duration_s: float
    operations: int
    throughput_per_s: float


class Recall(Frozen):
    """How good approximate answers were, 0 to 1. `p5`: one answer in 20 had this recall or less."""

    count: int
    mean: float
    min: float
    p1: float
    p5: float
    p10: float
    p50: float


class WorkloadPhase(Frozen):
    """One of the phases that a workload has by itself; `operations_per_s` is None where it did not end."""

    name: str
    operations: int
    duration_s: float
    operations_per_s: float | None


class Failed(Frozen):
    """How often statements of one kind failed with one error."""

    statement: str
    error: str
    count: int


class Replay(Frozen):
    """What became of a recording that was played. `recorded_s` is how long the part that was played took when
    it was recorded, `planned_s` how long it takes at `speed` where nothing is late; both are None where it is
    played without pauses. `took_s` lasts from the beginning to the last answer.

    Of the measured part: `statements` were sent, and `unsent` were not, because their session was refused or
    lost, or because the replay was ended. `late_by_server` began late because the server had not answered the
    one before, `late_by_driver` because the driver was late; a lag has a share of each. `failed` did not fail
    when they were recorded. Of `rows_compared` the log tells how many rows they had, and `rows_differ` had
    another number, `differing` by kind.
    """

    recorded_s: float
    speed: float | None
    planned_s: float | None
    took_s: float
    sessions: int
    sessions_refused: int
    sessions_lost: int
    statements: int
    unsent: int
    late_by_server: int
    late_by_driver: int
    server_lag_us: Latency
    driver_lag_us: Latency
    failed: tuple[Failed, ...]
    rows_compared: int
    rows_differ: int
    differing: dict[str, int]


class Acknowledged(Frozen):
    """What clients were told in one run or in several that followed one another: the invariants compare it
    with the data. `start` is what the first of them found; empty where it did not look."""

    acknowledged: int = 0
    unknown: int = 0
    by_transaction: dict[str, int] = Field(default_factory=dict)
    start: dict[str, int] = Field(default_factory=dict)

    @classmethod
    def by(cls, tallies: Iterable[Tally]) -> Acknowledged:
        """The sum over runs that followed one another, in this order. Their times do not tell it, because
        somebody may have set the clock between two of them."""
        return reduce(Acknowledged.plus, map(cls._in, tallies), cls())

    @classmethod
    def _in(cls, tally: Tally) -> Acknowledged:
        return cls(
            acknowledged=tally.acknowledged,
            unknown=tally.unknown,
            by_transaction={name: kind.acknowledged for name, kind in tally.by_transaction.items()},
            start=tally.start,
        )

    def plus(self, later: Acknowledged) -> Acknowledged:
        """With what clients were told in later runs."""
        names = dict.fromkeys([*self.by_transaction, *later.by_transaction])
        return Acknowledged(
            acknowledged=self.acknowledged + later.acknowledged,
            unknown=self.unknown + later.unknown,
            by_transaction={
                name: self.by_transaction.get(name, 0) + later.by_transaction.get(name, 0) for name in names
            },
            start=self.start or later.start,
        )


class Tally(Frozen):
    """All that the driver counted in one run.

    Everything is of the measured part, but for `acknowledged` and `unknown`, which include the warm-up, and
    `series`, which begins with it; a measured part of less than 20 s has a `fine_series` as well.
    `operations` ended in it. `throughput_per_s` is of shares: a transaction counts by how much of the time
    that its client was busy with it lies in the measured part (`crates/driver/src/count/recorder.rs` says
    why), so it need not be `operations` over `duration_s`. A latency belongs to the moment at which its
    transaction was due (open loop) or started: `unfinished` counts those of the measured part that were not
    done at its end or were lost with their connection, and their latencies are at least the time that they
    had waited. What failed and was not tried again is in none of that: `failed_latency_us` and
    `failed_histogram` are its own, None and empty where they were not counted. `error_examples` has what
    the first error of each kind said, with its file and line. `histogram` holds the
    latencies in `histogram_unit` (HdrHistogram V2, deflated, base64). Lists by thread are in the order of the
    threads. `gather` is what the job asked for where nothing but answers started transactions, "off"
    elsewhere; `gathered_share` of the time answers could lie, at most for `gather_us_max`; `sched_batch` says
    that threads ran under SCHED_BATCH. `start` holds counts and sums
    of the data from before the run. `slices` are those of a load that waited between them: `duration_s` is
    then their sum, and the seconds of `series` follow one another without the waits. `saturated`
    says why the driver was the limit, where it was. `replay` is there where a recording was played.
    `by_statement` has the statements that were sent in the measured part by their text without its values,
    those that took the most time in all first; it is empty unless the job asks for it.
    """

    workload: str
    protocol: str
    server_version: str
    backend: str
    gather: Gather | None
    gathered_share: float | None
    sched_batch: bool | None
    gather_us_max: int
    threads: int
    clients: int
    seed: int
    started_unix_s: float
    warmup_s: float
    duration_s: float
    operations: int
    throughput_per_s: float
    rows_read: int
    bytes_received: int
    bytes_sent: int
    errors: dict[str, int]
    error_examples: dict[str, Annotated[str, AfterValidator(without_passwords)]]
    retries: int
    rollbacks: int
    acknowledged: int
    unknown: int
    clients_lost: int
    unfinished: int
    by_client: ByClient | None
    start: dict[str, int]
    latency_us: Latency
    failed_latency_us: Latency | None
    by_transaction: dict[str, TransactionType]
    by_statement: dict[str, Statement]
    driver_cpu_us_per_op: CpuPerOperation
    driver_cpu_s: CpuTime
    driver_busy_share: tuple[float, ...]
    driver_run_wait_share: tuple[float, ...]
    engine_cpu_s: float | None
    system_calls_per_op: float | None
    saturated: str | None
    open_loop: OpenLoop | None
    series: tuple[Second, ...]
    fine_series: FineSeries | None
    slices: tuple[Slice, ...]
    recall: Recall | None
    phases: tuple[WorkloadPhase, ...]
    replay: Replay | None
    histogram: str
    failed_histogram: str
    histogram_unit: str
    interrupted: bool

    @property
    def work(self) -> float:
        """Transactions of the measured part, those over its borders by their shares: what else the same time
        held, CPU time for instance, belongs to these."""
        return self.throughput_per_s * self.duration_s

    @property
    def failed(self) -> int:
        """How many transactions failed and were not tried again; in older records as many as there were
        errors that were not followed by another try."""
        if self.failed_latency_us is not None:
            return self.failed_latency_us.count
        return max(0, sum(self.errors.values()) - self.retries)

    @property
    def failed_share(self) -> float:
        """Of all transactions that ended, well or not."""
        return self.failed / max(1, self.failed + self.operations)

    @property
    def windows(self) -> tuple[tuple[float, float], ...]:
        """When the load was measured: from and to, in unix time, of each slice or of the one piece."""
        if self.slices:
            return tuple((one.started_unix_s, one.started_unix_s + one.duration_s) for one in self.slices)
        start_s = self.started_unix_s + self.warmup_s
        return ((start_s, start_s + self.duration_s),)


_NOT_ALWAYS_COUNTED: Mapping[str, Any] = {
    "gather": None,
    "gathered_share": None,
    "sched_batch": None,
    "gather_us_max": 0,
    "clients_lost": 0,
    "unfinished": 0,
    "by_client": None,
    "by_statement": {},
    "error_examples": {},
    "start": {},
    "slices": (),
    "failed_latency_us": None,
    "failed_histogram": "",
    "driver_run_wait_share": (),
    "fine_series": None,
    "recall": None,
    "phases": (),
    "replay": None,
}
"""What the tallies of older drivers need not have, and what stands in its place."""


def _of_any_driver(tally: Any) -> Any:
    if not isinstance(tally, Mapping):
        return tally
    known = {name: value for name, value in tally.items() if name in Tally.model_fields}
    whole_s = tally.get("duration_s")
    kinds, slices = tally.get("by_transaction"), tally.get("slices")
    if isinstance(kinds, Mapping):
        known["by_transaction"] = {name: _with_rate(kind, whole_s) for name, kind in kinds.items()}
    if isinstance(slices, Sequence):
        known["slices"] = [_with_rate(one, one["duration_s"]) for one in slices]
    return {**_NOT_ALWAYS_COUNTED, **known}


def _with_rate(counted: Any, duration_s: Any) -> Any:
    """What older drivers counted whole has the rate that they meant."""
    if not isinstance(counted, Mapping) or "throughput_per_s" in counted:
        return counted
    return {**counted, "throughput_per_s": counted["operations"] / duration_s if duration_s else 0.0}


StoredTally = Annotated[Tally, BeforeValidator(_of_any_driver)]
"""A tally in a record, of whatever version of the driver: what was not counted then is empty, and what is
not counted any more is left out."""
