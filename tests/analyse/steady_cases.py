"""The steady state of one series by the formula as it is written down, a step and a series at a time.

`dbdyno.analyse.steady` computes many series together, and must give the same figures to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.found import Segment, Steady
from dbdyno.analyse.steady import (
    EXCURSIONS,
    LONGEST_SERIES,
    MAD_TO_SIGMA,
    PENALTY,
    SHARE_NEEDED,
    SHORTEST_SEGMENT,
    SHORTEST_SERIES,
    TOLERANCE,
)

Values = npt.NDArray[np.float64]


def straight_steady_state(seconds: Sequence[int], operations: Sequence[float]) -> Steady | None:
    if len(operations) < SHORTEST_SERIES or sum(second >= 0 for second in seconds) < SHORTEST_SEGMENT:
        return None
    last = seconds[-1] + 1
    seconds, series = _batched(seconds, operations, -(-len(operations) // LONGEST_SERIES))
    measured = sum(second >= 0 for second in seconds)
    filtered = _hampel(series)
    sigma = _noise(series)
    bounds = _partition(filtered, sigma)
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


def _batched(starts: Sequence[int], operations: Sequence[float], width: int) -> tuple[Sequence[int], Values]:
    whole = len(operations) - len(operations) % width
    values = np.asarray(operations[:whole], dtype=np.float64).reshape(-1, width).mean(axis=1)
    return [starts[index] for index in range(0, whole, width)], values


def _hampel(series: Values, reach: int = 2, limit: float = 3.0) -> Values:
    padded = np.pad(series, reach, mode="reflect")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1), axis=1)
    residuals = series - medians
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(residuals)))
    if deviation == 0.0:
        return series
    return np.where(np.abs(residuals) > limit * deviation, medians, series)


def _noise(series: Values) -> float:
    differences = np.diff(series)
    return MAD_TO_SIGMA * float(np.median(np.abs(differences - np.median(differences)))) / math.sqrt(2.0)


def _partition(series: Values, sigma: float) -> list[tuple[int, int]]:
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
    for first in range(len(bounds)):
        lengths = [stop - start for start, stop in bounds[first:]]
        level = float(np.median(np.repeat(levels[first:], lengths)))
        tolerance = max(TOLERANCE * abs(level), sigma)
        far = [abs(candidate - level) > tolerance for candidate in levels[first:]]
        excursions = sum(length for length, away in zip(lengths, far, strict=True) if away)
        if not far[0] and not far[-1] and excursions <= EXCURSIONS * sum(lengths):
            return first
    return len(bounds) - 1
