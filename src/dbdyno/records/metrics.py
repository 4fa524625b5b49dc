"""The metrics: what a goal may name and a report may show. Each is made here, from one record.

The gauges: what a server holds at a moment, and is watched for in a soak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from statistics import fmean, median, stdev

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver.link import LoadHost
from dbdyno.driver.tally import Latency, Tally
from dbdyno.errors import UserError
from dbdyno.records.amplification import OF_ROWS
from dbdyno.records.meanwhile import OF_ACTS, Acts
from dbdyno.records.record import INSTRUCTIONS, Record
from dbdyno.study.nouns import CAPACITY, TPCC
from dbdyno.study.soak import Act

FAILED_SHARE, FAILED_SHARE_MAX = "failed_share", 1e-4
RETRIES = "retries_per_op"
"""Where more fails, a percentile is said to be of the transactions that succeeded."""
RECALL_LEAST = 0.9
"""What an approximate search must find to count as an answer, by the habit of its field."""


class Direction(StrEnum):
    """Which way a metric gets better."""

    HIGHER = "higher"
    LOWER = "lower"


class ValueFormat(StrEnum):
    """How values are written. `NUMBER` has four significant digits; `BYTES` has a binary unit of its own, and
    `MICROSECONDS` the unit of time that a person would take."""

    NUMBER = "number"
    BYTES = "bytes"
    MICROSECONDS = "microseconds"


@dataclass(frozen=True)
class Metric:
    """One metric. `definition` is a sentence that says how a value is made; `read` makes it, or gives None
    where the record does not hold what it needs. One that is made of transactions of a single kind names that
    `transaction`, so that only workloads with it have the metric. One that is `of_successes` gets better by
    itself where more fails, because what fails is then no part of it."""

    name: str
    title: str
    unit: str
    direction: Direction
    definition: str
    read: Callable[[Record], float | None]
    style: ValueFormat = ValueFormat.NUMBER
    transaction: str = ""
    of_successes: bool = False

    @property
    def higher_is_better(self) -> bool:
        return self.direction is Direction.HIGHER

    def format(self, value: float) -> str:
        """The value without its unit; bytes carry theirs."""
        return bytes_text(value) if self.style is ValueFormat.BYTES else number_text(value)


def find(name: str) -> Metric:
    """The metric of this name. Raises UserError for a name that does not exist."""
    if name not in METRICS:
        close = get_close_matches(name, METRICS, n=1)
        guess = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"unknown metric {name!r}", f"{guess}there are: {', '.join(METRICS)}")
    return METRICS[name]


def number_text(value: float) -> str:
    """A number with four significant digits, all digits of its whole part, and thousands set apart."""
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{value:.3e}") if abs(value) < 1000 else round(value)
    decimals = 0 if rounded == 0 else max(0, 3 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{min(decimals, 9)}f}"


def bytes_text(value: float) -> str:
    """Bytes with a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{number_text(value) if unit != 'B' else f'{value:,.4g}'} {unit}"
        value /= 1024
    return f"{number_text(value)} TiB"


def microseconds_text(value: float) -> str:
    """Microseconds in the unit that a person would take: `-6.9 s` for -6,903,022."""
    for unit in ("us", "ms"):
        if abs(value) < 1000.0:
            return f"{value:.3g} {unit}"
        value /= 1000.0
    return f"{value:.3g} s" if abs(value) < 1000.0 else f"{value:,.0f} s"


def _share(part: float | None, whole: float | None) -> float | None:
    """`part` / `whole`; None where either is missing or nothing was done."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def _counted(read: Callable[[Tally], float | None]) -> Callable[[Record], float | None]:
    """What the driver's tally alone tells."""
    return lambda record: None if record.tally is None else read(record.tally)


OBSERVED_ABOVE = 10
"""A percentile needs so many transactions that took longer. One that fewer take longer than lies too low, by
more the fewer there are, so a variant that does half as many transactions would seem to answer sooner."""
SHARES_ABOVE = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p99_9": 0.001}
"""Of the transactions, by the name that the driver's tally has for the percentile."""


