"""pgbench's logs: a line for each transaction (`pgbench --log`), or for each interval with
`--aggregate-interval`.

The columns are those of pgbench's manual, section "Per-Transaction Logging" and "Aggregated Logging". A line
of a transaction is `client transaction time script epoch_s epoch_us [lag] [retries]`: `time` is in
microseconds, and is a word for a transaction that failed or was skipped. With `--rate` it counts from the
moment at which the transaction was due, as the driver's own latencies do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from dbdyno.driver.tally import FineSeries, Latency, TransactionType
from dbdyno.errors import UserError
from dbdyno.imported.files import lines_of, of_threads, wrong
from dbdyno.imported.tallies import (
    CountedRepetition,
    Integers,
    Tool,
    by_second,
    distribution,
    summary,
    transaction_type,
)

EPOCH_LEAST_S = 10**8
"""A smaller first column is a client's number, not a time."""
OF_A_TRANSACTION = (6, 7, 8)
OF_AN_INTERVAL = (6, 10, 11, 15)
"""How many columns lines have: of PostgreSQL 15 and later 15, of earlier versions as the options ask."""
SEVENTH = LAG, RETRIES = "lag", "retries"
SAMPLED_LEAST = 30
"""From fewer lines of a client in a sample, the number of its transactions cannot be told to some percent."""
SKIPPED = "skipped"
FAILURES = ("failed", "serialization", "deadlock")
UNSUCCESSFUL = (*FAILURES, SKIPPED)
"""What stands in the place of a time where no transaction succeeded."""
NOT_A_LOG = "give the files that pgbench --log writes, unchanged and nothing else"
ONE_RUN = "give the files of each run by themselves: dyno import pgbench --as NAME=FOLDER"

Row = tuple[int, list[str]]


def read(files: Sequence[Path], seventh: str | None = None) -> CountedRepetition:
    """What the files of one run hold, one file for each of pgbench's threads.

    `seventh` says whether the last of seven columns is the schedule's `lag` or the number of `retries`, which
    the log itself does not tell. Raises UserError with file and line where a log is not what it should be.
    """
    first = next(_rows(files[0]))[1]
    for path in files[1:]:
        fields = next(_rows(path))[1]
        if (len(fields), _is_interval(fields)) != (len(first), _is_interval(first)):
            raise wrong(path, 1, f"this log has other columns than {files[0]}", ONE_RUN)
    if _is_interval(first):
        return _from_intervals([_intervals(path, _rows(path)) for path in files])
    names = _extra_columns(files[0], len(first), seventh)
    return _from_transactions(_transactions(files, names), names)


def _rows(path: Path) -> Iterator[Row]:
    """The columns of each line. All lines have as many."""
    columns = 0
    for number, line in lines_of(path):
        fields = line.split()
        columns = columns or len(fields)
        allowed = OF_AN_INTERVAL if _is_interval(fields) else OF_A_TRANSACTION
        if len(fields) not in allowed or not fields[0].isdecimal():
            raise wrong(path, number, f"this is no line of a log of pgbench: {line[:60]!r}", NOT_A_LOG)
        if len(fields) != columns:
            message = f"{len(fields)} columns after lines of {columns}"
            raise wrong(path, number, message, "two logs were joined: give each run's files as they were")
        yield number, fields


def _is_interval(fields: Sequence[str]) -> bool:
    return bool(fields) and fields[0].isdecimal() and int(fields[0]) >= EPOCH_LEAST_S


def _extra_columns(path: Path, columns: int, seventh: str | None) -> tuple[str, ...]:
    if columns != 7:
        return (LAG, RETRIES)[: columns - 6]
    if seventh is None:
        raise wrong(
            path,
            1,
            "the seventh column can be the schedule lag or the retries, and the log does not say which",
            f"--seventh {LAG} if pgbench ran with --rate, --seventh {RETRIES} if with --max-tries",
        )
    return (seventh,)


def _number(path: Path, line: int, text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise wrong(path, line, f"{text!r} is no {what}", NOT_A_LOG) from None


@dataclass
class _Transactions:
    """The transactions of all threads. `ended_us`, `took_us` and `script` are of those that succeeded;
    `extra` sums the columns beyond the sixth: the retries of all, the lag of those that succeeded. Numbers
    of transactions count those that were not logged too: `numbered` estimates from the clients' last ones how
    many there were, and there are `gaps` where one is left out. `logged` counts the lines of each client."""

    ended_us: list[int] = field(default_factory=list)
    took_us: list[int] = field(default_factory=list)
    script: list[int] = field(default_factory=list)
    failed_us: list[int] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)
    extra: Counter[str] = field(default_factory=Counter)
    logged: Counter[int] = field(default_factory=Counter)
    numbered: float = 0.0
    gaps: bool = False
    clients: dict[int, Path] = field(default_factory=dict)


