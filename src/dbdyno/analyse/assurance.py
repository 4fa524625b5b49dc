"""How many more blocks would settle what is inconclusive.

A few blocks tell the ratio and the spread only roughly. A plan that takes both as seen promises too much: the
spread of an inconclusive variant was as often too small as too large, and the blocks needed go with its
square. So both are drawn from what the blocks allow (the posterior law under Jeffreys' prior), the further
blocks are drawn for each pair, and settled is the share of draws whose whole sample gives a verdict. That is
assurance, not power (A. O'Hagan, J. W. Stevens and M. J. Campbell, Pharmaceutical Statistics 4, 2005,
187-201).

Whoever adds blocks has looked at the answer. So they are counted for the interval that holds at every look,
which an extended run has, whatever the run had so far.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.model import Method, Ratio
from dbdyno.analyse.quantiles import anytime_quantile

ASSURANCE = 0.8
BLOCKS_LIMIT = 1000
DRAWS = 2000

Values = npt.NDArray[np.float64]


def blocks_more(effect: Ratio, method: Method) -> int | None:
    """The fewest more blocks that settle an inconclusive effect with probability 0.8.

    Settled means that the interval excludes 1 or lies within the margin. The same records give the same
    number: the draws are fixed. None when the spread is unknown, or when more than 1000 blocks are needed.
    """
    if not effect.log_sd or effect.pairs < 2:
        return None
    share = _Future(effect, method).settled
    most = BLOCKS_LIMIT - effect.pairs
    if most < 1 or share(most) < ASSURANCE:
        return None
    enough = 1
    while share(enough) < ASSURANCE:
        enough = min(2 * enough, most)
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if share(middle) >= ASSURANCE else (middle, enough)
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

    def settled(self, more: int) -> float:
        """The share of draws in which `more` blocks, with those there are, give a verdict."""
        whole = self.pairs + more
        if whole < self.least:
            return 0.0
        theirs = self.means + self.errors * self.spreads / math.sqrt(more)
        chances = np.random.default_rng(more).chisquare(more - 1, DRAWS) if more > 1 else np.zeros(DRAWS)
        squares = self.squares + chances * self.spreads**2
        squares += (theirs - self.mean) ** 2 * self.pairs * more / whole
        means = (self.pairs * self.mean + more * theirs) / whole
        halves = anytime_quantile(self.confidence, whole) * np.sqrt(squares / (whole - 1) / whole)
        away = np.abs(means)
        return float(np.mean((away > halves) | (away + halves <= self.margin)))