def latency_ms(latency: Latency, point: str) -> float | None:
    """A point of some latencies in milliseconds; None where too few lie above it."""
    value: float | None = getattr(latency, point)
    above = SHARES_ABOVE.get(point)
    # Rounded, because a tenth of 100 must not be less than ten.
    enough = latency.count if above is None else round(above * latency.count, 6) >= OBSERVED_ABOVE
    return value / 1000 if enough and value is not None else None


def _latency_ms(point: str) -> Callable[[Record], float | None]:
    return _counted(lambda tally: latency_ms(tally.latency_us, point))


def _per_operation(*totals: str, times: float = 1.0) -> Callable[[Record], float | None]:
    """The sum of the observation's totals over the operations of the same measured part."""

    def read(record: Record) -> float | None:
        seen = record.observation.totals if record.observation else {}
        if record.tally is None or any(name not in seen for name in totals):
            return None
        per_operation = _share(sum(seen[name] for name in totals), record.tally.work)
        return None if per_operation is None else per_operation * times

    return read


def _per_acknowledged(name: str) -> Callable[[Record], float | None]:
    """What was counted over the whole load, warm-up included, over the operations of that."""

    def read(record: Record) -> float | None:
        seen = record.observation.totals if record.observation else {}
        return _share(seen.get(name), record.tally.acknowledged) if record.tally else None

    return read


def _of_load_host(read: Callable[[LoadHost], float]) -> Callable[[Record], float | None]:
    """What is known of the host that the load came from, of several the highest value; None where that is the
    server's host."""
    return lambda record: max(map(read, record.load_hosts), default=None)


def _instructions_per_operation(record: Record) -> float | None:
    if record.instructions is not None:
        return record.instructions.per_op[INSTRUCTIONS]
    return _per_operation("instructions")(record)


def _total(name: str, times: float = 1.0) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        value = record.observation.totals.get(name) if record.observation else None
        return None if value is None else value * times

    return read


def _ratio_of(part: str, whole: str) -> Callable[[Record], float | None]:
    """One of the observation's totals over another one."""

    def read(record: Record) -> float | None:
        seen = record.observation.totals if record.observation else {}
        return _share(seen.get(part), seen.get(whole))

    return read


def _driver_cpu(tally: Tally) -> float | None:
    spent = tally.driver_cpu_us_per_op
    return None if spent.user is None or spent.system is None else spent.user + spent.system


def _per_s_of(workload: str, transaction: str, times: float = 1.0) -> Callable[[Record], float | None]:
    """Transactions of one type of a built-in workload per second, `times` as many. A user's own may have the
    same name, and is something else."""

    def read(tally: Tally) -> float | None:
        kind = tally.by_transaction.get(transaction) if tally.workload == workload else None
        return kind.throughput_per_s * times if kind and tally.duration_s > 0 else None

    return _counted(read)


def _queries_at_recall(record: Record) -> float | None:
    recall = _recall(record)
    return None if recall is None or recall < RECALL_LEAST else _per_s_of(VECTOR_SEARCH, "search")(record)


def whole_seconds(tally: Tally) -> tuple[list[int], list[float]]:
    """The seconds of a tally's series and the operations in each, without gaps.

    Seconds that were not measured whole, at either end, are left out; a second in which nothing was finished
    has no point in the tally, and is one of no operations.
    """
    counted = {point.second: float(point.operations) for point in tally.series}
    if not counted:
        return [], []
    first = max(min(counted), -math.floor(tally.warmup_s))
    seconds = list(range(first, min(max(counted) + 1, math.floor(tally.duration_s))))
    return seconds, [counted.get(second, 0.0) for second in seconds]


SECONDS_LEAST = 5
"""Of fewer seconds nobody can say how they scatter."""


def _over_seconds(told: Callable[[list[float]], float | None]) -> Callable[[Record], float | None]:
    """What is told of the operations in each whole second of the measured part; None of too few seconds."""

    def read(tally: Tally) -> float | None:
        counts = [count for second, count in zip(*whole_seconds(tally), strict=True) if second >= 0]
        return told(counts) if len(counts) >= SECONDS_LEAST else None

    return _counted(read)