def _transactions(files: Sequence[Path], extra: Sequence[str]) -> _Transactions:
    found = _Transactions()
    for path in files:
        _add_thread(found, path, _rows(path), extra)
    if not found.took_us:
        raise UserError(f"{files[0]} holds no transaction that succeeded", "look why they failed")
    if 0 not in found.clients:
        raise UserError(
            f"{files[0]} holds no transaction of client 0: the file of the run's first thread is missing",
            "give all files of a run: PREFIX.PID, PREFIX.PID.1 and so on",
        )
    if found.gaps:
        _require_lines_of_each_client(files[0], found.logged)
    return found


def _require_lines_of_each_client(path: Path, logged: Counter[int]) -> None:
    client = min(range(max(logged) + 1), key=logged.__getitem__)
    if logged[client] < SAMPLED_LEAST:
        raise UserError(
            f"{path}: the sample holds {logged[client]} of client {client}'s transactions, and only"
            f" {SAMPLED_LEAST} or more tell how many there were",
            "run pgbench for longer, or with a higher --sampling-rate",
        )


def _add_thread(found: _Transactions, path: Path, rows: Iterable[Row], extra: Sequence[str]) -> None:
    before_us, first, last, count = 0, dict[int, int](), dict[int, int](), Counter[int]()
    for line, fields in rows:
        client, transaction, script, epoch_s, epoch_us = (
            _number(path, line, fields[place], "whole number") for place in (0, 1, 3, 4, 5)
        )
        ended_us = epoch_s * 1_000_000 + epoch_us
        if ended_us < before_us:
            raise wrong(path, line, "the time goes back", "give each thread's file as pgbench wrote it")
        if transaction <= last.get(client, -1):
            raise wrong(path, line, f"client {client} begins anew: two runs are in this file", ONE_RUN)
        before_us, last[client] = ended_us, transaction
        first.setdefault(client, transaction)
        count[client] += 1
        _add(found, path, line, fields, script, ended_us)
        for name, text in zip(extra, fields[6:], strict=True):
            number = _number(path, line, text, "whole number")
            found.extra[name] += number if name != LAG or fields[2] not in UNSUCCESSFUL else 0
    for client in last:
        if client in found.clients:
            raise UserError(
                f"client {client} stands in {found.clients[client]} and in {path}: they are of two runs",
                ONE_RUN,
            )
        found.clients[client] = path
        found.logged[client] = count[client]
        # The last number in a sample is below the last of all, by the distance between two on average.
        found.numbered += last[client] * (count[client] + 1) / count[client] - 1
        found.gaps |= last[client] - first[client] >= count[client]


def _add(found: _Transactions, path: Path, line: int, fields: list[str], script: int, ended_us: int) -> None:
    if fields[2] in UNSUCCESSFUL:
        found.endings[fields[2]] += 1
        if fields[2] != SKIPPED:
            found.failed_us.append(ended_us)
        return
    took_us = _number(path, line, fields[2], "time of a transaction in microseconds")
    if took_us < 0:
        raise wrong(path, line, f"a transaction cannot take {took_us} us", NOT_A_LOG)
    found.ended_us.append(ended_us)
    found.took_us.append(took_us)
    found.script.append(script)


def _from_transactions(found: _Transactions, extra: Sequence[str]) -> CountedRepetition:
    ended, took, script = (
        np.array(each, dtype=np.int64) for each in (found.ended_us, found.took_us, found.script)
    )
    start_us = min([int((ended - took).min()), *found.failed_us])
    end_us = max(int(ended.max()), max(found.failed_us, default=0))
    # With --sampling-rate the transactions' numbers tell how many there were.
    times = found.numbered / found.logged.total() if found.gaps else 1.0
    latency, histogram = _sampled(took, times)
    duration_s = max(end_us - start_us, 1) / 1e6
    return CountedRepetition(
        tool="pgbench",
        started_unix_s=start_us / 1e6,
        duration_s=duration_s,
        operations=latency.count,
        latency=latency,
        clients=len(found.clients),
        errors={kind: round(found.endings[kind] * times) for kind in FAILURES if found.endings[kind]},
        retries=round(found.extra[RETRIES] * times),
        kinds=_kinds(took, script, times, duration_s),
        seconds=by_second(ended - start_us, took, np.array(found.failed_us, np.int64) - start_us, times),
        histogram=histogram,
        remarks=tuple(_remarks(found, LAG in extra, times)),
    )


def _sampled(took: Integers, times: float) -> tuple[Latency, str]:
    """The distribution of so many times the latencies that were logged, and the histogram of these."""
    latency, histogram = distribution(took)
    count = round(latency.count * times)
    return latency.but(count=count, sum=latency.sum * times), histogram


