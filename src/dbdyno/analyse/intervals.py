"""Intervals of ratios over blocks, and what they say.

The unit of inference is the block. Within a block every variant meets the same disturbances, so the log of
variant / baseline is formed there; its mean over blocks has a Student t interval whatever the blocks have
in common (Student, Biometrika 6, 1908; for randomised blocks R. A. Fisher, The Design of Experiments,
1935).

Each comparison keeps the spread of its own log ratios. Dunnett's intervals (JASA 50, 1955) would be
narrower, since they pool the spread of all variants; but a variant that syncs every commit is noisier than
one that does not, and a pooled spread makes its interval too narrow and all others too wide.

All comparisons share the baseline, so they are corrected together by Šidák's inequality (JASA 62, 1967,
626-633): with m intervals at confidence c^(1/m), all hold together with at least c. It is proved for normal
means with any correlation; spreads estimated per comparison keep it, because sharing the baseline makes
them positively dependent.

A study may ask for the signed-rank interval instead (`signed_rank`): it needs no normal law, only that a
log ratio is as likely above its centre as below, which the random order within a block provides. It is the
better one where trials stall, and it needs more blocks (`blocks_least`).

A sequential run looks at its intervals after every block and stops when it likes what it sees. Neither of the
two survives that; there an interval is used that holds at all looks up to the most blocks
(`planned_quantile`), or at all sample sizes together (`anytime_quantile`) where nobody knows the most.

How wide an interval must be that is looked at again and again, up to a number of blocks that is known.

Each look may spend a part of the error that is allowed. The parts are those of K. K. G. Lan and D. L.
DeMets (Biometrika 70, 1983, 659-663) that resemble the bounds of P. C. O'Brien and T. R. Fleming
(Biometrics 35, 1979): early looks spend next to nothing, so the last interval is hardly wider than
Student's. The bounds follow from the joint law of the looks by the recursion of P. Armitage, C. K.
McPherson and B. C. Rowe (J. R. Stat. Soc. A 132, 1969, 235-244), and intervals of that width hold at all
looks together (C. Jennison and B. W. Turnbull, J. R. Stat. Soc. B 51, 1989, 305-361).

That law is for a spread that is known. Where it is estimated, each bound becomes Student's quantile with
the same tail. Looks then cross less often together than that law says, and so up to 1.2 times as many runs
err as may (simulated, 40,000 runs each of 6 to 100 blocks, an error of 0.5 to 5 %). So a part of the error
is not spent.

Such bounds tell a large difference late where many blocks are planned, and the interval of any number of
looks (`anytime_quantile`) tells a small one late. So a run has the narrower of both, each with a share of the
error, which together hold by Bonferroni's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.found import Narrower, RatioPosition
from dbdyno.analyse.model import Method, Ratio, Reason, Verdict
from dbdyno.analyse.quantiles import BLOCKS_LEAST, anytime_quantile, student_quantile, t_quantile
from dbdyno.study import Interval

SPENT = 0.8
"""Of the error that is allowed: the rest is for the spread that is estimated."""
LOOKS_MOST = 100
"""Between looks that are farther apart the earlier bound holds, which is the wider one."""
POINTS = 301
PLANNED_SHARE = 0.7
"""Of the error, for the bounds of planned looks. Half of it would tell large differences of long runs sooner
by a tenth, but miss more of small ones in short runs than it gains."""
HIGHEST = 8.5
"""A bound beyond which a look spends nothing that a float holds."""


def planned_quantile(confidence: float, pairs: int, most: int) -> float:
    """What takes the place of Student's quantile at `pairs` of at most so many planned log ratios: the
    narrower of both kinds. Infinite while there are too few."""
    if pairs < BLOCKS_LEAST:
        return math.inf
    error = 1.0 - confidence
    at_any_look = anytime_quantile(1.0 - (1.0 - PLANNED_SHARE) * error, pairs)
    if pairs > most:
        return at_any_look
    return min(group_quantile(1.0 - PLANNED_SHARE * error, pairs, most), at_any_look)


@lru_cache(maxsize=4096)
def group_quantile(confidence: float, pairs: int, most: int) -> float:
    """The bound of planned looks at `pairs` of at most so many log ratios, and enough for a verdict."""
    # Here and below, because it takes longer to import than most commands run; and scipy.stats ten times as
    # long.
    from scipy.special import ndtr, stdtrit

    looks = looks_of(most)
    last = max(index for index, look in enumerate(looks) if look <= pairs)
    bound = bounds(SPENT * (1.0 - confidence), looks)[last]
    return float(-stdtrit(pairs - 1, ndtr(-bound)))


def looks_of(most: int) -> tuple[int, ...]:
    """The numbers of blocks at which somebody looks: each one from the first verdict on, or every so many."""
    apart = max(1, math.ceil((most - BLOCKS_LEAST) / LOOKS_MOST))
    return (*range(BLOCKS_LEAST, most, apart), most)


@lru_cache(maxsize=64)
def bounds(error: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """The two-sided bound of a standard normal statistic at each look, so that all together are crossed with
    this probability."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    whole = float(-ndtri(error / 4.0))
    spent, before_variance = 0.0, 0.0
    # The score, and the weight of each of its values where no look was crossed.
    scores, weights = np.zeros(1), np.ones(1)
    found: list[float] = []
    for look in looks:
        variance = look / looks[-1]
        due = 4.0 * float(ndtr(-whole / math.sqrt(variance)))
        step = math.sqrt(variance - before_variance)
        low, high = 0.0, HIGHEST
        for _ in range(40):
            middle = (low + high) / 2.0
            beyond = ndtr((-middle * math.sqrt(variance) - scores) / step)
            low, high = (middle, high) if 2.0 * float(weights @ beyond) > due - spent else (low, middle)
        found.append(high)
        reach = high * math.sqrt(variance)
        values = np.linspace(-reach, reach, POINTS)
        steps = (values[:, None] - scores[None, :]) / step
        density = np.exp(-(steps**2) / 2.0) / math.sqrt(2.0 * math.pi) / step @ weights
        widths = np.full(POINTS, values[1] - values[0])
        widths[[0, -1]] /= 2.0
        scores, weights, spent, before_variance = values, density * widths, due, variance
    return tuple(found)