def _variation(counts: list[float]) -> float | None:
    return _share(stdev(counts), fmean(counts))


def _recall(record: Record) -> float | None:
    return record.tally.recall.mean if record.tally and record.tally.recall else None


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _of_acts(read: Callable[[Tally, Acts], float | None]) -> Callable[[Record], float | None]:
    """What is made of a load and of the acts beside it."""

    def of_record(record: Record) -> float | None:
        phase = record.measured_phase
        return read(phase.tally, phase.meanwhile) if phase and phase.tally else None

    return of_record


def _ready_after(act: Act) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        return median_of(one.ready_s for one in record.recoveries if one.act is act)

    return read


def _full_speed_after(act: Act) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        return median_of(time_s for one, time_s in record.rounds if one.act is act)

    return read


def _stop_s(record: Record) -> float | None:
    return median_of(one.stop_s for one in record.recoveries)


_UNTIL_READY = "Time from the start of the server's process until it answered a first question,"
_UNTIL_FULL_SPEED = (
    "Time from the first transaction of the next load until it was nine tenths as fast, for 0.1 s, as the"
    " fastest load before, and the whole load where it never was,"
)
_PERCENTILES = (
    ("p50_ms", "p50", "median latency", "half of the transactions took longer"),
    ("p90_ms", "p90", "90th percentile latency", "one transaction in 10 took longer"),
    ("p95_ms", "p95", "95th percentile latency", "one transaction in 20 took longer"),
    ("p99_ms", "p99", "99th percentile latency", "one transaction in 100 took longer"),
    ("p99_9_ms", "p99_9", "99.9th percentile latency", "one transaction in 1,000 took longer"),
)
_FROM_START = "from its start (in open loop: its intended start) to its acknowledgement, retries included"
_SERVER_CPU = "of all the server's processes in the measured part, over its transactions"
_EMBEDDED = "for an embedded engine, that of the process without the driver's own"
_HIGHER, _LOWER = Direction.HIGHER, Direction.LOWER

_LATENCIES = (
    Metric("mean_ms", "mean latency", "ms", _LOWER, f"Mean time of a transaction, {_FROM_START}.",
           _latency_ms("mean")),
    *(
        Metric(name, title, "ms", _LOWER,
               f"Time of a transaction, {_FROM_START}: {meaning}. None where fewer than {OBSERVED_ABOVE} took"
               " longer.",
               _latency_ms(point))
        for name, point, title, meaning in _PERCENTILES
    ),
    Metric("max_ms", "longest latency", "ms", _LOWER, f"The longest time of a transaction, {_FROM_START}.",
           _latency_ms("max")),
)  # fmt: skip

_CPU = (
    Metric("server_cpu_us_per_op", "server CPU per transaction", "us/op", _LOWER,
           f"CPU time, user and system, {_SERVER_CPU}; {_EMBEDDED}.",
           _per_operation("server_cpu_user_s", "server_cpu_system_s", times=1e6)),
    Metric("server_cpu_user_us_per_op", "server user CPU per transaction", "us/op", _LOWER,
           f"CPU time in user mode {_SERVER_CPU}; {_EMBEDDED}.",
           _per_operation("server_cpu_user_s", times=1e6)),
    Metric("server_cpu_system_us_per_op", "server system CPU per transaction", "us/op", _LOWER,
           f"CPU time in the kernel {_SERVER_CPU}; {_EMBEDDED}.",
           _per_operation("server_cpu_system_s", times=1e6)),
    Metric("driver_cpu_us_per_op", "driver CPU per transaction", "us/op", _LOWER,
           "CPU time, user and system, of the load driver's threads in the measured part, over its "
           "transactions; an embedded engine's is not in it.",
           _counted(_driver_cpu)),
    Metric("context_switches_per_op", "context switches per transaction", "per op", _LOWER,
           f"Context switches, voluntary and forced, {_SERVER_CPU}.",
           _per_operation("context_switches_voluntary", "context_switches_involuntary")),
    Metric("run_queue_wait_us_per_op", "wait for a CPU per transaction", "us/op", _LOWER,
           f"Time that threads were ready to run and waited for a CPU, {_SERVER_CPU}.",
           _per_operation("run_queue_wait_s", times=1e6)),
)  # fmt: skip