def _remarks(found: _Transactions, scheduled: bool, times: float) -> Iterator[str]:
    if times != 1.0:
        yield (
            f"pgbench logged one transaction in {times:.3g} (--sampling-rate): counts are estimated from the"
            " transactions’ numbers, latencies are those of the sample"
        )
    if scheduled:
        yield (
            "pgbench started transactions at a rate (--rate): latencies count from when each was due, of"
            f" which {found.extra[LAG] / 1000 / len(found.took_us):.3g} ms were schedule lag on average"
        )
    if found.endings[SKIPPED]:
        yield (
            f"pgbench skipped {round(found.endings[SKIPPED] * times):,} transactions that were late"
            " (--latency-limit); no latency holds them"
        )
    absent = sorted(set(range(max(found.clients))) - found.clients.keys())
    if absent:
        yield f"{len(absent)} of pgbench’s clients have no transaction in the logs, client {absent[0]} first"


def _kinds(took: Integers, script: Integers, times: float, duration_s: float) -> dict[str, TransactionType]:
    """Of each script, where there are several."""
    numbers = np.unique(script)
    if len(numbers) < 2:
        return {}
    kinds = {}
    for number in numbers.tolist():
        own = took[script == number]
        latency, _ = _sampled(own, times)
        kinds[f"script {number}"] = transaction_type(latency, duration_s)
    return kinds


@dataclass(frozen=True)
class _Interval:
    """One line of an aggregated log: times in microseconds."""

    start_s: int
    count: int
    sum_us: int
    min_us: int
    max_us: int
    skipped: int
    retries: int
    failures: tuple[int, int]


def _intervals(path: Path, rows: Iterable[Row]) -> list[_Interval]:
    """A thread's intervals, all of one length, without the last: it ends when pgbench does."""
    found = list[_Interval]()
    for line, fields in rows:
        numbers = [_number(path, line, text, "whole number") for text in fields]
        if found and numbers[0] <= found[-1].start_s:
            raise wrong(path, line, "the time goes back", "give each thread's file as pgbench wrote it")
        found.append(_interval(numbers))
        if len(found) > 2 and found[-1].start_s - found[-2].start_s != found[1].start_s - found[0].start_s:
            raise wrong(path, line, "an interval of another length begins", ONE_RUN)
    if len(found) < 3:
        raise UserError(
            f"{path} holds fewer than two whole intervals, because the last one ends with the run",
            "use a shorter --aggregate-interval, or a log of single transactions",
        )
    return found[:-1]


def _interval(numbers: Sequence[int]) -> _Interval:
    start_s, count, sum_us, _, min_us, max_us, *rest = numbers
    skipped = rest[4] if len(rest) > 4 else 0
    retries, serialization, deadlock = rest[6:9] if len(rest) == 9 else (0, 0, 0)
    # Until PostgreSQL 15 the count held the transactions that were skipped.
    done = count if len(rest) == 9 else count - skipped
    return _Interval(start_s, done, sum_us, min_us, max_us, skipped, retries, (serialization, deadlock))


def _from_intervals(threads: Sequence[Sequence[_Interval]]) -> CountedRepetition:
    """The intervals that all threads have whole."""
    whole = min(map(len, threads))
    lengths = {after.start_s - before.start_s for thread in threads for before, after in pairwise(thread)}
    if len(lengths) > 1:
        raise UserError("the files of one run have intervals of different lengths", ONE_RUN)
    length_s, lines = lengths.pop(), [line for thread in threads for line in thread[:whole]]
    operations = sum(line.count for line in lines)
    if operations == 0:
        raise UserError("the aggregated logs hold no transaction that succeeded", "look why they failed")
    busy = [line for line in lines if line.count]
    failures = zip(FAILURES[1:], (sum(line.failures[kind] for line in lines) for kind in (0, 1)), strict=True)
    skipped = sum(line.skipped for line in lines)
    return CountedRepetition(
        tool="pgbench",
        started_unix_s=float(min(thread[0].start_s for thread in threads)),
        duration_s=float(whole * length_s),
        operations=operations,
        latency=summary(
            operations,
            float(sum(line.sum_us for line in lines)),
            low=float(min(line.min_us for line in busy)),
            high=float(max(line.max_us for line in busy)),
        ),
        errors={kind: count for kind, count in failures if count},
        retries=sum(line.retries for line in lines),
        intervals=FineSeries(
            interval_s=float(length_s),
            start_s=0.0,
            operations=tuple(sum(thread[place].count for thread in threads) for place in range(whole)),
        ),
        remarks=(
            f"pgbench logged sums of {length_s} s (--aggregate-interval): they hold no percentile, and the"
            " last interval, which is not whole, is left out",
            *(
                [f"pgbench skipped {skipped:,} transactions that were late (--latency-limit)"]
                if skipped
                else []
            ),
        ),
    )


TOOL = Tool(of_threads, lambda each, seventh: read(each.files, seventh), told=True, asks="seventh")