def share_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of the true share where `count` of so many were seen (C. J. Clopper and E. S.
    Pearson, Biometrika 26, 1934, 404-413); from 0 to 1 where there was nothing to see."""
    if of == 0:
        return 0.0, 1.0
    # Here, because it takes longer to import than most commands run.
    from scipy import stats

    share = stats.binomtest(count, of).proportion_ci(confidence)
    return float(share.low), float(share.high)


def usable(value: float | None) -> bool:
    """Whether a value can stand in a ratio: a finite number above zero."""
    return value is not None and math.isfinite(value) and value > 0.0


Centred = tuple[float, float | None, float | None]
"""A centre with the low and the high end of its interval."""


def ratio_of(
    metric: str,
    log_ratios: Sequence[float] | npt.NDArray[np.float64],
    confidence: float,
    interval: Interval = Interval.STUDENT,
    most: int = 0,
) -> Ratio | None:
    """The geometric mean of ratios that have nothing in common, and its interval; None without a ratio, no
    interval with one. Of blocks `estimate.py` knows what they have in common.

    With the signed-rank interval the ratio is the Hodges-Lehmann estimate. An interval that so few pairs
    cannot give at this confidence is absent. One of planned looks holds up to the `most` pairs.
    """
    pairs = len(log_ratios)
    if pairs == 0:
        return None
    centre, low, high = centre_of(log_ratios, confidence, interval, most)
    return Ratio(
        metric=metric,
        pairs=pairs,
        ratio=math.exp(centre),
        low=None if low is None else bounded_exp(low),
        high=None if high is None else bounded_exp(high),
        log_sd=float(np.sort(log_ratios).std(ddof=1)) if pairs > 1 else None,
        confidence=confidence,
    )


def centre_of(
    found: Sequence[float] | npt.NDArray[np.float64],
    confidence: float,
    interval: Interval = Interval.STUDENT,
    most: int = 0,
) -> Centred:
    """The centre of some values with its interval, in their own unit."""
    # Summing in sorted order makes the figure independent of the order of records, to the last bit.
    values = np.sort(np.asarray(found, dtype=float))
    if interval is Interval.SIGNED_RANK:
        return _signed_rank(values, confidence)
    return _around_the_mean(values, confidence, interval, most)


def _around_the_mean(
    values: npt.NDArray[np.float64], confidence: float, interval: Interval, most: int
) -> Centred:
    mean = float(values.mean())
    half = half_width(values, confidence, interval, most)
    return (mean, None, None) if half is None else (mean, mean - half, mean + half)


def half_width(
    values: Sequence[float] | npt.NDArray[np.float64], confidence: float, interval: Interval, most: int = 0
) -> float | None:
    """Half the width of the interval around the mean, in the values' own unit; None with one value, and with
    too few for this kind. One of planned looks holds up to the `most` values."""
    count = len(values)
    if count < 2 or math.isinf(quantile_of(interval, confidence, count, most)):
        return None
    spread = float(np.std(values, ddof=1))
    quantile = quantile_of(interval, confidence, count, most)
    # Where all values are the same there is no spread to multiply, however wide the quantile.
    return quantile * spread / math.sqrt(count) if spread else 0.0


def quantile_of(interval: Interval, confidence: float, pairs: int, most: int) -> float:
    """By how many standard errors of the mean an interval reaches to either side."""
    if interval is Interval.PLANNED:
        return planned_quantile(confidence, pairs, most)
    return (anytime_quantile if interval is Interval.ANYTIME else t_quantile)(confidence, pairs)


def _signed_rank(values: npt.NDArray[np.float64], confidence: float) -> Centred:
    """The median of the Walsh averages, between two of them that the exact null distribution of Wilcoxon's
    signed-rank statistic picks (J. L. Hodges and E. L. Lehmann, Ann. Math. Stat. 34, 1963; M. Hollander and
    D. A. Wolfe, Nonparametric Statistical Methods, 1973, chapter 3).
    """
    first, second = np.triu_indices(len(values))
    averages = np.sort((values[first] + values[second]) / 2.0)
    rank = signed_rank(confidence, len(values))
    if rank is None:
        return float(np.median(averages)), None, None
    return float(np.median(averages)), float(averages[rank]), float(averages[-1 - rank])


@lru_cache(maxsize=1024)
def signed_rank(confidence: float, pairs: int) -> int | None:
    """How many Walsh averages lie outside the interval on each side; None while so few pairs give none."""
    ways = np.zeros(pairs * (pairs + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, pairs + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    below = np.cumsum(ways / 2.0**pairs)
    outside = int(np.searchsorted(below, (1.0 - confidence) / 2.0, side="right"))
    return outside - 1 if outside else None


def welch(
    metric: str, over: Sequence[float], under: Sequence[float], confidence: float, judged: bool = False
) -> Ratio:
    """The ratio of two geometric means from logs of independent trials, with Welch's interval.

    Without two trials on both sides there is no interval. `pairs` is the smaller count. One that is to be
    judged has its narrower interval.
    """
    sides = _sorted(over), _sorted(under)
    if min(map(len, sides)) < 2:
        return _of_means(metric, *sides, confidence, 0.0, 1.0, judged)
    parts = [float(side.var(ddof=1)) / len(side) for side in sides]
    variance = sum(parts)
    if variance == 0.0:
        return _of_means(metric, *sides, confidence, 0.0, 1.0, judged)
    shares = [(part / variance) ** 2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True)]
    return _of_means(metric, *sides, confidence, variance, 1.0 / sum(shares), judged)


def pooled(
    metric: str, over: Sequence[float], under: Sequence[float], confidence: float, judged: bool = False
) -> Ratio:
    """The same with Student's interval (Biometrika 6, 1908), for two sides of one law but for their means.
    One spread, known from both, tells a smaller difference of a few trials than Welch's two."""
    sides = _sorted(over), _sorted(under)
    freedom = sum(map(len, sides)) - 2
    squares = sum(float(side.var()) * len(side) for side in sides)
    variance = squares / max(freedom, 1) * sum(1.0 / len(side) for side in sides)
    return _of_means(metric, *sides, confidence, variance, freedom, judged)


