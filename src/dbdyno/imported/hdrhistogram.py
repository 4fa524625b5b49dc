"""Logs of HdrHistogram (`.hlog`, versions 1.2 and 1.3): a line for each interval, with start, length,
greatest value and all values as a histogram; a tag names what they are of.

The format: github.com/HdrHistogram/HdrHistogram, src/main/java/org/HdrHistogram/HistogramLogWriter.java. It
does not name the values' unit, so somebody must: the user, or a log of `dyno load run --hdr-log`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dbdyno.analyse.latency import Histogram, added, whole
from dbdyno.driver.tally import FineSeries, Latency, Second
from dbdyno.errors import UserError
from dbdyno.imported.files import lines_of, one_each, wrong
from dbdyno.imported.tallies import (
    SHARES,
    CountedRepetition,
    Tool,
    encode,
    latency_of,
    summary,
    transaction_type,
)

VERSION = re.compile(r"#\[Histogram log format version (\d+\.\d+)\]")
VERSIONS = ("1.2", "1.3")
TIME = re.compile(r"#\[(StartTime|BaseTime): *(\d{1,12}(?:\.\d{1,9})?) .*")
UNIT = re.compile(r"#latencies in (nano|micro|milli)seconds\b.*")
INTERVAL = re.compile(
    r"(?:Tag=([^,\s]+),)?(\d{1,12}(?:\.\d{1,9})?),(\d{1,9}(?:\.\d{1,9})?),(\d+(?:\.\d+)?(?:E\d+)?|NaN),(\S+)"
)
JOINED = "give each run a file of its own, as it was written"
US = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
"""Microseconds of a unit that values may have."""
WHOLE_LOG = "give the log as it was written; copy it again, if it was whole"
YEAR_S = 365 * 86_400.0
PER_S_MOST = 10**9
"""More values than a nanosecond each are no latencies of one machine."""


@dataclass(frozen=True)
class LoggedInterval:
    """A line. `start_s` is as the log has it; values are in its unit."""

    tag: str
    start_s: float
    length_s: float
    histogram: Histogram
    digits: int


def read(path: Path, unit: str | None = None) -> CountedRepetition:
    """What a log tells, all its intervals together; `unit` is that of its values. Raises UserError with file
    and line where it is damaged or joined, and where nobody names the unit."""
    head: dict[str, str] = {}
    intervals = list(_intervals(path, head))
    filled = [one for one in intervals if one.histogram.count]
    if not filled:
        raise UserError(f"{path} tells of no finished operation", "look why the benchmark did none")
    us = US[_unit(path, head.get("unit"), unit)]
    by_tag = {
        tag: added([one.histogram for one in filled if one.tag == tag])
        for tag in dict.fromkeys(one.tag for one in filled)
    }
    everything = by_tag.pop("", None)
    _require_all(path, everything, by_tag)
    of_all = [one for one in intervals if everything is None or not one.tag]
    together = everything or added([*by_tag.values()])
    first_s = min(one.start_s for one in of_all)
    duration_s = max(one.start_s + one.length_s for one in of_all) - first_s
    if duration_s <= 0.0:
        raise UserError(f"{path} tells of no time that passed", WHOLE_LOG)
    seconds, fine = _series(of_all, first_s, us)
    return CountedRepetition(
        tool="hdrhistogram",
        started_unix_s=_began(head, first_s, path.stat().st_mtime - duration_s),
        duration_s=duration_s,
        operations=together.count,
        latency=_latency(together, us),
        kinds={tag: transaction_type(_latency(one, us), duration_s) for tag, one in by_tag.items()},
        seconds=seconds,
        intervals=fine,
        histogram=encode(np.rint(together.values * us).astype(np.int64), together.counts),
        remarks=(
            f"HdrHistogram kept {min(one.digits for one in filled)} significant digits of a latency; each"
            " stands here as the highest value of its slot",
            "A log of HdrHistogram does not tell failures, nor how many clients there were",
        ),
    )


def _intervals(path: Path, head: dict[str, str]) -> Iterator[LoggedInterval]:
    """Each line of values; what comments tell goes into `head`. Intervals of one tag follow each other."""
    begun: dict[str, float] = {}
    for number, line in lines_of(path):
        if version := VERSION.fullmatch(line):
            if begun:
                raise wrong(path, number, "a second log begins here", JOINED)
            if version[1] not in VERSIONS:
                raise wrong(path, number, f"this is version {version[1]}", f"known: {', '.join(VERSIONS)}")
            head["version"] = version[1]
        elif "version" not in head and not line.startswith("#"):
            raise wrong(
                path, number, "this is no log of HdrHistogram", "it has a line with its version first"
            )
        elif time := TIME.fullmatch(line):
            head[time[1]] = time[2]
        elif unit := UNIT.fullmatch(line):
            head["unit"] = {"nano": "ns", "micro": "us", "milli": "ms"}[unit[1]]
        elif not line.startswith(("#", '"')) and line.strip():
            interval = _interval(path, number, line)
            if interval.start_s <= begun.get(interval.tag, -1.0):
                raise wrong(path, number, "this interval begins no later than the one before it", JOINED)
            begun[interval.tag] = interval.start_s
            yield interval
    if "version" not in head:
        raise UserError(f"{path} is no log of HdrHistogram", "it has a line with its version first")


def _interval(path: Path, number: int, line: str) -> LoggedInterval:
    found = INTERVAL.fullmatch(line)
    if found is None:
        raise wrong(path, number, f"this is no interval of HdrHistogram: {line[:60]!r}", WHOLE_LOG)
    try:
        histogram, digits = whole(found[5])
    except ValueError as error:
        raise wrong(path, number, str(error), WHOLE_LOG) from None
    length_s = float(found[3])
    if histogram.count > PER_S_MOST * max(length_s, 1e-3):
        raise wrong(
            path, number, f"{histogram.count:,} values in {found[3]} s are more than can be", WHOLE_LOG
        )
    return LoggedInterval(found[1] or "", float(found[2]), length_s, histogram, digits)


def _unit(path: Path, told: str | None, said: str | None) -> str:
    """The unit of the values. Raises UserError where neither says it, or both do and differ."""
    if told and said and told != said:
        raise UserError(f"{path} says that its values are in {told}, --unit says {said}", "leave --unit out")
    unit = told or said
    if unit is None:
        raise UserError(
            f"{path} does not say what its values are in",
            "say --unit ns, us or ms: what the tool gave to HdrHistogram (YCSB us, most of Java ns)",
        )
    return unit


def _require_all(path: Path, everything: Histogram | None, by_tag: Mapping[str, Histogram]) -> None:
    """Raises UserError where some values have no tag and are not those of all tags: to add them could count
    twice."""
    tagged = sum(one.count for one in by_tag.values())
    if everything is not None and tagged not in (0, everything.count):
        raise UserError(
            f"{path} has {everything.count:,} values without a tag and {tagged:,} with one, so it cannot be"
            " said which are all",
            "keep those without: grep -v ^Tag= LOG > ALL.hlog; or those with: grep -E '^(#|Tag=)'",
        )


def _latency(histogram: Histogram, us: float) -> Latency:
    """In microseconds."""
    found = latency_of(histogram.values, histogram.counts)
    if not found.count:
        return found
    low, high, *points = (getattr(found, name) * us for name in ("min", "max", *SHARES))
    return summary(found.count, found.sum * us, low, high, **dict(zip(SHARES, points, strict=True)))


def _began(head: Mapping[str, str], first_s: float, else_unix_s: float) -> float:
    """When the first interval began. Starts count from the base time; without one they are moments, unless
    they lie a year before the log's start: then they count from that."""
    if base := head.get("BaseTime"):
        return float(base) + first_s
    start_s = float(head.get("StartTime", 0.0))
    if start_s and first_s < start_s - YEAR_S:
        return start_s + first_s
    return first_s if first_s > YEAR_S else else_unix_s


