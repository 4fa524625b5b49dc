"""How wide an interval must be: its confidence beside others, its quantile, and the fewest blocks that it can
rest on. `intervals.py` says why these laws.

Planning needs them as well, and `dyno plan` must start at once: so nothing here imports numpy, and scipy is
imported where a quantile is asked for.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dbdyno.study import Interval

BLOCKS_LEAST = 6
"""Fewer blocks give no verdict: a spread that rests on fewer log ratios is too often too small by chance."""


def confidence_each(confidence: float, comparisons: int) -> float:
    """The confidence of one interval so that all `comparisons` hold together with `confidence` (Šidák
    1967).
    """
    return float(confidence ** (1.0 / max(comparisons, 1)))


def blocks_least(confidence_each: float, interval: Interval) -> int:
    """The fewest blocks that a verdict can rest on. Every rank interval lies within the range of the log
    ratios, which n of them leave with probability 2 / 2^n.
    """
    if interval is not Interval.SIGNED_RANK:
        return BLOCKS_LEAST
    return max(BLOCKS_LEAST, math.ceil(math.log2(2.0 / (1.0 - confidence_each))))


def t_quantile(confidence: float, pairs: int, freedom_most: float = math.inf) -> float:
    """The two-sided Student t quantile for `pairs` log ratios, with at most so many degrees of freedom."""
    return student_quantile(confidence, min(pairs - 1, freedom_most))


@lru_cache(maxsize=1024)
def student_quantile(confidence: float, freedom: float) -> float:
    """The two-sided Student t quantile for so many degrees of freedom."""
    # Here, because it takes longer to import than most commands run; and scipy.stats ten times as long.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2.0))


def f_quantile(level: float, over: int, under: int) -> float:
    """The quantile of the F ratio of two variances with so many degrees of freedom."""
    from scipy.special import fdtri

    return float(fdtri(over, under, level))


PRIOR_VARIANCE = 10.0
"""Of the effect in units of the blocks' spread, in the mixture below. Effects worth finding are several
times the spread; a tenth or tenfold of it changes the width little."""


@lru_cache(maxsize=1024)
def anytime_quantile(confidence: float, pairs: int) -> float:
    """What takes the place of Student's quantile when intervals are looked at after every block.

    The t statistic's likelihood ratio, with the effect size drawn from a normal law and the right Haar
    measure on the spread, is a martingale while the effect is nil, so by Ville's inequality it ever exceeds
    1 / alpha with probability alpha at most. Solved for t that gives an interval which holds at all sample
    sizes together (T. L. Lai, Annals of Statistics 4, 1976, 265-280; H. Wang and A. Ramdas, Anytime-valid
    t-tests and confidence sequences for Gaussian means with unknown variance, 2023). Infinite while there
    are too few pairs.
    """
    freedom = pairs - 1
    growth = 1.0 + pairs * PRIOR_VARIANCE
    bound = (math.sqrt(growth) / (1.0 - confidence)) ** (2.0 / pairs)
    if bound >= growth:
        return math.inf
    return math.sqrt(freedom * (bound - 1.0) / (1.0 - bound / growth))
