"""What blocks cost, and in how much time they tell a difference.

A run is planned by it for a budget, and a calibration says by it how long a difference takes.

What is beaten in two things at once: Pareto's order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

from dbdyno.analyse.quantiles import BLOCKS_LEAST, t_quantile
from dbdyno.frozen import Frozen

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
    """What a block of `variants` takes: each trial `fixed_s` beside what it measures, and `each_s` for
    each second of that, of which it has `shortest_s` to `longest_s`. `confidence` is that of one interval."""

    variants: int
    fixed_s: float
    each_s: float
    shortest_s: float
    longest_s: float
    confidence: float

    @property
    def trial_s(self) -> float:
        """Of the shortest trial."""
        return self.fixed_s + self.each_s * self.shortest_s

    def measured_s(self, blocks: int, budget_s: float) -> float:
        """How long each trial of so many blocks can measure."""
        return min(self.longest_s, (budget_s / (self.variants * blocks) - self.fixed_s) / self.each_s)

    def half_width(self, blocks: int, measured_s: float, spreads: Spreads) -> float:
        """Of the interval of a log ratio."""
        variance = 2.0 * (spreads.starts**2 + spreads.seconds**2 / measured_s)
        return t_quantile(self.confidence, blocks) * math.sqrt(variance / blocks)

    def budget_s(self, blocks: int, difference: float, power_quantile: float, spreads: Spreads) -> float:
        """The least time in which so many blocks tell a difference (a share); infinite where they cannot."""
        reach = math.log1p(difference) / (t_quantile(self.confidence, blocks) + power_quantile)
        left = blocks * reach**2 / 2.0 - spreads.starts**2
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
