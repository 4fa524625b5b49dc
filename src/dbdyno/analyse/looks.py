"""How wide an interval must be that is looked at again and again, up to a number of blocks that is known.

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
from functools import lru_cache

from dbdyno.analyse.quantiles import BLOCKS_LEAST, anytime_quantile

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
    from scipy import stats

    looks = looks_of(most)
    last = max(index for index, look in enumerate(looks) if look <= pairs)
    bound = bounds(SPENT * (1.0 - confidence), looks)[last]
    return float(stats.t.isf(stats.norm.sf(bound), pairs - 1))


def looks_of(most: int) -> tuple[int, ...]:
    """The numbers of blocks at which somebody looks: each one from the first verdict on, or every so many."""
    apart = max(1, math.ceil((most - BLOCKS_LEAST) / LOOKS_MOST))
    return (*range(BLOCKS_LEAST, most, apart), most)


@lru_cache(maxsize=64)
def bounds(error: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """The two-sided bound of a standard normal statistic at each look, so that all together are crossed with
    this probability."""
    import numpy as np
    from scipy import stats
    from scipy.special import ndtr

    whole = float(stats.norm.isf(error / 4.0))
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
        density = stats.norm.pdf((values[:, None] - scores[None, :]) / step) / step @ weights
        widths = np.full(POINTS, values[1] - values[0])
        widths[[0, -1]] /= 2.0
        scores, weights, spent, before_variance = values, density * widths, due, variance
    return tuple(found)
