"""Whether a quantity of a running server drifts: its slope, with an interval, from its values at even times.

Neighbouring values of a server are alike, so an interval that takes them for independent finds a trend in
every quiet series; the tests of Mann and Kendall are known for that. What is done instead:

1.  The slope is Theil and Sen's (P. K. Sen, JASA 63, 1968): the median of the slopes between all pairs, so
    that a burst moves it little. The series is averaged to `POINTS_MOST` points at most first.
2.  The first-order autocorrelation of the residuals, with its small-sample bias taken off (Marriott and Pope,
    Biometrika 41, 1954), is taken out of the series. Slope and interval are of what is left.
3.  A series whose residuals remember nearly everything is a random walk as far as anyone can tell (Perron and
    Yabu, Journal of Econometrics 151, 2009, treat it so). Its slope is then the mean of the increments of
    `BATCHES` batches, with Student's interval. One large step gives no slope in this way, and many do.

Warm-up is not assumed to be over. While the series grows, and the more slowly the longer it lasts, its first
half is left out: a cache that fills ends flat, and a leak does not. Near its end, every curve looks straight.
So a straight rise in less than half of the series proves no leak.

A leak may begin late, and the median of all slopes passes over one in the last part of a series. So the last
fifth has a slope of its own. Where that is shown to be steeper than the slope of all, it is the slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dbdyno.analyse.quantiles import t_quantile
from dbdyno.analyse.steady import Values, noise
from dbdyno.frozen import Frozen, absent

POINTS_MOST = 240
POINTS_LEAST = 60
"""Fewer give no interval that holds what it promises."""
BATCHES = 20
WALKS_WITHIN = 2.0
"""An autocorrelation closer to 1 than so many times 1/sqrt(points) cannot be told from a random walk."""
SLOWER = 0.75
"""Growth that becomes less than this share of what it was slows down."""
LAST_SHARE = 0.2
"""Of a series that is long enough, the part that is looked at by itself."""
WARM_UP_MOST = 0.5
"""Growth that goes on is told from a cache that fills slowly by this share of the series at the least."""


Estimate = tuple[float, float, float]
"""A slope from value to value, and the ends of its interval."""


class Slope(Frozen):
    """By how much a quantity changes each second, over the seconds `since_s` to `until_s` of its series.

    What came before was warm-up. `slowing` says that the growth still slowed down in the last part that is
    long enough to tell, so that nobody knows yet where it ends. `last` is the level at the end. `walks` says
    that the interval is that of a random walk, and `late` that the slope is that of the last fifth, which is
    steeper.
    """

    per_s: float
    low: float
    high: float
    since_s: float
    until_s: float
    last: float
    slowing: bool = False
    walks: bool = False
    late: bool = absent(False)


def slope_of(values: Sequence[float], interval_s: float, confidence: float) -> Slope | None:
    """The slope of a series with a value in every `interval_s`; None where it is too short."""
    series = np.asarray(values, dtype=np.float64)
    if len(series) < POINTS_LEAST:
        return None
    first = 0
    while True:
        kept = series[first:]
        slowing = _slows(kept)
        if not slowing or len(kept) < 2 * POINTS_LEAST:
            break
        first += len(kept) // 2
    estimate, walks = _slope(kept, confidence)
    latest = series[len(series) - int(LAST_SHARE * len(series)) :]
    late = len(latest) >= POINTS_LEAST and len(latest) < len(kept) and _steeper(latest, estimate, confidence)
    if late:
        first, kept, slowing = len(series) - len(latest), latest, False
        estimate, walks = _slope(kept, confidence)
    per_s, low, high = (end / interval_s for end in estimate)
    return Slope(
        per_s=per_s,
        low=low,
        high=high,
        since_s=first * interval_s,
        until_s=len(series) * interval_s,
        last=float(np.median(kept[-max(len(kept) // 10, 1) :])),
        slowing=low > 0.0 and not late and (slowing or len(kept) < WARM_UP_MOST * len(series)),
        walks=walks,
        late=late,
    )


def _steeper(latest: Values, of_all: Estimate, confidence: float) -> bool:
    """Whether the last values rise faster than all of them, beyond both intervals."""
    (_, low, _), _ = _slope(latest, confidence)
    return low > max(of_all[2], 0.0)


def _slows(series: Values) -> bool:
    """Whether a series that grew by more than its noise gained less from its middle third to its last one
    than from its first to its middle one."""
    early, middle, late = (float(np.median(third)) for third in np.array_split(series, 3))
    return middle - early > noise(series) and late - middle < SLOWER * (middle - early)


def _slope(series: Values, confidence: float) -> tuple[Estimate, bool]:
    """The slope of a series, and whether that was taken for a random walk."""
    width = -(-len(series) // POINTS_MOST)
    points = series[: len(series) - len(series) % width].reshape(-1, width).mean(axis=1)
    residuals = points - float(np.median(_pairwise(points))) * np.arange(len(points))
    memory = _autocorrelation(residuals - residuals.mean())
    walks = memory > 1.0 - WALKS_WITHIN / math.sqrt(len(points))
    per_s, low, high = (
        _of_increments(points, confidence) if walks else _of_pairs(points, max(memory, 0.0), confidence)
    )
    return (per_s / width, low / width, high / width), walks


def _pairwise(points: Values) -> Values:
    """The slopes between all pairs of points, in rising order."""
    early, late = np.triu_indices(len(points), 1)
    return np.sort((points[late] - points[early]) / (late - early))


def _autocorrelation(residuals: Values) -> float:
    """Between neighbours, without the bias that taking off a trend brings."""
    power = float(residuals[:-1] @ residuals[:-1])
    if power == 0.0:
        return 0.0
    count = len(residuals)
    return (count * float(residuals[1:] @ residuals[:-1]) / power + 2.0) / (count - 4)


def _of_pairs(points: Values, memory: float, confidence: float) -> Estimate:
    """Theil and Sen's slope of the points without their autocorrelation, with Sen's interval."""
    innovations = points[1:] - memory * points[:-1]
    slopes = _pairwise(innovations) / (1.0 - memory)
    count, pairs = len(innovations), len(slopes)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * deviation
    low, high = math.floor((pairs - reach) / 2.0), math.ceil((pairs + reach) / 2.0)
    return (
        float(np.median(slopes)),
        float(slopes[max(low, 0)]),
        float(slopes[min(high, pairs - 1)]),
    )


def _of_increments(points: Values, confidence: float) -> Estimate:
    """The mean increment of a random walk. What does not fill a batch at the beginning is left out."""
    each = (len(points) - 1) // BATCHES
    increments = np.diff(points)[-each * BATCHES :].reshape(BATCHES, each).mean(axis=1)
    mean = float(increments.mean())
    half = t_quantile(confidence, BATCHES) * float(increments.std(ddof=1)) / math.sqrt(BATCHES)
    return mean, mean - half, mean + half
