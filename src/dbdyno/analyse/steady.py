"""Where a trial's throughput settled: changepoints of the per-second series, warm-up included.

Warm-up is detected, not assumed, in the manner of Barrett et al., Virtual Machine Warmup Blows Hot and Cold
(OOPSLA 2017): the series is cut into segments of one level each, and the steady state begins where what
follows stays at one level. The cut is the penalised least-squares optimum (optimal partitioning, Jackson et
al., IEEE Signal Processing Letters 12, 2005; a series is short enough to do without the pruning of PELT).

Single seconds do not make a regime: a Hampel filter (Pearson, IEEE Trans. Control Systems Technology 10,
2002) first pulls lone outliers, such as one stalled second, back to their neighbours.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.found import Segment, Series, Steady
from dbdyno.driver.tally import Tally

Values = npt.NDArray[np.float64]

SHORTEST_SEGMENT = 3
SHORTEST_SERIES = 2 * SHORTEST_SEGMENT
LONGEST_SERIES = 1200
POINTS_SHOWN = 150
PENALTY = 6.0
TOLERANCE = 0.05
EXCURSIONS = 0.2
SHARE_NEEDED = 0.5
MAD_TO_SIGMA = 1.4826
CELLS_TOGETHER = 1 << 15
"""So many points fit into a CPU's cache with what is computed from them."""


Counts = tuple[Sequence[int], Sequence[float]]
"""Seconds from the start of the measured part, and the operations in each: warm-up is negative."""


