"""Where a trial's throughput settled: changepoints of the per-second series, warm-up included.

Warm-up is detected, not assumed, in the manner of Barrett et al., Virtual Machine Warmup Blows Hot and Cold
(OOPSLA 2017): the series is cut into segments of one level each, and the steady state begins where what
follows stays at one level. The cut is the penalised least-squares optimum (optimal partitioning, Jackson et
al., IEEE Signal Processing Letters 12, 2005; a series is short enough to do without the pruning of PELT).

Single seconds do not make a regime: a Hampel filter (Pearson, IEEE Trans. Control Systems Technology 10,
2002) first pulls lone outliers, such as one stalled second, back to their neighbours.

Whether a quantity of a running server drifts: its slope, with an interval, from its values at even times.

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

What may be said of one gauge of a soak: whether it keeps within its room for the time that was asked.

The room of a gauge is what it may gain: up to its limit, and by no more than the share that the study allows.
It *stands* where the upper bound of its growth, carried on in a straight line over the horizon, fits into the
room. It *rises* only where the growth that was seen has used the room up, because half a period of a slow
sawtooth looks like a leak until then. All else is open, with the length of load that is likely to settle it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import accumulate
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.found import Segment, Series, Steady
from dbdyno.analyse.quantiles import t_quantile
from dbdyno.driver.tally import Tally
from dbdyno.frozen import Frozen, absent
from dbdyno.records.metrics import GAUGES, whole_seconds
from dbdyno.records.record import Limit
from dbdyno.study.soak import Soak

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


POWERED = 1.43
"""By how much narrower than the room an interval must be so that it lies within it in 80 of 100 cases: the
quantiles of 80 % and of 97.5 % of the normal law together, by the latter. More confidence needs less."""
MORE = 1.25
"""So much of the room: it grows with the level, and what has just used it up is not seen to have done so."""
SLOPE_KEPT = 0.4
"""By so much of half its interval a slope may be less than it seems: about one standard error."""


class Standing(StrEnum):
    """What may be said of one gauge. `STEADY`: whatever it gains within the horizon fits into its room.
    `NEGLIGIBLE`: so it does, and it rises beyond doubt. `UNSURE`: no rise is shown, and none that would be
    too large is excluded. `WITHIN`: beside other clients it rises, and only as high as the load alone took it
    before them. `RISING`: it has used its room up. `FILLING`: it rises, and more slowly the longer it lasts,
    so that nobody knows where it ends. `EARLY`: it rises, and has not gained enough yet to tell whether that
    goes on. `BRIEF`: it rises, as it does at the beginning of any load, and the load was no longer than that.
    """

    STEADY = "steady"
    NEGLIGIBLE = "negligible"
    UNSURE = "unsure"
    WITHIN = "no higher than under the load alone"
    RISING = "rising"
    FILLING = "still filling"
    EARLY = "too early to tell"
    BRIEF = "as at the beginning of any load"


class Rate(Frozen):
    """A growth, each second or by the million transactions, with its interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Rate:
        return Rate(value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def less(self, other: Rate) -> Rate:
        """The difference of two rates that were measured apart."""
        value = self.value - other.value
        down = math.hypot(self.value - self.low, other.high - other.value)
        up = math.hypot(self.high - self.value, other.value - other.low)
        return Rate(value=value, low=value - down, high=value + up)

    def above_zero(self) -> Rate:
        return Rate(value=max(self.value, 0.0), low=max(self.low, 0.0), high=max(self.high, 0.0))


def room_of(gauge: str, slope: Slope, limit: Limit | None, soak: Soak) -> float:
    """By how much a gauge may grow beyond its last level."""
    allowed = max(soak.rise * abs(slope.last), GAUGES[gauge].harmless - slope.last)
    return max(min(allowed, limit.most - slope.last), 0.0) if limit else allowed


def standing_under_load(gauge: str, per_s: Rate, slope: Slope, room: float, soak: Soak) -> Standing:
    """Under the sustained load alone. `per_s` is the slope less that of the control. The bound is that of the
    slope as measured, because what grows at rest as well fills the room, too."""
    if slope.high * soak.horizon_s <= room:
        return Standing.NEGLIGIBLE if per_s.low > 0.0 else Standing.STEADY
    return _rise(gauge, per_s, slope, room) if per_s.low > 0.0 else Standing.UNSURE


def standing_beside(gauge: str, per_s: Rate, slope: Slope, room: float, within: bool) -> Standing:
    """Beside other clients, for a short time: only a rise is judged, and what stayed `within` is none."""
    if per_s.low <= 0.0:
        return Standing.STEADY
    return Standing.WITHIN if within else _rise(gauge, per_s, slope, room)


def _rise(gauge: str, per_s: Rate, slope: Slope, room: float) -> Standing:
    if slope.until_s < GAUGES[gauge].judged_after_s:
        return Standing.BRIEF
    if slope.slowing:
        return Standing.FILLING
    return Standing.RISING if per_s.low * (slope.until_s - slope.since_s) >= room else Standing.EARLY


def settles_s(gauge: str, standing: Standing, slope: Slope, room: float, soak: Soak) -> float:
    """How long a load is likely to settle an open gauge, in seconds: the horizon at most, because a load of
    that length shows what it asks."""
    least_s = max(slope.until_s, GAUGES[gauge].judged_after_s)
    allowed = room / soak.horizon_s
    if standing is Standing.FILLING:
        length_s = 2.0 * least_s
    elif slope.per_s < allowed:
        length_s = _narrows_s(slope, allowed - max(slope.per_s, 0.0))
    else:
        # Where no rise is shown, it may be luck that the slope looks too large.
        length_s = max(
            _narrows_s(slope, allowed) if slope.low <= 0.0 else 0.0, _gains_s(slope, room, allowed)
        )
    return min(max(length_s, least_s), max(soak.horizon_s, least_s))


def _narrows_s(slope: Slope, spare: float) -> float:
    """The length of a load whose interval is likely to reach no further than `spare` above its middle.
    Intervals of a slope narrow with the length of a load at the least, those of a random walk with its root.
    """
    if spare <= 0.0:
        return math.inf
    narrower = POWERED * (slope.high - slope.per_s) / spare
    return slope.until_s * (narrower**2 if slope.walks else narrower)


def _gains_s(slope: Slope, room: float, allowed: float) -> float:
    """The length of a load in which a rise like this is likely to be seen to use the room up."""
    half, needed = slope.per_s - slope.low, MORE * room
    per_s = max(slope.per_s - SLOPE_KEPT * half, allowed)
    if not slope.walks:
        return slope.since_s + (needed + half * slope.until_s) / per_s
    root = half * math.sqrt(slope.until_s)
    return slope.since_s + ((root + math.sqrt(root**2 + 4.0 * per_s * needed)) / 2.0 / per_s) ** 2


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
