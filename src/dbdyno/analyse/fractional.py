"""The gap between two variants from a fraction of the variants between them.

With k factors coded -1 and 1, the log response is a sum over all subsets of factors, and from all low to all
high only subsets of odd size change. A factor's Shapley share is its main effect, plus a part of each
interaction of three or more factors that it is in (interactions of two give nothing: what one factor gains
before the other it lacks after it). So where no three factors interact, the main effects *are* the shares,
and a fraction of resolution IV estimates them clear of all interactions of two factors.

What is not so stands in the residual: the total, which is measured on the two ends themselves, over the
product of the shares. It holds interactions of three or more factors, and the noise of the ends. An
interaction of three factors whose sign agrees with one factor's in all variants is in that factor's share,
and cannot be seen in the residual; the share names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.factorial import Block, Cells, Setting
from dbdyno.analyse.model import Confounded, Gap, Ratio, Share
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.study import Factor, fraction

Logs = Mapping[Block, Sequence[float]]
"""Log responses by block, then by variant of the fraction."""


def explain_fraction(
    factors: tuple[Factor, ...], cells: Cells, estimator: Estimator, in_head: bool = False
) -> Gap:
    """Shares the gap out between the baseline and every factor's second level. `missing` of the result holds
    the variants that no block measured together with the others; with any, nothing is shared out. Total and
    shares hold together, with all else in the head of a report, or by themselves.
    """
    metric, confidence = estimator.method.response, estimator.method.confidence
    count = len(factors)
    settings = [_setting(factors, signs) for signs in fraction.points(count)]
    slow, fast = _setting(factors, (-1,) * count), _setting(factors, (1,) * count)
    missing = tuple(setting for setting in settings if not cells.get(setting))
    found = Gap(
        metric=metric,
        factors=tuple(factor.name for factor in factors),
        slow=slow,
        fast=fast,
        confidence=confidence,
        variants_measured=len(settings),
        missing=missing,
    )
    blocks = sorted(set.intersection(*(set(cells[one]) for one in settings))) if not missing else []
    if not blocks:
        return found
    rows = fraction.fraction(count)
    logs = {block: [math.log(cells[one][block]) for one in settings[: len(rows)]] for block in blocks}
    totals = {block: math.log(cells[fast][block]) - math.log(cells[slow][block]) for block in blocks}
    mains = [_contrasts(logs, fraction.column(rows, (index,)), 2.0) for index in range(count)]
    residuals = {block: totals[block] - math.fsum(main[block] for main in mains) for block in blocks}
    told = estimator.method.confidence_each if in_head else confidence_each(confidence, count + 1)
    return found.but(
        total=estimator.ratio(metric, totals, told),
        shares=tuple(
            _share(factors, index, estimator.ratio(metric, mains[index], told)) for index in range(count)
        ),
        residual=estimator.ratio(metric, residuals, confidence),
        confounded=_confounded(factors, logs, estimator),
        blocks=len(blocks),
    )


def _setting(factors: tuple[Factor, ...], signs: fraction.Signs) -> Setting:
    return tuple(factor.levels[sign > 0] for factor, sign in zip(factors, signs, strict=True))


def _contrasts(logs: Logs, signs: fraction.Signs, weight: float) -> dict[Block, float]:
    """Block by block, the mean of the log responses with these signs, times `weight`: 2 for a factor, a
    difference of two means; 4 for an interaction, a difference of two such differences.
    """
    return {
        block: weight * math.fsum(sign * log for sign, log in zip(signs, each, strict=True)) / len(each)
        for block, each in logs.items()
    }


def _share(factors: tuple[Factor, ...], index: int, share: Ratio | None) -> Share:
    besides = fraction.within(len(factors), index)
    return Share(
        factor=factors[index].name,
        slow=factors[index].levels[0],
        fast=factors[index].levels[1],
        share=share,
        holds_besides=_named(factors, besides) if besides else (),
    )


def _confounded(factors: tuple[Factor, ...], logs: Logs, estimator: Estimator) -> tuple[Confounded, ...]:
    """Every figure that interactions of two factors have; the intervals hold together."""
    rows, groups = fraction.fraction(len(factors)), fraction.together(len(factors))
    each = confidence_each(estimator.method.confidence, len(groups))

    def effect(group: fraction.Together) -> Ratio | None:
        contrasts = _contrasts(logs, fraction.column(rows, group.interactions[0]), 4.0)
        return estimator.ratio(estimator.method.response, contrasts, each)

    return tuple(
        Confounded(interactions=_named(factors, group), signs=group.signs, text=group.text, effect=found)
        for group in groups
        if (found := effect(group)) is not None
    )


def _named(factors: tuple[Factor, ...], group: fraction.Together) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(factors[index].name for index in one) for one in group.interactions)
