"""How wide an interval must be: its confidence beside the others of the family that a report's head claims,
its quantile, the fewest blocks that it can rest on; and what blocks cost until they tell a difference.

Planning needs them as well, and `dyno plan` must start at once: so nothing here imports numpy, and scipy is
imported where a quantile is asked for.

The head of a factorial study tells verdicts, main effects, and the gap with its shares. A reader takes all of
that for one answer, so to be wrong in any of it is one error. Tables below the head are families of their
own, and say so.

A run is planned for a budget by what blocks cost, and a calibration says by it how long a difference takes.
Beside that stands Pareto's order: what is beaten in two things at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from dbdyno.frozen import Frozen
from dbdyno.study import Design, Interval, Study

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


def floor_reach(log_sd: float, floor_blocks: int, confidence: float, blocks: int) -> float:
    """How far the mean log ratio of equal servers over some blocks lies from 0 at most, with this confidence,
    where `log_sd` is the root of the mean square of such ratios in other blocks, whose mean is known to be
    0: so it has as many degrees of freedom as these are."""
    return student_quantile(confidence, floor_blocks) * log_sd / math.sqrt(blocks)


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


FACTORS_MOST = 6
"""Beyond, 2^k variants are too many to measure in blocks: `fractional` is for those."""


def claims(study: Study, candidates: int) -> int:
    """How many intervals hold together where so many candidates are compared."""
    return study.goal.comparisons(candidates) + beside(study)


def beside(study: Study) -> int:
    """How many of them decide no verdict: main effects, and the shares of the gap. The total of a gap is the
    effect of the variant with every last level, so it counts among the verdicts."""
    factors = len(study.factors)
    if study.design is Design.FRACTIONAL:
        return factors
    if study.design is not Design.FACTORIAL or factors < 2:
        return 0
    mains = sum(len(factor.levels) - 1 for factor in study.factors)
    # Of two factors with two levels each, shares are main effects: both are the mean of the same two gains.
    same = factors == mains == 2
    return mains + (factors if explains_gap(study) and not same else 0)


def varies_together(study: Study) -> bool:
    """Whether it is a factorial study of two factors or more."""
    return study.design is Design.FACTORIAL and len(study.factors) >= 2


def explains_gap(study: Study) -> bool:
    """Whether the study measures all variants between its first and its last, or a fraction made for it."""
    return study.design is Design.FRACTIONAL or (
        study.design is Design.FACTORIAL and 2 <= len(study.factors) <= FACTORS_MOST
    )


Kept = TypeVar("Kept", float, tuple[int, ...])


def is_beaten(own: tuple[float, Kept], others: Iterable[tuple[float, Kept]]) -> bool:
    """Whether another point is as good in both and better in one. More is better. The point itself may be
    among the others."""
    return any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in others)


SHORTEST_S = 1.5
"""A trial that measures less shows how it began rather than how it runs."""

DAY_S = 86_400.0


class Spreads(Frozen):
    """Standard deviations of a log speed: of `starts` from trial to trial, whatever their length, and of
    `seconds` from second to second within one."""

    starts: float
    seconds: float


class Costs(Frozen):
    """What a block of `variants` takes: each trial `fixed_s` beside what it measures, and `each_s` for each
    second of that, of which it has `shortest_s` to `longest_s`. `confidence` is that of one interval, of a
    candidate over the mean of the block's `baselines`."""

    variants: int
    fixed_s: float
    each_s: float
    shortest_s: float
    longest_s: float
    confidence: float
    baselines: int = 1

    @property
    def of_ratio(self) -> float:
        """The variance of a block's log ratio in those of a trial."""
        return 1.0 + 1.0 / self.baselines

    @property
    def trial_s(self) -> float:
        """Of the shortest trial."""
        return self.fixed_s + self.each_s * self.shortest_s

    def measured_s(self, blocks: int, budget_s: float) -> float:
        """How long each trial of so many blocks can measure."""
        return min(self.longest_s, (budget_s / (self.variants * blocks) - self.fixed_s) / self.each_s)

    def half_width(self, blocks: int, measured_s: float, spreads: Spreads) -> float:
        """Of the interval of a log ratio."""
        variance = self.of_ratio * (spreads.starts**2 + spreads.seconds**2 / measured_s)
        return t_quantile(self.confidence, blocks) * math.sqrt(variance / blocks)

    def budget_s(self, blocks: int, difference: float, power_quantile: float, spreads: Spreads) -> float:
        """The least time in which so many blocks tell a difference (a share); infinite where they cannot."""
        reach = math.log1p(difference) / (t_quantile(self.confidence, blocks) + power_quantile)
        left = blocks * reach**2 / self.of_ratio - spreads.starts**2
        measured_s = max(spreads.seconds**2 / left, self.shortest_s) if left > 0.0 else math.inf
        if measured_s > self.longest_s:
            return math.inf
        return self.variants * blocks * (self.fixed_s + self.each_s * measured_s)


def least_budget_s(costs: Costs, difference: float, power_quantile: float, spreads: Spreads) -> float | None:
    """The least budget in which a difference (a share) is told with the power of a normal quantile; None
    where a day is too little."""
    most = int(DAY_S / (costs.variants * costs.trial_s))
    found_s = math.inf
    for blocks in _tried(BLOCKS_LEAST, most):
        found_s = min(found_s, costs.budget_s(blocks, difference, power_quantile, spreads))
    return found_s if found_s <= DAY_S else None


def _tried(least: int, most: int) -> Iterator[int]:
    """Numbers of blocks: each at first, then in steps of 2 %, because a budget is flat about its least."""
    blocks = least
    while blocks <= most:
        yield blocks
        blocks += max(1, blocks // 50)
