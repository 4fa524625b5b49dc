"""What `sysbench ... run` prints: a line for each `--report-interval`, a histogram with `--histogram`, and
the summary, which must be there.

sysbench prints one percentile (the 95th unless `--percentile` says otherwise). Others are known only where it
printed the histogram, to the width of its buckets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dbdyno.driver.tally import FineSeries, Latency
from dbdyno.errors import UserError
from dbdyno.imported.files import Line, lines_held, one_each, wrong
from dbdyno.imported.tallies import SHARES, CountedRepetition, Integers, Tool, encode, latency_of, summary

BEGINNING = re.compile(r"sysbench \d\S* \(using .*")
INTERVAL = re.compile(r"\[ (\d+)s \] thds: \d+ tps: (\d+\.\d+) .*")
HISTOGRAM = "Latency histogram (values are in milliseconds)"
BUCKET = re.compile(r" *(\d+\.\d+) \|\** *(\d+)")
SECTION = re.compile(r"(SQL statistics|General statistics|Throughput|Latency \(ms\)|Threads fairness):")
FIGURE = re.compile(r" +([a-z0-9 /()]+?): +(\d+(?:\.\d+)?)s?(?: .*)?")
THREADS = re.compile(r"Number of threads: (\d+)")
NOT_OUTPUT = "give what sysbench ... run printed, whole: sysbench ... run > FILE"
ROUNDED_AT_MOST = 0.02
"""Buckets of the histogram lie about so far apart, as a share."""

Figures = dict[str, dict[str, float]]


def read(path: Path) -> CountedRepetition:
    """What sysbench printed into a file. Raises UserError with file and line where it is not whole."""
    lines = list(lines_held(path, "sysbench", NOT_OUTPUT))
    _require_one_run(path, lines)
    figures = _figures(lines)
    general = figures.get("General statistics", {}) | figures.get("Throughput", {})
    took_s = general.get("total time", general.get("time elapsed", 0.0))
    latency = figures.get("Latency (ms)", {})
    if not took_s or not latency.keys() >= {"min", "avg", "max"}:
        raise wrong(path, lines[-1][0], f"the summary is missing{_why(lines)}", NOT_OUTPUT)
    statistics = figures.get("SQL statistics", {})
    operations = round(statistics.get("transactions", general.get("total number of events", 0.0)))
    if not operations:
        raise UserError(f"{path} tells of no transaction", "look why sysbench did none")
    buckets = _buckets(path, lines)
    known = _latency(latency, operations, buckets)
    steps = [(int(found[1]), float(found[2])) for _, line in lines if (found := INTERVAL.fullmatch(line))]
    ended_unix_s = path.stat().st_mtime
    return CountedRepetition(
        tool="sysbench",
        started_unix_s=ended_unix_s - took_s,
        duration_s=took_s,
        operations=operations,
        latency=known,
        clients=_threads(lines),
        errors={
            name: round(statistics[told])
            for name, told in (("ignored", "ignored errors"), ("reconnect", "reconnects"))
            if statistics.get(told)
        },
        intervals=_intervals(steps),
        histogram=encode(*_as_arrays(buckets)) if buckets else "",
        remarks=tuple(_remarks(known, bool(buckets))),
    )


def _require_one_run(path: Path, lines: Sequence[Line]) -> None:
    beginnings = [number for number, line in lines if BEGINNING.fullmatch(line)]
    if not beginnings:
        raise wrong(path, 1, "this is not what sysbench prints", NOT_OUTPUT)
    if len(beginnings) > 1:
        raise wrong(path, beginnings[1], "a second run of sysbench begins", "give each run a file of its own")


def _why(lines: Sequence[Line]) -> str:
    """What sysbench complained of last."""
    fatal = [line for _, line in lines if line.startswith("FATAL:")]
    return f"; sysbench says: {fatal[-1][:80]}" if fatal else ", so sysbench did not end by itself"


def _threads(lines: Sequence[Line]) -> int:
    return next((int(found[1]) for _, line in lines if (found := THREADS.fullmatch(line))), 0)


def _figures(lines: Sequence[Line]) -> Figures:
    """The figures of each section of the summary, by name."""
    figures: Figures = {}
    section = None
    for _, line in lines:
        if heading := SECTION.fullmatch(line):
            section = figures.setdefault(heading[1], {})
        elif section is not None and (found := FIGURE.fullmatch(line)):
            section[found[1]] = float(found[2])
    return figures


def _buckets(path: Path, lines: Sequence[Line]) -> dict[int, int]:
    """The histogram: how many transactions, by latency in microseconds; empty where none was printed."""
    start = next((place for place, (_, line) in enumerate(lines) if line == HISTOGRAM), None)
    if start is None:
        return {}
    found: dict[int, int] = {}
    for number, line in lines[start + 2 :]:
        if not line.strip():
            break
        bucket = BUCKET.fullmatch(line)
        if bucket is None:
            raise wrong(path, number, f"this is no line of a histogram: {line[:60]!r}", NOT_OUTPUT)
        value_us = round(float(bucket[1]) * 1000)
        found[value_us] = found.get(value_us, 0) + int(bucket[2])
    return found


def _as_arrays(buckets: Mapping[int, int]) -> tuple[Integers, Integers]:
    values = sorted(buckets)
    return np.array(values, np.int64), np.array([buckets[value] for value in values], np.int64)


def _latency(told: Mapping[str, float], operations: int, buckets: Mapping[int, int]) -> Latency:
    """What the summary tells, and percentiles from the histogram where there is one."""
    printed = {
        name: 1000 * told[f"{share * 100:g}th percentile"]
        for name, share in SHARES.items()
        if f"{share * 100:g}th percentile" in told
    }
    ours = latency_of(*_as_arrays(buckets)) if buckets else None
    points = {
        name: value for name in SHARES if ours is not None and (value := getattr(ours, name)) is not None
    }
    return summary(
        operations,
        1000 * told.get("sum", told["avg"] * operations),
        low=1000 * told["min"],
        high=1000 * told["max"],
        **points | printed,
    )


def _intervals(steps: Sequence[tuple[int, float]]) -> FineSeries | None:
    """The series, where all reports are equally far apart."""
    if not steps:
        return None
    every_s = steps[0][0]
    if [second for second, _ in steps] != [every_s * (place + 1) for place in range(len(steps))]:
        return None
    counts = tuple(round(per_s * every_s) for _, per_s in steps)
    return FineSeries(interval_s=float(every_s), start_s=0.0, operations=counts)


def _remarks(latency: Latency, bucketed: bool) -> Iterator[str]:
    if bucketed:
        yield (
            "sysbench’s histogram gives the percentiles; its values lie about"
            f" {100 * ROUNDED_AT_MOST:g} % apart"
        )
        return
    known = [
        name.removeprefix("p").replace("_", ".") for name in SHARES if getattr(latency, name) is not None
    ]
    told = f"the {known[0]}th percentile alone" if known else "no percentile"
    yield f"sysbench printed {told}; --histogram gives the others"


TOOL = Tool(one_each, lambda each, _: read(each.files[0]))