COUNTERS = {
    "cycles": "CPU cycles",
    "instructions": "instructions",
    "cache_misses": "cache misses",
    "dtlb_load_misses": "data TLB misses",
    "stalled_cycles_frontend": "cycles stalled at the front end",
    "stalled_cycles_backend": "cycles stalled at the back end",
}
"""What the observer asks the CPU for, and what it is called."""

_UNDER_VALGRIND = {
    "instructions": " As a study's response, where the CPU's counters cannot be read: counted under "
    "Valgrind, with one client, without the kernel and without the driver."
}
_HARDWARE = tuple(
    Metric(f"{name}_per_op", f"{title} per transaction", "per op", _LOWER,
           f"{title[0].upper()}{title[1:]} {_SERVER_CPU}: a hardware counter; for an embedded engine the "
           f"driver's own are in it.{_UNDER_VALGRIND.get(name, '')}",
           _instructions_per_operation if name == "instructions" else _per_operation(name))
    for name, title in COUNTERS.items()
)  # fmt: skip

_RESOURCES = (
    Metric("read_bytes_per_op", "storage read per transaction", "per op", _LOWER,
           f"Bytes read from storage (not from the page cache) {_SERVER_CPU}.",
           _per_operation("read_bytes"), ValueFormat.BYTES),
    Metric("written_bytes_per_op", "storage written per transaction", "per op", _LOWER,
           f"Bytes sent towards storage {_SERVER_CPU}. What goes through the page cache counts by its whole "
           "folios, which may be far more than a log sends.",
           _per_operation("written_bytes"), ValueFormat.BYTES),
    Metric("resident_bytes", "resident memory", "", _LOWER,
           "The most memory that the server's processes held resident at any sample of the measured part. "
           "What they share counts once, as the process that holds most of it has it.",
           _total("resident_bytes_max"), ValueFormat.BYTES),
    Metric("ready_s", "time until ready", "s", _LOWER,
           "Time from the start of the server's process until it answered.", lambda record: record.ready_s),
    Metric("ready_after_stop_s", "time until ready after a clean stop", "s", _LOWER,
           f"{_UNTIL_READY} after a clean stop under load.", _ready_after(Act.STOP)),
    Metric("ready_after_kill_s", "time until ready after a kill", "s", _LOWER,
           f"{_UNTIL_READY} after a kill under load.", _ready_after(Act.KILL)),
    Metric("ready_after_cut_s", "time until ready after a power cut", "s", _LOWER,
           f"{_UNTIL_READY} after a power cut under load.", _ready_after(Act.CUT)),
    Metric("full_speed_after_stop_s", "time to full speed after a clean stop", "s", _LOWER,
           f"{_UNTIL_FULL_SPEED} after a clean stop under load.", _full_speed_after(Act.STOP)),
    Metric("full_speed_after_kill_s", "time to full speed after a kill", "s", _LOWER,
           f"{_UNTIL_FULL_SPEED} after a kill under load.", _full_speed_after(Act.KILL)),
    Metric("full_speed_after_cut_s", "time to full speed after a power cut", "s", _LOWER,
           f"{_UNTIL_FULL_SPEED} after a power cut under load.", _full_speed_after(Act.CUT)),
    Metric("stop_s", "time of a clean stop", "s", _LOWER,
           "Time from the end of a load until the server had ended by itself, its cache written back as its "
           "settings ask.", _stop_s),
)  # fmt: skip