def _sorted(logs: Sequence[float]) -> npt.NDArray[np.float64]:
    """In one order, so that sums do not depend on that of the trials."""
    return np.sort(np.asarray(logs, float))


def _of_means(
    metric: str,
    over: npt.NDArray[np.float64],
    under: npt.NDArray[np.float64],
    confidence: float,
    variance: float,
    freedom: float,
    judged: bool,
) -> Ratio:
    """The ratio of two geometric means, whose difference of logs has this variance."""
    difference = float(over.mean() - under.mean())
    count = min(len(over), len(under))
    if count < 2:
        return Ratio(metric=metric, pairs=count, ratio=math.exp(difference), confidence=confidence)

    def ends(confidence: float) -> tuple[float, float]:
        half = student_quantile(confidence, freedom) * math.sqrt(variance) if variance > 0.0 else 0.0
        return bounded_exp(difference - half), bounded_exp(difference + half)

    low, high = ends(confidence)
    ratio = Ratio(
        metric=metric,
        pairs=count,
        ratio=math.exp(difference),
        low=low,
        high=high,
        log_sd=math.sqrt(variance),
        confidence=confidence,
    )
    return with_narrower(ratio, *ends(one_sided(confidence))) if judged else ratio


def bounded_exp(value: float) -> float:
    """exp without overflow: two pairs can give an interval wider than a float holds."""
    return math.exp(min(max(value, -700.0), 700.0))


