"""Intervals of ratios over blocks, and what they say.

The unit of inference is the block. Within a block every variant meets the same disturbances, so the log of
variant / baseline is formed there; its mean over blocks has a Student t interval whatever the blocks have
in common (Student, Biometrika 6, 1908; for randomised blocks R. A. Fisher, The Design of Experiments,
1935).

Each comparison keeps the spread of its own log ratios. Dunnett's intervals (JASA 50, 1955) would be
narrower, since they pool the spread of all variants; but a setup that syncs every commit is noisier than
one that does not, and a pooled spread makes its interval too narrow and all others too wide.

All comparisons share the baseline, so they are corrected together by Šidák's inequality (JASA 62, 1967,
626-633): with m intervals at confidence c^(1/m), all hold together with at least c. It is proved for normal
means with any correlation; spreads estimated per comparison keep it, because sharing the baseline makes
them positively dependent.

A sequential run looks at its intervals after every block and stops when it likes what it sees. Student's
interval does not survive that; there an interval is used that holds at all sample sizes together
(`anytime_quantile`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

from dbdyno.analyse.model import Method, Ratio, Reason, Verdict

POWER = 0.8
BLOCKS_LIMIT = 1000


def confidence_each(confidence: float, comparisons: int) -> float:
    """The confidence of one interval so that all `comparisons` hold together with `confidence` (Šidák
    1967).
    """
    return float(confidence ** (1.0 / max(comparisons, 1)))


def usable(value: float | None) -> bool:
    """Whether a value can stand in a ratio: a finite number above zero."""
    return value is not None and math.isfinite(value) and value > 0.0


def ratio_of(
    metric: str, log_ratios: Sequence[float], confidence: float, anytime: bool = False
) -> Ratio | None:
    """The geometric mean of ratios and its interval; None without a pair, no interval with one.

    The interval is Student's, or with `anytime` one that may be looked at after every block.
    """
    pairs = len(log_ratios)
    if pairs == 0:
        return None
    # Summing in sorted order makes the figure independent of the order of records, to the last bit.
    values = np.sort(np.asarray(log_ratios, dtype=float))
    mean = float(values.mean())
    if pairs == 1:
        return Ratio(metric=metric, pairs=1, ratio=math.exp(mean), confidence=confidence)
    spread = float(values.std(ddof=1))
    quantile = anytime_quantile(confidence, pairs) if anytime else t_quantile(confidence, pairs)
    # Where all values are the same there is no spread to multiply, however wide the quantile.
    half = quantile * spread / math.sqrt(pairs) if spread else 0.0
    return Ratio(
        metric=metric,
        pairs=pairs,
        ratio=math.exp(mean),
        low=_exp(mean - half),
        high=_exp(mean + half),
        log_sd=spread,
        confidence=confidence,
    )


@lru_cache(maxsize=1024)
def t_quantile(confidence: float, pairs: int) -> float:
    """The two-sided Student t quantile for `pairs` log ratios."""
    return float(stats.t.ppf(0.5 + confidence / 2.0, pairs - 1))


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


def _exp(value: float) -> float:
    """exp without overflow: two pairs can give an interval wider than a float holds."""
    return math.exp(min(max(value, -700.0), 700.0))


def judge(effect: Ratio, method: Method) -> tuple[Verdict, Reason | None]:
    """The verdict that an interval alone allows.

    The margin is a band of equal ratios, from 1 / (1 + margin) to 1 + margin. An interval inside the band is
    no effect, even when it excludes 1: the difference is real, and smaller than the study cares for
    (equivalence by inclusion of the interval, Schuirmann, J. Pharmacokin. Biopharm. 15, 1987; stricter than
    his 1 - 2 alpha). An interval that excludes 1 and reaches out of the band is faster or slower.
    """
    if effect.low is None or effect.high is None:
        return Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS
    if effect.low >= 1.0 / (1.0 + method.margin) and effect.high <= 1.0 + method.margin:
        return Verdict.NO_EFFECT, None
    if effect.low > 1.0:
        return (Verdict.FASTER if method.higher_is_better else Verdict.SLOWER), None
    if effect.high < 1.0:
        return (Verdict.SLOWER if method.higher_is_better else Verdict.FASTER), None
    return Verdict.INCONCLUSIVE, Reason.SPREAD


def blocks_more(effect: Ratio, margin: float) -> int | None:
    """How many more blocks would settle an inconclusive effect with probability 0.8, if ratio and spread
    stay as seen.

    Settled means: excludes 1, or lies within the margin, whichever comes first. The usual sample-size
    formula on the t distribution, (t_confidence + t_power) * spread / sqrt(n) <= distance, solved by search.
    None when the spread is unknown, or when more than 1000 blocks would be needed.
    """
    if effect.log_sd is None:
        return None
    offset = abs(math.log(effect.ratio))
    distance = max(offset, math.log1p(margin) - offset)
    if distance <= 0.0:
        return None
    for blocks in range(effect.pairs + 1, BLOCKS_LIMIT + 1):
        reach = t_quantile(effect.confidence, blocks) + float(stats.t.ppf(POWER, blocks - 1))
        if reach * effect.log_sd / math.sqrt(blocks) <= distance:
            return blocks - effect.pairs
    return None