_HOST = (
    Metric("frequency_ghz", "CPU frequency", "GHz", _HIGHER,
           "Cycles over CPU time, user and kernel, of all the server's processes in the measured part: the "
           "clock as it really was, boost and throttling included; none where cycles are not counted.",
           _total("frequency_hz", times=1e-9)),
    Metric("steal_s", "steal", "s", _LOWER,
           "CPU time that the hypervisor took in the measured part, over all the host's CPUs.",
           _total("steal_s")),
    Metric("other_cpu_s", "CPU time of other processes", "s", _LOWER,
           "CPU time in the measured part, over all the host's CPUs, of what is neither server nor driver "
           "nor Dyno nor a child of Dyno nor the kernel's own threads.", _total("other_cpu_s")),
    Metric("beside_cpu_s", "CPU time of servers beside", "s", _LOWER,
           "CPU time in the measured part of Dyno's other children: the servers of a block that have no "
           "slice, and those who disturb a soak.", _total("beside_cpu_s")),
    Metric("written_between_share", "writes in the turns of others", "", _LOWER,
           "Of the bytes that the server sent towards storage from its first slice to its last, the share "
           "that it sent while other servers had their turn; none without slices.",
           _ratio_of("written_bytes_between", "written_bytes_in_all")),
    Metric("cpu_between_share", "CPU time in the turns of others", "", _LOWER,
           "The same of the server's CPU time.", _ratio_of("cpu_s_between", "cpu_s_in_all")),
    Metric("throttled_s", "time held back", "s", _LOWER,
           "Time for which the kernel held threads back in the measured part because a CPU quota was used "
           "up, asked for by the study or not, summed over CPUs.", _total("throttled_s")),
    Metric("throttled_share", "periods held back", "", _LOWER,
           "Periods of a CPU quota (of 100 ms, as a rule) in which it was used up, over those in which the "
           "group ran, in the measured part; none without a quota.",
           _ratio_of("throttled_periods", "quota_periods")),
    Metric("round_trip_us", "round trip to the load host", "us", _LOWER,
           "Time until a connection from the load host to the server's port is open, median of those before, "
           "between and after the slices, when nothing was timed; of several load hosts the highest, as with "
           "all that is told of them; none where the load came from the server's host.",
           _of_load_host(lambda host: host.round_trip_s * 1e6)),
    Metric("round_trip_us_max", "longest round trip to the load host", "us", _LOWER,
           "The longest of the connections that `round_trip_us` is the median of.",
           _of_load_host(lambda host: host.round_trip_max_s * 1e6)),
    Metric("load_host_busy_share", "load host busy", "", _LOWER,
           "CPU time that all processes of the load host used during the load, over that of all its CPUs; "
           "none where the load came from the server's host.",
           _of_load_host(lambda host: host.share(host.busy_s))),
    Metric("load_host_steal_share", "load host steal", "", _LOWER,
           "CPU time that the hypervisor took from the load host during the load, over that of all its CPUs.",
           _of_load_host(lambda host: host.share(host.steal_s))),
    Metric("load_host_resent_share", "segments sent again by the load host", "", _LOWER,
           "TCP segments that the load host sent again during the load because nobody acknowledged them, "
           "over all that it sent.", _of_load_host(lambda host: host.resent_share)),
    Metric("replay_lag_ms", "replay lag", "ms", _LOWER,
           "How long the standby of PostgreSQL that was furthest behind took to replay the latest log, "
           "right after the load; none without another node.", _total("replay_lag_s", 1e3)),
    Metric("replay_lag_bytes", "log not replayed", "", _LOWER,
           "Bytes of log that the standby of PostgreSQL that was furthest behind had not replayed, right "
           "after the load.", _total("replay_lag_bytes")),
    Metric("transactions_behind", "transactions not applied", "", _LOWER, "Transactions that the replica "
           "furthest behind had not applied right after the load.", _total("transactions_behind")),
    Metric("receive_queue", "write sets not applied", "", _LOWER,
           "Write sets that the node of Galera that was furthest behind had received and not applied, right "
           "after the load.", _total("receive_queue")),
    Metric("flow_control_s", "time held back by flow control", "s", _LOWER,
           "Time for which a node of Galera was held back over the whole load, warm-up included, because "
           "another one was behind; that of the node with the most.", _total("flow_control_s")),
    Metric("node_aborts_per_op", "transactions lost to other nodes", "per op", _LOWER,
           "Transactions that Galera aborted because another node's was first, on all nodes, over the whole "
           "load, warm-up included, per transaction of it that clients were told of.",
           _per_acknowledged("node_aborts")),
)  # fmt: skip

