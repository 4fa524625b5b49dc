"""A tally of what another tool counted, with latencies as the driver keeps them: HdrHistogram's V2 payload,
deflated, in base64. What its logs do not tell is absent, or empty.

`analyse/latency.py` reads it, and names the format's source. A run of what was brought, and a record for each
repetition.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dbdyno import __version__
from dbdyno.driver.tally import CpuPerOperation, CpuTime, FineSeries, Latency, Second, Tally, TransactionType
from dbdyno.errors import UserError
from dbdyno.host.fingerprint import Host
from dbdyno.imported.files import Repetition
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import Brought, ImportedRun, Run

COOKIE, COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
HEADER = struct.Struct(">iiiiqqd")
DIGITS = 3
"""Significant digits of a value."""
HALF_MAGNITUDE = 10
"""The binary logarithm of half the slots that values of one magnitude share."""


def encode(values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> str:
    """The histogram of whole `values`, none negative, rising, each with its count. Empty without one."""
    if not len(values):
        return ""
    slots, places = np.unique(_slots(values), return_inverse=True)
    summed = np.zeros(len(slots), dtype=np.int64)
    np.add.at(summed, places, counts)
    body = b"".join(map(_leb128, _runs(slots, summed)))
    payload = HEADER.pack(COOKIE, len(body), 0, DIGITS, 1, max(int(values[-1]), 2), 1.0) + body
    compressed = zlib.compress(payload)
    return base64.b64encode(struct.pack(">ii", COMPRESSED_COOKIE, len(compressed)) + compressed).decode()


def _slots(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The slot that each value falls into."""
    bits = np.frexp(np.maximum(values, 1).astype(np.float64))[1]
    magnitudes = np.maximum(bits - (HALF_MAGNITUDE + 1), 0)
    slots: npt.NDArray[np.int64] = (magnitudes << HALF_MAGNITUDE) + (values >> magnitudes)
    return slots


def _runs(slots: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Iterator[int]:
    """The counts in the order of their slots; a negative number stands for so many empty slots."""
    next_slot = 0
    for slot, count in zip(slots.tolist(), counts.tolist(), strict=True):
        if slot > next_slot:
            yield next_slot - slot
        yield count
        next_slot = slot + 1


def _leb128(number: int) -> bytes:
    """A whole number, zigzag, seven bits to a byte."""
    left = number * 2 if number >= 0 else -number * 2 - 1
    octets = bytearray()
    while left > 0x7F:
        octets.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*octets, left])


Integers = npt.NDArray[np.int64]
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
RARE = 0.05
UNKNOWN_CPU = CpuPerOperation(user=None, system=None)


@dataclass(frozen=True)
class CountedRepetition:
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
    kinds: Mapping[str, TransactionType] = field(default_factory=dict)
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
            driver_cpu_s=CpuTime(user=0.0, system=0.0),
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
    # As whole numbers they would overflow: a second in nanoseconds, 10^10 times.
    whole = float(values_us.astype(np.float64) @ counts)
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


def transaction_type(latency: Latency, duration_s: float) -> TransactionType:
    """One kind of transactions, all of which were measured."""
    return TransactionType(
        operations=latency.count,
        throughput_per_s=latency.count / duration_s,
        acknowledged=latency.count,
        latency_us=latency,
    )


def distribution(latencies_us: Integers) -> tuple[Latency, str]:
    """Of single latencies, and their histogram."""
    values, counts = np.unique(latencies_us, return_counts=True)
    return latency_of(values, counts), encode(values, counts)


