"""How to use a given time well: how many blocks, and how long each trial measures.

More blocks narrow an interval by their number, and by Student's quantile where they are few; but each
trial costs a warm-up and an overhead that measure nothing. So the number of blocks is chosen that makes the
interval narrowest for the spread that trials are taken to have.
"""

from __future__ import annotations

import math

from dbdyno.analyse.intervals import confidence_each, t_quantile
from dbdyno.errors import UserError
from dbdyno.plan import make_plan
from dbdyno.record import Frozen
from dbdyno.study import TRIALS_MAX, Study

BLOCKS_LEAST = 3
"""With two blocks Student's quantile makes every interval wider than most effects."""

SHORTEST_S = 2.0
"""A trial that measures less shows how it began rather than how it runs."""

SPREAD_OF_TRIALS, SPREAD_OF_SECONDS = 0.02, 0.10
"""Standard deviations of the log response: from trial to trial whatever their length, and from second to
second within one. They weigh blocks against length, and nothing that is printed rests on them."""


class Precision(Frozen):
    """Half of an interval's width, as a share of the ratio, where log ratios have this spread from block to
    block."""

    spread: float
    half_width: float


def fitted(study: Study, budget_s: float, overhead_s: float) -> Study:
    """The study with blocks and a measured part that fill the budget. The measured part is never longer than
    the study's own, and the warm-up stays.

    Raises UserError when the budget is too small for the fewest and shortest trials.
    """
    variants = len(make_plan(study.model_copy(update={"blocks": 1})).variants)
    fixed_s = study.workload.warmup_s + overhead_s
    longest_s = study.workload.duration_s
    shortest_s = min(SHORTEST_S, longest_s)
    least_s = variants * BLOCKS_LEAST * (fixed_s + shortest_s)
    if budget_s < least_s:
        raise UserError(
            f"{budget_s:.0f} s are too few for {BLOCKS_LEAST} blocks of {variants} variants, "
            f"{fixed_s + shortest_s:.0f} s each",
            f"give at least {math.ceil(least_s)} s, or leave out some levels",
        )
    most = min(int(budget_s / (variants * (fixed_s + shortest_s))), TRIALS_MAX // variants)
    each = confidence_each(study.goal.confidence, variants - 1)

    def measured_s(blocks: int) -> float:
        return min(longest_s, budget_s / (variants * blocks) - fixed_s)

    def width(blocks: int) -> float:
        variance = SPREAD_OF_TRIALS**2 + SPREAD_OF_SECONDS**2 / measured_s(blocks)
        return t_quantile(each, blocks) * math.sqrt(variance / blocks)

    blocks = min(range(BLOCKS_LEAST, most + 1), key=width)
    # Rounded down, so that the sum of all trials stays within the budget.
    duration_s = max(shortest_s, math.floor(measured_s(blocks) * 10) / 10)
    workload = study.workload.model_copy(update={"duration_s": duration_s})
    return study.model_copy(update={"blocks": blocks, "workload": workload})


def precision(study: Study, spread: float) -> Precision:
    """What the study's blocks can tell apart, if log ratios spread so from block to block."""
    variants = len(make_plan(study.model_copy(update={"blocks": 1})).variants)
    each = confidence_each(study.goal.confidence, variants - 1)
    half = t_quantile(each, study.blocks) * spread / math.sqrt(study.blocks) if study.blocks > 1 else math.inf
    return Precision(spread=spread, half_width=math.expm1(min(half, 700.0)))