_OUTCOMES = (
    Metric("throughput", "throughput", "per s", _HIGHER,
           "Successful transactions in the measured part, over its duration.",
           _counted(lambda tally: tally.throughput_per_s if tally.duration_s > 0 else None)),
    Metric(CAPACITY, "capacity", "per s", _HIGHER,
           "The rate in open loop at which a step of the load keeps the study's promise as often as not; "
           "searched in each trial.", lambda record: record.capacity.per_s if record.capacity else None),
    Metric("new_orders_per_minute", "new orders per minute", "per min", _HIGHER,
           "Successful new-order transactions (TPC-C) in the measured part, over its duration in minutes.",
           _per_s_of(TPCC, "new_order", times=60), transaction="new_order"),
    Metric("queries_per_s", "queries", "per s", _HIGHER,
           "Searches (vector_search) that were answered in the measured part, over its duration; inserts "
           "and deletes beside them are not in it.", _per_s_of(VECTOR_SEARCH, "search"),
           transaction="search"),
    Metric("qps_at_recall", f"queries at recall {RECALL_LEAST:g}", "per s", _HIGHER,
           f"Searches per second of a trial whose recall is at least {RECALL_LEAST:g}; a trial with less has "
           "none. The frontier interpolates between trials.", _queries_at_recall, transaction="search"),
    Metric("recall", "recall", "", _HIGHER,
           "Share of the true nearest vectors that an answer holds, mean over the measured answers that "
           "were scored; against the set as loaded.", _recall, transaction="search"),
    Metric("errors_per_s", "errors", "per s", _LOWER,
           "Errors of all kinds that the server answered with in the measured part, over its duration; "
           "those that were retried count.",
           _counted(lambda tally: _share(sum(tally.errors.values()), tally.duration_s))),
    Metric("worst_second", "throughput of the worst second", "per s", _HIGHER,
           "Successful transactions in the whole second of the measured part that had the fewest; none where "
           f"it has fewer than {SECONDS_LEAST}. Slices of a load follow one another without the waits.",
           _over_seconds(min)),
    Metric("cv", "variation from second to second", "", _LOWER,
           "Standard deviation of the successful transactions in each whole second of the measured part, "
           f"over their mean; none where it has fewer than {SECONDS_LEAST} seconds.",
           _over_seconds(_variation)),
    Metric("fairness", "fairness between clients", "", _HIGHER,
           "Transactions of the client that had the fewest done in the measured part, over those of the one "
           "that had the most: 1 where all were served alike.",
           _counted(lambda tally: _share(tally.by_client.least, tally.by_client.most)
                    if tally.by_client else None)),
    Metric(RETRIES, "retries per transaction", "per op", _LOWER,
           "Times that a transaction was started again, over the successful transactions.",
           _counted(lambda tally: _share(tally.retries, tally.work))),
    Metric(FAILED_SHARE, "failed transactions", "", _LOWER,
           "Transactions that failed and were not tried again, over all that ended, of those that began (in "
           "open loop: were due) in the measured part.",
           _counted(lambda tally: tally.failed_share if tally.failed + tally.operations else None)),
)  # fmt: skip

_MEANWHILE = tuple(
    Metric(name, title, unit, _LOWER, definition, _of_acts(read))
    for name, title, unit, definition, read in OF_ACTS
)
_BY_THE_SERVER = ("resident_bytes", "ready_s", "stop_s", "errors_per_s", FAILED_SHARE)


def _of_successes(metric: Metric) -> Metric:
    """Of the load's own metrics all are but a few: a transaction that fails has no latency, and takes no part
    in what a transaction costs."""
    besides = metric.name in _BY_THE_SERVER or metric.name.startswith(("ready_after", "full_speed_after"))
    return metric if besides else replace(metric, of_successes=True)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *map(_of_successes, (*_OUTCOMES[:1], *_LATENCIES, *_CPU, *_HARDWARE, *_RESOURCES, *_OUTCOMES[1:])),
        *_HOST,
        *_MEANWHILE,
        *(Metric(name, title, "", _LOWER, told, _ratio_of(*parts)) for name, title, told, *parts in OF_ROWS),
    )
}
"""All metrics by name, in the order in which help lists them."""