def judge(effect: Ratio, method: Method) -> tuple[Verdict, Reason | None]:
    """The verdict that an interval alone allows.

    The margin is a band of equal ratios, from 1 / (1 + margin) to 1 + margin. An interval inside the band is
    no effect, even when it excludes 1: the difference is real, and smaller than the study cares for. One
    that excludes 1 and reaches out of the band is faster or slower.

    To be within the band is to be below its upper end and above its lower one, so it is shown by two
    one-sided tests, of which a true ratio can fail one alone. So the `narrower` interval of 1 - 2 alpha tells
    it with an error of alpha (D. J. Schuirmann, J. Pharmacokin. Biopharm. 15, 1987). Both rules together err
    as seldom, because where one can err by much the other cannot (simulated, `benches/false_alarms.py`).
    """
    if effect.pairs < method.blocks_least or effect.low is None or effect.high is None:
        return Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS
    if within(effect, method.margin):
        return Verdict.NO_EFFECT, None
    if effect.low > 1.0:
        return (Verdict.FASTER if method.higher_is_better else Verdict.SLOWER), None
    if effect.high < 1.0:
        return (Verdict.SLOWER if method.higher_is_better else Verdict.FASTER), None
    return Verdict.INCONCLUSIVE, Reason.SPREAD


def position_of(ratio: Ratio, method: Method) -> RatioPosition:
    """A difference is told as a verdict is: from the whole interval, and from as many blocks."""
    if ratio.pairs < method.blocks_least or ratio.low is None or ratio.high is None:
        return RatioPosition.OPEN
    if within(ratio, method.margin):
        return RatioPosition.LEVEL
    if ratio.low > 1.0:
        return RatioPosition.ABOVE
    return RatioPosition.BELOW if ratio.high < 1.0 else RatioPosition.OPEN


def one_sided(confidence: float) -> float:
    """The confidence of an interval each end of which errs as seldom as both ends of one of this
    confidence."""
    return max(0.0, round(2.0 * confidence - 1.0, 12))


def with_narrower(effect: Ratio, low: float | None, high: float | None) -> Ratio:
    """The ratio with these ends of its narrower interval, if any."""
    if low is None or high is None:
        return effect
    return effect.but(narrower=Narrower(low=low, high=high, confidence=one_sided(effect.confidence)))


def as_told(effect: Ratio, no_effect: bool, margin: float) -> Ratio:
    """The ratio with its narrower interval only where that there is no effect rests on that one."""
    if effect.narrower is None or (no_effect and not within(effect.but(narrower=None), margin)):
        return effect
    return effect.but(narrower=None)


def within(effect: Ratio, margin: float) -> bool:
    """Whether the whole interval lies within the margin around 1; the narrower one, where there is one."""
    low, high = effect.low, effect.high
    if effect.narrower is not None:
        low, high = effect.narrower.low, effect.narrower.high
    return low is not None and high is not None and low >= 1.0 / (1.0 + margin) and high <= 1.0 + margin


def beyond(effect: Ratio, margin: float) -> bool:
    """Whether the whole interval lies outside the margin around 1, on one side."""
    low, high = effect.low, effect.high
    return low is not None and high is not None and (low > 1.0 + margin or high < 1.0 / (1.0 + margin))