def steady_states(each: Sequence[Counts]) -> list[Steady | None]:
    """The steady state of each series of operations per second; None where it is too short to tell.

    A trial is settled when its steady state covers at least half of the measured part (White's rule for
    truncation points, Simulation 69, 1997); the warm-up was enough when it covers all of it.

    Series of one length are rows of one array, because a series by itself is too short for numpy to be fast.
    """
    found: list[Steady | None] = [None] * len(each)
    by_length: dict[int, list[int]] = {}
    for place, (seconds, operations) in enumerate(each):
        measured = len(seconds) - bisect_left(seconds, 0)
        if len(operations) >= SHORTEST_SERIES and measured >= SHORTEST_SEGMENT:
            by_length.setdefault(len(operations), []).append(place)
    for length, places in by_length.items():
        together = max(1, CELLS_TOGETHER // length)
        for start in range(0, len(places), together):
            some = places[start : start + together]
            for place, steady in zip(some, _of_one_length([each[place] for place in some]), strict=True):
                found[place] = steady
    return found


def _of_one_length(each: Sequence[Counts]) -> Iterator[Steady]:
    rows = np.array([operations for _, operations in each], dtype=np.float64)
    # Hours need no resolution of a second, and the cut is quadratic in the number of points.
    width = -(-rows.shape[1] // LONGEST_SERIES)
    rows = _means(rows, width)
    filtered = hampel(rows)
    sigmas = _noises(rows)
    cuts = partitions(filtered, sigmas)
    for (seconds, _), bounds, levels, sigma in zip(
        each, cuts, _levels(filtered, cuts), sigmas.tolist(), strict=True
    ):
        yield _steady(seconds[: rows.shape[1] * width : width], seconds[-1] + 1, bounds, levels, sigma)


def _steady(
    seconds: Sequence[int], last: int, bounds: list[tuple[int, int]], levels: list[float], sigma: float
) -> Steady:
    """From the cut of a series whose points begin at `seconds`; it ends before `last`."""
    start = bounds[_first_steady(bounds, levels, sigma)][0]
    warmup = bisect_left(seconds, 0)
    share = (len(seconds) - max(start, warmup)) / (len(seconds) - warmup)
    return Steady(
        settled_at=seconds[start],
        share=share,
        settled=share >= SHARE_NEEDED,
        warmup_enough=share >= 1.0,
        segments=tuple(
            Segment(start=seconds[begin], stop=seconds[end] if end < len(seconds) else last, level=level)
            for (begin, end), level in zip(bounds, levels, strict=True)
        ),
    )


def _levels(rows: Values, cuts: Sequence[list[tuple[int, int]]]) -> list[list[float]]:
    """The mean of each segment of each row. Segments that begin and end alike are averaged together."""
    alike: dict[tuple[int, int], list[int]] = {}
    for row, bounds in enumerate(cuts):
        for bound in bounds:
            alike.setdefault(bound, []).append(row)
    levels: list[list[float]] = [[] for _ in cuts]
    # In their order in a row, because a segment is known by where it begins.
    for (start, stop), own in sorted(alike.items()):
        means = np.ascontiguousarray(rows[own, start:stop]).mean(axis=1)
        for row, mean in zip(own, means.tolist(), strict=True):
            levels[row].append(mean)
    return levels


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


def series_shown(tally: Tally, whole: Counts | None = None) -> Series | None:
    """Operations per second at a resolution that a figure can show; None where there are none.

    The intervals are as short as the tally's: the few seconds of a short run show nothing. `whole` are its
    whole seconds, where they are known already.
    """
    fine = tally.fine_series
    if fine is None:
        return _shown(*(whole or whole_seconds(tally)), 1)
    starts = [round(fine.start_s + index * fine.interval_s, 6) for index in range(len(fine.operations))]
    return _shown(starts, [count / fine.interval_s for count in fine.operations], fine.interval_s)


def _shown(starts: Sequence[float], per_s: Sequence[float], interval_s: float) -> Series | None:
    if not per_s:
        return None
    width = -(-len(per_s) // POINTS_SHOWN)
    values = per_s if width == 1 else _means(np.asarray(per_s, dtype=np.float64), width).tolist()
    shown = starts[: len(values) * width : width]
    return Series(width_s=width * interval_s, seconds=tuple(shown), operations_per_s=tuple(values))


def _means(rows: Values, width: int) -> Values:
    """Means of batches of `width` intervals; what does not fill a batch at the end of a row is left out."""
    if width == 1:
        return rows
    whole = rows.shape[-1] - rows.shape[-1] % width
    means: Values = rows[..., :whole].reshape(*rows.shape[:-1], -1, width).mean(axis=-1)
    return means


def hampel(rows: Values, limit: float = 3.0) -> Values:
    """Values further than `limit` robust deviations from the median of their five neighbours, themselves
    among them, become that median.

    The deviation is taken from the residuals of all of a row: five neighbours are too few to tell one.
    """
    medians = _medians_of_five(rows)
    residuals = np.abs(rows - medians)
    deviations = MAD_TO_SIGMA * np.median(residuals, axis=-1, keepdims=True)
    filtered: Values = np.where((deviations != 0.0) & (residuals > limit * deviations), medians, rows)
    return filtered


def _medians_of_five(rows: Values) -> Values:
    """The median of each value and its two neighbours on both sides; a row is mirrored at its ends."""
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(2, 2)], mode="reflect")
    a, b, c, d, e = (padded[..., reach : reach + rows.shape[-1]] for reach in range(5))
    # Of the two lower of two pairs the higher can be the median, of the two higher the lower, or the fifth.
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    medians: Values = np.maximum(np.minimum(low, high), np.minimum(np.maximum(low, high), e))
    return medians


def noise(series: Values) -> float:
    """The standard deviation around the level, robust against changes of level: the MAD of first differences
    / sqrt 2.
    """
    return float(_noises(series))


def _noises(rows: Values) -> Values:
    differences = np.diff(rows)
    centred = np.abs(differences - np.median(differences, axis=-1, keepdims=True))
    noises: Values = MAD_TO_SIGMA * np.median(centred, axis=-1) / math.sqrt(2.0)
    return noises


def partitions(rows: Values, sigmas: Values) -> list[list[tuple[int, int]]]:
    """The segments `[start, stop)` of each row that minimise squared error / sigma^2 + a penalty per segment.

    The penalty is 6 ln n. The modified BIC has 3 ln n (Zhang and Siegmund, Biometrics 63, 2007) for
    independent values; neighbouring seconds of a server are not, and Barrett et al. take 15 ln n. With 6, of
    25 flat seconds whose neighbours correlate at 0.4, one series in a hundred is called unsettled.

    A thousandth of the level counts as noise at least, so that a quiet series is not cut into its roundings.
    """
    number, count = rows.shape
    scales = np.maximum(np.maximum(sigmas, 1e-3 * np.abs(rows.mean(axis=1))), 1e-12)
    values = rows / scales[:, np.newaxis]
    sums, squares = np.zeros((number, count + 1)), np.zeros((number, count + 1))
    np.cumsum(values, axis=1, out=sums[:, 1:])
    np.cumsum(values**2, axis=1, out=squares[:, 1:])
    penalty = PENALTY * math.log(count)
    best = np.full((number, count + 1), np.inf)
    best[:, 0] = 0.0
    previous = np.zeros((number, count + 1), dtype=np.int64)
    every = np.arange(number)
    for stop in range(SHORTEST_SEGMENT, count + 1):
        starts = slice(stop - SHORTEST_SEGMENT + 1)
        lengths = np.arange(stop, SHORTEST_SEGMENT - 1, -1)
        costs = squares[:, stop, np.newaxis] - squares[:, starts]
        costs -= (sums[:, stop, np.newaxis] - sums[:, starts]) ** 2 / lengths
        totals = best[:, starts] + costs + penalty
        choices = totals.argmin(axis=1)
        best[:, stop], previous[:, stop] = totals[every, choices], choices
    return [_trace(row, count) for row in previous.tolist()]


def _trace(previous: Sequence[int], count: int) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    stop = count
    while stop > 0:
        bounds.append((previous[stop], stop))
        stop = previous[stop]
    return bounds[::-1]


def _first_steady(bounds: list[tuple[int, int]], levels: list[float], sigma: float) -> int:
    """The first segment of the steady state.

    It and the last segment must be equivalent to the level of all that follows, and so must at least four
    fifths of the seconds between: a short dip that comes back (a checkpoint) is part of a steady state, a
    lasting change is not. Equivalent is closer than 5 %, or than the noise of a second.
    """
    for first in range(len(bounds)):
        lengths = [stop - start for start, stop in bounds[first:]]
        level = _median_second(levels[first:], lengths)
        tolerance = max(TOLERANCE * abs(level), sigma)
        far = [abs(candidate - level) > tolerance for candidate in levels[first:]]
        excursions = sum(length for length, away in zip(lengths, far, strict=True) if away)
        if not far[0] and not far[-1] and excursions <= EXCURSIONS * sum(lengths):
            return first
    return len(bounds) - 1


def _median_second(levels: Sequence[float], lengths: Sequence[int]) -> float:
    """The median of the levels, each as often as it has seconds."""
    rising = sorted(zip(levels, lengths, strict=True))
    ends = list(accumulate(length for _, length in rising))
    below, above = (bisect_right(ends, rank) for rank in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return rising[below][0] if below == above else (rising[below][0] + rising[above][0]) / 2.0
