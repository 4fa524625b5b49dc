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
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.times import Segment, Series, Steady
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


def steady_state(seconds: Sequence[int], operations: Sequence[float]) -> Steady | None:
    """The steady state of a series of operations per second; None when it is too short to tell.

    `seconds` count from the start of the measured part: warm-up is negative. A trial is settled when its
    steady state covers at least half of the measured part (White's rule for truncation points, Simulation
    69, 1997); the warm-up was enough when it covers all of it.
    """
    if len(operations) < SHORTEST_SERIES or sum(second >= 0 for second in seconds) < SHORTEST_SEGMENT:
        return None
    last = seconds[-1] + 1
    # Hours need no resolution of a second, and the cut is quadratic in the number of points.
    seconds, series = _batched(seconds, operations, -(-len(operations) // LONGEST_SERIES))
    measured = sum(second >= 0 for second in seconds)
    filtered = hampel(series)
    sigma = noise(series)
    bounds = partition(filtered, sigma)
    levels = [float(filtered[start:stop].mean()) for start, stop in bounds]
    first = _first_steady(bounds, levels, sigma)
    start = max(bounds[first][0], 0)
    share = sum(second >= 0 for second in seconds[start:]) / measured
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


def series_shown(tally: Tally) -> Series | None:
    """Operations per second at a resolution that a figure can show; None where there are none.

    The intervals are as short as the tally's: the few seconds of a short run show nothing.
    """
    fine = tally.fine_series
    if fine is None:
        return _shown(*whole_seconds(tally), 1)
    starts = [round(fine.start_s + index * fine.interval_s, 6) for index in range(len(fine.operations))]
    return _shown(starts, [count / fine.interval_s for count in fine.operations], fine.interval_s)


def _shown(starts: Sequence[float], per_s: Sequence[float], interval_s: float) -> Series | None:
    if not per_s:
        return None
    width = -(-len(per_s) // POINTS_SHOWN)
    shown, values = _batched(starts, per_s, width)
    return Series(
        width_s=width * interval_s, seconds=tuple(shown), operations_per_s=tuple(float(v) for v in values)
    )


Start = TypeVar("Start", int, float)


def _batched(
    starts: Sequence[Start], operations: Sequence[float], width: int
) -> tuple[Sequence[Start], Values]:
    """Means of batches of `width` intervals; what does not fill a batch at the end is left out."""
    whole = len(operations) - len(operations) % width
    values = np.asarray(operations[:whole], dtype=np.float64).reshape(-1, width).mean(axis=1)
    return [starts[index] for index in range(0, whole, width)], values


def hampel(series: Values, reach: int = 2, limit: float = 3.0) -> Values:
    """Values further than `limit` robust deviations from the median of their neighbourhood become that
    median.

    The deviation is taken from the whole series' residuals: five neighbours are too few to tell one.
    """
    padded = np.pad(series, reach, mode="reflect")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1), axis=1)
    residuals = series - medians
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(residuals)))
    if deviation == 0.0:
        return series
    return np.where(np.abs(residuals) > limit * deviation, medians, series)


def noise(series: Values) -> float:
    """The standard deviation around the level, robust against changes of level: the MAD of first differences
    / sqrt 2.
    """
    differences = np.diff(series)
    return MAD_TO_SIGMA * float(np.median(np.abs(differences - np.median(differences)))) / math.sqrt(2.0)


def partition(series: Values, sigma: float) -> list[tuple[int, int]]:
    """The segments `[start, stop)` that minimise squared error / sigma^2 + a penalty per segment.

    The penalty is 6 ln n. The modified BIC has 3 ln n (Zhang and Siegmund, Biometrics 63, 2007) for
    independent values; neighbouring seconds of a server are not, and Barrett et al. take 15 ln n. With 6, of
    25 flat seconds whose neighbours correlate at 0.4, one series in a hundred is called unsettled.

    A thousandth of the level counts as noise at least, so that a quiet series is not cut into its roundings.
    """
    count = len(series)
    scale = max(sigma, 1e-3 * abs(float(series.mean())), 1e-12)
    values = series / scale
    sums = np.concatenate(([0.0], np.cumsum(values)))
    squares = np.concatenate(([0.0], np.cumsum(values**2)))
    penalty = PENALTY * math.log(count)
    best = np.full(count + 1, np.inf)
    best[0] = 0.0
    previous = np.zeros(count + 1, dtype=np.int64)
    for stop in range(SHORTEST_SEGMENT, count + 1):
        starts = np.arange(stop - SHORTEST_SEGMENT + 1)
        costs = squares[stop] - squares[starts] - (sums[stop] - sums[starts]) ** 2 / (stop - starts)
        totals = best[starts] + costs + penalty
        choice = int(np.argmin(totals))
        best[stop], previous[stop] = totals[choice], choice
    return _trace(previous, count)


def _trace(previous: npt.NDArray[np.int64], count: int) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    stop = count
    while stop > 0:
        bounds.append((int(previous[stop]), stop))
        stop = int(previous[stop])
    return bounds[::-1]


def _first_steady(bounds: list[tuple[int, int]], levels: list[float], sigma: float) -> int:
    """The first segment of the steady state.

    It and the last segment must be equivalent to the level of all that follows, and so must at least four
    fifths of the seconds between: a short dip that comes back (a checkpoint) is part of a steady state, a
    lasting change is not. Equivalent is closer than 5 %, or than the noise of a second.
    """
    for first in range(len(bounds)):
        lengths = [stop - start for start, stop in bounds[first:]]
        level = float(np.median(np.repeat(levels[first:], lengths)))
        tolerance = max(TOLERANCE * abs(level), sigma)
        far = [abs(candidate - level) > tolerance for candidate in levels[first:]]
        excursions = sum(length for length, away in zip(lengths, far, strict=True) if away)
        if not far[0] and not far[-1] and excursions <= EXCURSIONS * sum(lengths):
            return first
    return len(bounds) - 1
