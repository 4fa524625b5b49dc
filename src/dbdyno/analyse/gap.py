"""The gap between two variants as a product of factors.

With k factors that differ, all 2^k variants between the slow and the fast one are measured in every block.
The log of the ratio fast / slow is then shared out among the factors by Shapley's value (L. S. Shapley, A
value for n-person games, 1953): the gain of a factor averaged over every order in which the factors could
be changed. The shares do not depend on the order of the telling, and they multiply out to the whole
exactly, in each block and in the mean.

Beside it stand what each factor gains alone, on the slow variant, and the interactions: the whole divided by
the product of the gains alone. Interactions of 1 mean that the factors simply multiply.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from math import factorial as count_of_orders

from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.factorial import Block, Cells, Setting
from dbdyno.analyse.model import Gap, Ratio, Share
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.study import Factor

Subset = frozenset[int]
Logs = Mapping[Subset, Mapping[Block, float]]
"""Log responses by the factors (their numbers) that have been moved to the fast level, and by block."""


def explain(
    factors: tuple[Factor, ...],
    cells: Cells,
    slow: Setting,
    fast: Setting,
    estimator: Estimator,
    in_head: bool = False,
) -> Gap:
    """Shares the gap out. `missing` of the result holds the variants that no block measured together with the
    others; with any, nothing is shared out. Total and shares hold together, with all else in the head of a
    report, or by themselves.
    """
    metric, confidence = estimator.method.response, estimator.method.confidence
    moved = tuple(index for index in range(len(factors)) if slow[index] != fast[index])
    settings = {
        subset: tuple(fast[i] if i in subset else slow[i] for i in range(len(factors)))
        for size in range(len(moved) + 1)
        for subset in map(frozenset, itertools.combinations(moved, size))
    }
    missing = tuple(setting for setting in settings.values() if not cells.get(setting))
    names = tuple(factor.name for factor in factors)
    if missing or not moved:
        return Gap(metric=metric, factors=names, slow=slow, fast=fast, confidence=confidence, missing=missing)
    blocks = set.intersection(*(set(cells[setting]) for setting in settings.values()))
    logs = {
        subset: {block: math.log(cells[setting][block]) for block in blocks}
        for subset, setting in settings.items()
    }
    told = estimator.method.confidence_each if in_head else confidence_each(confidence, len(moved) + 1)
    everything, nothing = frozenset(moved), frozenset[int]()

    def ratio(over: Subset, under: Subset, confidence: float) -> Ratio | None:
        above, below = logs[over], logs[under]
        return estimator.ratio(metric, {block: above[block] - below[block] for block in above}, confidence)

    return Gap(
        metric=metric,
        factors=names,
        slow=slow,
        fast=fast,
        confidence=confidence,
        total=ratio(everything, nothing, told),
        shares=tuple(
            Share(
                factor=names[index],
                slow=slow[index],
                fast=fast[index],
                share=estimator.ratio(metric, _shapley(logs, index, moved), told),
                alone=ratio(frozenset({index}), nothing, confidence),
                last=ratio(everything, everything - {index}, confidence),
                step=ratio(frozenset(moved[: step + 1]), frozenset(moved[:step]), confidence),
            )
            for step, index in enumerate(moved)
        ),
        interactions=estimator.ratio(metric, _interactions(logs, moved), confidence)
        if len(moved) > 1
        else None,
        blocks=len(blocks),
    )


def _shapley(logs: Logs, index: int, moved: tuple[int, ...]) -> dict[Block, float]:
    """One factor's log share in each block: its gain on top of every subset of the others, weighted by the
    number of orders in which just that subset comes before it.
    """
    others = [other for other in moved if other != index]
    shares = dict.fromkeys(logs[frozenset()], 0.0)
    for size in range(len(others) + 1):
        orders = count_of_orders(size) * count_of_orders(len(others) - size)
        weight = orders / count_of_orders(len(moved))
        for before in map(frozenset, itertools.combinations(others, size)):
            for block in shares:
                shares[block] += weight * (logs[before | {index}][block] - logs[before][block])
    return shares


def _interactions(logs: Logs, moved: tuple[int, ...]) -> dict[Block, float]:
    nothing = logs[frozenset()]
    return {
        block: logs[frozenset(moved)][block]
        - nothing[block]
        - sum(logs[frozenset({index})][block] - nothing[block] for index in moved)
        for block in nothing
    }
