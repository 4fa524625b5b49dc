"""How many more blocks would settle what is inconclusive.

A few blocks tell the ratio and the spread only roughly. A plan that takes both as seen promises too much: the
spread of an inconclusive variant was as often too small as too large, and the blocks needed go with its
square. So both are drawn from what the blocks allow (the posterior law under Jeffreys' prior), the further
blocks are drawn for each pair, and settled is the share of draws whose whole sample gives a verdict. That is
assurance, not power (A. O'Hagan, J. W. Stevens and M. J. Campbell, Pharmaceutical Statistics 4, 2005,
187-201).

Assurance keeps its promise on average. For a ratio about half of the margin it does not: that needs the most
blocks, because its interval has to fit between 1 and the margin. So the number that is called likely has to
settle four of five draws for the ratio that is hardest of all plausible ones, which are those that an
interval of 90 % holds.

The noisier the blocks, the farther that number lies above the one that settles half of all draws. Where it is
a multiple of it, one figure would claim more than the blocks tell, so both are given. Beyond twenty times the
blocks that there are none is given: such a run needs less noise, not more blocks.

The blocks to come are taken to be like those that there are. Where one in ten is off by 10 %, 12 blocks often
hold none of these, and then the number is too small: it settled 38 % of equal variants where 80 % were meant
(simulated, spread of 3.5 %). To draw from resampled residuals does not change that, because what was not seen
is in no residual (the same 38 %). So the number is told of blocks like these.

Whoever adds blocks has looked at the answer. So they are counted for the interval that holds at every look,
which an extended run has, whatever the run had so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.model import Method, Ratio
from dbdyno.analyse.quantiles import anytime_quantile, t_quantile

ASSURANCE, EVEN, PLAUSIBLE = 0.8, 0.5, 0.9
WIDE = 4.0
"""An estimate whose two numbers lie farther apart than this factor is no figure."""
BLOCKS_LIMIT, TIMES_LIMIT = 1000, 20
DRAWS = 2000

Values = npt.NDArray[np.float64]


class Outlook(NamedTuple):
    """The fewest more blocks that settle an inconclusive effect: `likely` does so with probability 0.8 for
    any plausible ratio, and is None where it is unknown or more than `most_more`. `even`, with probability
    0.5, is there where `likely` alone would claim too much."""

    likely: int | None = None
    even: int | None = None


def most_more(pairs: int) -> int:
    """How many more blocks an estimate from so many can reach."""
    return max(min(TIMES_LIMIT * pairs, BLOCKS_LIMIT - pairs), 0)


def outlook(effect: Ratio, method: Method) -> Outlook:
    """How many more blocks settle an inconclusive effect.

    Settled means that the interval excludes 1 or lies within the margin. The same records give the same
    numbers: the draws are fixed. Without a spread nothing is known.
    """
    if not effect.log_sd or effect.pairs < 2:
        return Outlook()
    future, most = _Future(effect, method), most_more(effect.pairs)
    likely, even = _fewest(future.settled_at_worst, most, ASSURANCE), _fewest(future.settled, most, EVEN)
    return Outlook(likely, even if _wide(likely, even, effect.pairs) else None)


def _wide(likely: int | None, even: int | None, pairs: int) -> bool:
    """Whether the estimate is too uncertain for one figure; of a few blocks more nobody minds."""
    if likely is None or even is None:
        return even is not None
    return likely > WIDE * even and likely > pairs


def _fewest(share: Callable[[int], float], most: int, chance: float) -> int | None:
    """The fewest blocks, up to `most`, of which the share that settles reaches the chance."""
    if most < 1 or share(most) < chance:
        return None
    enough = 1
    while share(enough) < chance:
        enough = min(2 * enough, most)
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if share(middle) >= chance else (middle, enough)
    return enough


class _Future:
    """Draws of the true ratio and spread that the blocks so far allow, and of blocks to come."""

    def __init__(self, effect: Ratio, method: Method) -> None:
        assert effect.log_sd is not None
        draw = np.random.default_rng(1)
        self.pairs, self.mean = effect.pairs, math.log(effect.ratio)
        self.squares = effect.log_sd**2 * (effect.pairs - 1)
        self.spreads: Values = np.sqrt(self.squares / draw.chisquare(effect.pairs - 1, DRAWS))
        self.means: Values = self.mean + draw.standard_normal(DRAWS) * self.spreads / math.sqrt(effect.pairs)
        self.errors: Values = draw.standard_normal(DRAWS)
        self.confidence, self.margin = effect.confidence, math.log1p(method.margin)
        self.least = method.blocks_least
        half = t_quantile(PLAUSIBLE, effect.pairs) * effect.log_sd / math.sqrt(effect.pairs)
        self.hardest = {
            min(max(middle, self.mean - half), self.mean + half)
            for middle in (-self.margin / 2.0, self.margin / 2.0)
        }

    def settled_at_worst(self, more: int) -> float:
        """The least share that any plausible ratio leaves."""
        return min(self._settled(more, np.full(DRAWS, mean)) for mean in self.hardest)

    def settled(self, more: int) -> float:
        """The share of draws in which `more` blocks, with those there are, give a verdict."""
        return self._settled(more, self.means)

    def _settled(self, more: int, true: Values) -> float:
        whole = self.pairs + more
        if whole < self.least:
            return 0.0
        theirs = true + self.errors * self.spreads / math.sqrt(more)
        chances = np.random.default_rng(more).chisquare(more - 1, DRAWS) if more > 1 else np.zeros(DRAWS)
        squares = self.squares + chances * self.spreads**2
        squares += (theirs - self.mean) ** 2 * self.pairs * more / whole
        means = (self.pairs * self.mean + more * theirs) / whole
        halves = anytime_quantile(self.confidence, whole) * np.sqrt(squares / (whole - 1) / whole)
        away = np.abs(means)
        return float(np.mean((away > halves) | (away + halves <= self.margin)))