def by_second(ended: Integers, took: Integers, failed: Integers, times: float) -> tuple[Second, ...]:
    """Each second in which a transaction ended or failed, counted from the first one's start: moments and
    latencies in microseconds, and how many transactions each stands for."""
    order = np.argsort(ended, kind="stable")
    second = ended[order] // 1_000_000
    numbers, starts = np.unique(second, return_index=True)
    errors = Counter((failed // 1_000_000).tolist())
    parts = dict(zip(numbers.tolist(), np.split(took[order], starts[1:]), strict=True))
    return tuple(
        _second(number, parts.get(number, took[:0]), round(errors[number] * times), times)
        for number in sorted(parts.keys() | errors.keys())
    )


def _second(number: int, took: Integers, errors: int, times: float) -> Second:
    p50, p99 = np.percentile(took, [50, 99], method="inverted_cdf") if len(took) else (0.0, 0.0)
    return Second(
        second=number,
        phase="measured",
        operations=round(len(took) * times),
        errors=errors,
        p50_us=float(p50),
        p99_us=float(p99),
        max_us=float(took.max()) if len(took) else 0.0,
    )


@dataclass(frozen=True)
class Tool:
    """How a tool's files lie in folders, and how one repetition is read: with what the user says of
    what the tool `asks`: the option's name. The order of its repetitions may be `told` by their times."""

    repetitions: Callable[[Sequence[Path]], list[Repetition]]
    read: Callable[[Repetition, str | None], CountedRepetition]
    told: bool = False
    asks: str = ""


@dataclass(frozen=True)
class RepetitionLog:
    """One repetition: its files, and what they hold."""

    repetition: Repetition
    counted: CountedRepetition


@dataclass(frozen=True)
class ImportQuestion:
    """What the user asks of the logs. `margin` is a share; `paired` states that log i of each variant belongs
    to log i of the others."""

    title: str
    response: str
    margin: float
    paired: bool


def run_of_logs(
    name: str,
    tool: str,
    logs: Mapping[str, Sequence[RepetitionLog]],
    asked: ImportQuestion,
    created_unix_s: float,
) -> ImportedRun:
    """The run of these logs by variant, the baseline first. Raises UserError where pairs are asked for and
    variants do not have as many."""
    sizes = {variant: len(each) for variant, each in logs.items()}
    if asked.paired and len(set(sizes.values())) > 1:
        told = ", ".join(f"{variant} has {count}" for variant, count in sizes.items())
        raise UserError(f"--paired needs as many repetitions of each variant: {told}", "leave --paired out")
    every = [log for each in logs.values() for log in each]
    clients = {log.counted.clients for log in every}
    durations = {round(log.counted.duration_s) for log in every}
    brought = Brought(
        tool=tool,
        title=asked.title,
        variants=tuple(logs),
        paired=asked.paired,
        response=asked.response,
        margin=asked.margin,
        clients=clients.pop() if len(clients) == 1 else 0,
        duration_s=float(durations.pop()) if len(durations) == 1 else 0.0,
        remarks=(
            *dict.fromkeys(remark for log in every for remark in log.counted.remarks),
            *_few(sizes.values(), asked.paired),
        ),
    )
    return ImportedRun(
        run=name,
        study_path=f"logs of {tool}",
        study_text=_listed(logs),
        study_digest=_digest(brought),
        seed=0,
        blocks=max(sizes.values()),
        created_unix_s=created_unix_s,
        dyno_version=__version__,
        host=Host(),
        brought=brought,
    )


def _listed(logs: Mapping[str, Sequence[RepetitionLog]]) -> str:
    """Which files each repetition was made of."""
    return "".join(
        f"{variant}, repetition {number}: {', '.join(map(str, log.repetition.files))}{_part(log)}\n"
        for variant, each in logs.items()
        for number, log in enumerate(each, 1)
    )


def _part(log: RepetitionLog) -> str:
    return f", {log.repetition.part}" if log.repetition.part else ""


def _few(sizes: Collection[int], paired: bool) -> Iterator[str]:
    """What is said of so few repetitions that no order of them would be rare without a difference."""
    least = min(sizes)
    if len(sizes) < 2 or least < 2:
        return
    by_chance = 2.0 / (2.0**least if paired else math.comb(2 * least, least))
    if by_chance > RARE:
        yield (
            f"{least} repetitions are few: without any difference, all of one variant lie on one side of all"
            f" of another in {by_chance:.0%} of cases, so they give no verdict"
        )


def _digest(brought: Brought) -> str:
    """What makes two runs comparable: the same tool and response."""
    return hashlib.sha256(json.dumps([brought.tool, brought.response]).encode()).hexdigest()


def records_of(run: Run, logs: Mapping[str, Sequence[RepetitionLog]], paired: bool) -> list[Record]:
    """A record for each repetition. Without pairs each is a block of its own, which nothing else is in."""
    placed = [(variant, number, log) for variant, each in logs.items() for number, log in enumerate(each)]
    return [
        _record(run, trial, number if paired else trial, variant, log.counted)
        for trial, (variant, number, log) in enumerate(placed)
    ]


def _record(run: Run, trial: int, block: int, variant: str, counted: CountedRepetition) -> Record:
    return Record(
        run=run.run,
        trial=trial,
        block=block,
        position=0,
        variant=variant,
        levels={},
        host="",
        started_unix_s=counted.started_unix_s,
        finished_unix_s=counted.started_unix_s + counted.duration_s,
        outcome=Outcome.MEASURED,
        phases=(PhaseRecord(name="load", tally=counted.tally),),
    )