class GaugeSource(StrEnum):
    """Who tells a gauge's value."""

    KERNEL = "the kernel"
    ENGINE = "the engine"
    DRIVER = "the driver"


@dataclass(frozen=True)
class Gauge:
    """One gauge. `definition` says what its value is. What is `counted` grows with the transactions, so that
    its growth is told by the million of them. Where a rise is no `fault`, it is told and not judged: the load
    itself writes rows. What an engine clears away in its background falls behind at first, so its rise in a
    load shorter than `judged_after_s` is no more than told. A level up to `harmless` is no worry."""

    name: str
    title: str
    source: GaugeSource
    definition: str
    style: ValueFormat = ValueFormat.NUMBER
    counted: bool = True
    fault: bool = True
    judged_after_s: float = 0.0
    harmless: float = 0.0

    def format(self, value: float) -> str:
        """A value with its unit."""
        texts = {ValueFormat.BYTES: bytes_text, ValueFormat.MICROSECONDS: microseconds_text}
        return texts.get(self.style, number_text)(value)


CACHE = "cache_bytes"
"""What an engine's cache of pages holds. It has a size, so what fills it is no leak."""
SHARED = "shared_bytes"
"""What of the memory that an engine's processes share they have touched: PostgreSQL's cache of pages."""
UNDO_HARMLESS = 100_000.0
"""A choice: a backlog of so many versions comes and goes on a busy server, so growth below it is no sign."""
P99 = "p99_us"
"""The one gauge that the load process tells, with its tally."""

GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        Gauge("resident_bytes", "resident memory", GaugeSource.KERNEL,
              "Memory of the server's processes that is resident. What they share counts once, as the "
              "process that holds most of it has it.", ValueFormat.BYTES),
        Gauge("private_bytes", "private memory", GaugeSource.KERNEL,
              "Memory that the server's processes have to themselves, resident or swapped out (RssAnon and "
              "VmSwap of /proc/PID/status).", ValueFormat.BYTES),
        Gauge(SHARED, "shared memory", GaugeSource.KERNEL,
              "What the server's processes have touched of the memory that they share, as the one that "
              "touched most of it has it (RssShmem of /proc/PID/status).", ValueFormat.BYTES, fault=False),
        Gauge("heap_bytes", "memory by the engine's own count", GaugeSource.ENGINE,
              "What the engine says that it has allocated.", ValueFormat.BYTES),
        Gauge(CACHE, "pages in the cache", GaugeSource.ENGINE,
              "What the engine's cache of pages holds: InnoDB's buffer pool.", ValueFormat.BYTES,
              fault=False),
        Gauge("open_files", "open files", GaugeSource.KERNEL,
              "Open descriptors of the server's processes, sockets included."),
        Gauge("threads", "threads", GaugeSource.KERNEL, "Threads of the server's processes."),
        Gauge("disk_bytes", "data on the disk", GaugeSource.KERNEL,
              "Blocks that the files of the data directory occupy.", ValueFormat.BYTES, fault=False),
        Gauge("undo", "undo log", GaugeSource.ENGINE,
              "Versions of rows that the engine still keeps for older readers: InnoDB's history list, "
              "PostgreSQL's dead rows.", judged_after_s=600.0, harmless=UNDO_HARMLESS),
        Gauge("redo_bytes", "redo log", GaugeSource.ENGINE,
              "Redo log that the engine still needs: InnoDB's checkpoint age, the files of PostgreSQL's "
              "write-ahead log.", ValueFormat.BYTES, fault=False),
        Gauge(P99, "99th percentile latency", GaugeSource.DRIVER,
              "Of the transactions that ended in each second.", ValueFormat.MICROSECONDS, counted=False),
    )
}  # fmt: skip
"""All gauges by name, in the order in which reports list them."""