def _series(
    intervals: Sequence[LoggedInterval], first_s: float, us: float
) -> tuple[tuple[Second, ...], FineSeries | None]:
    """Each second where a line is one, else the intervals where all are equally long but the last."""
    step_s = float(np.median([one.length_s for one in intervals]))
    places: dict[int, list[Histogram]] = {}
    for one in intervals:
        if step_s <= 0.0 or one.length_s > 1.1 * step_s:
            return (), None
        places.setdefault(round((one.start_s - first_s) / step_s), []).append(one.histogram)
    if abs(step_s - 1.0) > 0.1:
        if max(places) > 10 * len(places):
            return (), None
        counts = [sum(each.count for each in places.get(place, ())) for place in range(max(places) + 1)]
        return (), FineSeries(interval_s=step_s, start_s=0.0, operations=tuple(counts))
    return tuple(_second(place, _latency(added(places[place]), us)) for place in sorted(places)), None


def _second(place: int, found: Latency) -> Second:
    return Second(
        second=place,
        phase="measured",
        operations=found.count,
        errors=0,
        p50_us=found.p50 or 0.0,
        p99_us=found.p99 or 0.0,
        max_us=found.max or 0.0,
    )


TOOL = Tool(one_each, lambda each, unit: read(each.files[0], unit), asks="unit")
