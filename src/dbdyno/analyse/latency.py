"""Latency distributions from the driver's histograms: decoded, added up over trials, read at many
percentiles.

The format is HdrHistogram's V2 payload, deflated, in base64 (github.com/HdrHistogram/HdrHistogram,
src/main/java/org/HdrHistogram/AbstractHistogram.java). Forty lines read it; the package that does the same
needs setuptools and pbr at run time.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.model import Percentile

COOKIE = 0x1C849303
COMPRESSED_COOKIE = 0x1C849304
COOKIE_MASK = ~0xF0
HEADER = struct.Struct(">iiiiqqd")
BYTES_MAX = 1 << 20
OBSERVED_ABOVE = 10
POINTS_PER_DECADE = 20
DECADES = 4
PER_MS = {"ns": 1e6, "us": 1e3}


@dataclass(frozen=True)
class Histogram:
    """Counts by value: `values` are the highest that each slot stands for, rising, in the
    tally's `histogram_unit`.
    """

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        return int(self.counts.sum())


def decode(text: str) -> Histogram:
    """Reads a histogram. Raises ValueError when the text is none."""
    try:
        compressed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", compressed)
        if cookie & COOKIE_MASK != COMPRESSED_COOKIE:
            raise ValueError(f"cookie {cookie:#x}")
        payload = zlib.decompressobj().decompress(compressed[8 : 8 + length], BYTES_MAX)
        cookie, length, _, digits, lowest, _, _ = HEADER.unpack_from(payload)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"not an HdrHistogram: {error}") from None
    if cookie & COOKIE_MASK != COOKIE or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError("not an HdrHistogram V2 payload")
    slots, counts = _slots(payload[HEADER.size : HEADER.size + length])
    return Histogram(values=_highest(slots, digits, lowest), counts=counts)


def _slots(body: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Slot numbers and their counts; a negative number in the body is a run of empty slots."""
    numbers = _zigzag(body)
    steps = np.where(numbers < 0, -numbers, 1)
    filled = numbers > 0
    slots: npt.NDArray[np.int64] = (np.cumsum(steps) - steps)[filled]
    return slots, numbers[filled]


def _zigzag(body: bytes) -> npt.NDArray[np.int64]:
    """The whole numbers of LEB128 with zigzag; one that is cut short at the end is left out."""
    octets = np.frombuffer(body, dtype=np.uint8).astype(np.int64)
    ends = np.flatnonzero(octets < 0x80)
    if len(ends) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > 8:
        raise ValueError("not an HdrHistogram: a count above 2^56")
    places = np.arange(ends[-1] + 1) - np.repeat(starts, lengths)
    values = np.add.reduceat((octets[: ends[-1] + 1] & 0x7F) << (7 * places), starts)
    numbers: npt.NDArray[np.int64] = (values >> 1) ^ -(values & 1)
    return numbers


def _highest(slots: npt.NDArray[np.int64], digits: int, lowest: int) -> npt.NDArray[np.int64]:
    """The highest value that falls into each slot."""
    half_magnitude = math.ceil(math.log2(2 * 10**digits)) - 1
    unit = int(math.log2(lowest))
    half = 1 << half_magnitude
    buckets = np.maximum((slots >> half_magnitude) - 1, 0)
    within = np.where(slots < 2 * half, slots, (slots & (half - 1)) + half)
    highest: npt.NDArray[np.int64] = np.left_shift(within + 1, buckets + unit) - 1
    return highest


def added(histograms: Iterable[Histogram]) -> Histogram:
    """One histogram of all operations."""
    parts = list(histograms)
    if not parts:
        return Histogram(values=np.zeros(0, dtype=np.int64), counts=np.zeros(0, dtype=np.int64))
    values, places = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Histogram(values=values, counts=counts)


def curve(histogram: Histogram, unit: str) -> tuple[Percentile, ...]:
    """Latency at percentiles up to 99.99, evenly spaced in log(1 / (1 - p)); `unit` is that of the histogram.

    It ends where fewer than ten operations lie above: a percentile that rests on two operations is an
    anecdote.
    """
    total = histogram.count
    if total == 0:
        return ()
    cumulative = np.cumsum(histogram.counts)
    points = []
    for step in range(1, DECADES * POINTS_PER_DECADE + 1):
        above = 10.0 ** (-step / POINTS_PER_DECADE)
        if above * total < OBSERVED_ABOVE:
            break
        rank = max(math.ceil((1.0 - above) * total), 1)
        value = int(histogram.values[int(np.searchsorted(cumulative, rank))])
        points.append(Percentile(above=above, latency_ms=value / PER_MS[unit]))
    return tuple(points)
