"""Latency distributions from the driver's histograms: decoded, added up over trials, read at many
percentiles.

The format is HdrHistogram's V2 payload, deflated, in base64 (github.com/HdrHistogram/HdrHistogram,
src/main/java/org/HdrHistogram/AbstractHistogram.java). A page of code reads it; the package that does the
same needs setuptools and pbr at run time.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.model import Percentile
from dbdyno.records.metrics import OBSERVED_ABOVE

COOKIE = 0x1C849303
COMPRESSED_COOKIE = 0x1C849304
COOKIE_MASK = ~0xF0
HEADER = struct.Struct(">iiiiqqd")
BYTES_MAX = 1 << 20
POINTS_PER_DECADE = 20
DECADES = 4
TOGETHER = 32
SLOTS_MOST = 1 << 17
"""Three digits and a unit of a nanosecond take a third of so many for an hour."""
BITS_MOST, COUNT_BITS_MOST = 56, 53
"""Two years in nanoseconds, and what a float64 counts exactly."""
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


class _Packed(NamedTuple):
    """The slots and counts of a histogram, still packed, and what its slots stand for."""

    body: bytes
    digits: int
    lowest: int
    cut: bool


def summed(texts: Iterable[str]) -> Histogram:
    """One histogram of all operations. Raises ValueError when a text is no histogram.

    They are unpacked some at a time, because one by itself is too short for numpy to be fast, and all at once
    would fill memory.
    """
    totals: dict[tuple[int, int], _Total] = {}
    packed = map(_packed, texts)
    while some := list(islice(packed, TOGETHER)):
        alike: dict[tuple[int, int], list[bytes]] = {}
        for one in some:
            alike.setdefault((one.digits, one.lowest), []).append(one.body)
        for kind, bodies in alike.items():
            totals.setdefault(kind, _Total(*kind)).add(*_slots(bodies))
    return added([part for total in totals.values() for part in total.parts()])


def whole(text: str) -> tuple[Histogram, int]:
    """The one histogram of a text that others wrote, and how many significant digits it keeps. Raises
    ValueError where it is none, is cut short, or holds what no clock and no load reaches."""
    packed = _packed(text)
    if packed.cut or len(_whole_numbers(packed.body)) != len(packed.body):
        raise ValueError("the histogram is cut short")
    slots, counts = _slots([packed.body])
    if len(slots) and (slots.min() < 0 or slots.max() >= _slots_of(packed)):
        raise ValueError(f"the histogram has a value above 2^{BITS_MOST}")
    if counts.astype(np.float64).sum() > 2.0**COUNT_BITS_MOST:
        raise ValueError(f"the histogram claims more than 2^{COUNT_BITS_MOST} values")
    return Histogram(_highest(slots, packed.digits, packed.lowest), counts), packed.digits


def _slots_of(packed: _Packed) -> int:
    """How many slots there are up to the greatest value."""
    half_magnitude = math.ceil(math.log2(2 * 10**packed.digits)) - 1
    return max(BITS_MOST - int(math.log2(packed.lowest)) - half_magnitude + 1, 1) << half_magnitude


def _packed(text: str) -> _Packed:
    try:
        compressed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", compressed)
        if cookie & COOKIE_MASK != COMPRESSED_COOKIE:
            raise ValueError(f"cookie {cookie:#x}")
        unpacking = zlib.decompressobj()
        payload = unpacking.decompress(compressed[8 : 8 + length], BYTES_MAX)
        cookie, length, _, digits, lowest, _, _ = HEADER.unpack_from(payload)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"not an HdrHistogram: {error}") from None
    if cookie & COOKIE_MASK != COOKIE or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError("not an HdrHistogram V2 payload")
    body = payload[HEADER.size : HEADER.size + length]
    return _Packed(body, digits, lowest, cut=not unpacking.eof or len(body) != length)


class _Total:
    """Counts by slot over histograms whose slots stand for the same. Slots beyond those that real latencies
    fall into are kept apart, so that a strange histogram takes no more memory than it has slots."""

    def __init__(self, digits: int, lowest: int) -> None:
        self._kind = digits, lowest
        self._counts = np.zeros(0, dtype=np.int64)
        self._beyond: list[Histogram] = []

    def add(self, slots: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        if len(slots) == 0:
            return
        if slots.min() < 0 or slots.max() >= SLOTS_MOST:
            self._beyond.append(Histogram(_highest(slots, *self._kind), counts))
            return
        self._counts.resize(max(len(self._counts), int(slots.max()) + 1), refcheck=False)
        np.add.at(self._counts, slots, counts)

    def parts(self) -> list[Histogram]:
        filled = np.flatnonzero(self._counts)
        return [Histogram(_highest(filled, *self._kind), self._counts[filled]), *self._beyond]


def _slots(bodies: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Slot numbers and their counts, of one body after the other; a negative number in a body is a run of
    empty slots."""
    whole = [part for body in bodies if (part := _whole_numbers(body))]
    octets = np.frombuffer(b"".join(whole), dtype=np.uint8)
    numbers = _zigzag(octets)
    if len(numbers) == 0:
        return numbers, numbers
    steps = np.where(numbers < 0, -numbers, 1)
    reached = np.cumsum(steps) - steps
    # How many numbers stand before each body, and what the slots had come to there.
    before = np.cumsum(octets < 0x80)
    lengths = np.fromiter(map(len, whole), dtype=np.int64, count=len(whole))
    last = before[np.cumsum(lengths) - 1]
    first = np.concatenate(([0], last[:-1]))
    reached -= np.repeat(reached[first], last - first)
    filled = numbers > 0
    return reached[filled], numbers[filled]


def _whole_numbers(body: bytes) -> bytes:
    """Without a number that is cut short at the end."""
    end = len(body)
    while end and body[end - 1] >= 0x80:
        end -= 1
    return body[:end]


def _zigzag(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The whole numbers of LEB128 with zigzag."""
    ends = np.flatnonzero(octets < 0x80)
    if len(ends) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > 8:
        raise ValueError("not an HdrHistogram: a count above 2^56")
    values = (octets[starts] & 0x7F).astype(np.int64)
    for place in range(1, longest):
        long = np.flatnonzero(lengths > place)
        values[long] |= (octets[starts[long] + place] & 0x7F).astype(np.int64) << (7 * place)
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


def added(parts: Sequence[Histogram]) -> Histogram:
    """One histogram of all operations."""
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
