"""How a gap is shared out among factors: by Shapley's value, by a fraction of the variants, or by steps.

The gap between two variants as a product of factors.

With k factors that differ, all 2^k variants between the slow and the fast one are measured in every block.
The log of the ratio fast / slow is then shared out among the factors by Shapley's value (L. S. Shapley, A
value for n-person games, 1953): the gain of a factor averaged over every order in which the factors could
be changed. The shares do not depend on the order of the telling, and they multiply out to the whole
exactly, in each block and in the mean.

Beside it stand what each factor gains alone, on the slow variant, and the interactions: the whole divided by
the product of the gains alone. Interactions of 1 mean that the factors simply multiply.

The gap between two variants from a fraction of the variants between them.

With k factors coded -1 and 1, the log response is a sum over all subsets of factors, and from all low to all
high only subsets of odd size change. A factor's Shapley share is its main effect, plus a part of each
interaction of three or more factors that it is in (interactions of two give nothing: what one factor gains
before the other it lacks after it). So where no three factors interact, the main effects *are* the shares,
and a fraction of resolution IV estimates them clear of all interactions of two factors.

What is not so stands in the residual: the total, which is measured on the two ends themselves, over the
product of the shares. It holds interactions of three or more factors, and the noise of the ends. An
interaction of three factors whose sign agrees with one factor's in all variants is in that factor's share,
and cannot be seen in the residual; the share names it.

The gap between the first and the last variant of a list as a product of its steps.

Each variant goes on from the one before it: it moves one factor or several, and moves none back. A step's
share is the ratio of a variant to the one before, by block, so the shares multiply out to the whole. They
depend on the order, which the study chose: a version first, say, and then what its defaults changed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial as count_of_orders

from dbdyno.analyse.engines import engines_compared
from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.found import DefaultChanged
from dbdyno.analyse.model import Confounded, Gap, Ratio, Share
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.findings.factors import Block, Cells, Setting
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.study import Design, Factor, Study, designs
from dbdyno.study.trials import Variant

STEPS_LEAST = 2


@dataclass(frozen=True)
class GapStep:
    """A variant after the one before it: what it moves, and both its ends as a reader knows them."""

    factor: str
    before: Level
    after: Level
    slow: Setting
    fast: Setting


def steps_of(study: Study, variants: Sequence[Variant]) -> tuple[GapStep, ...]:
    """The steps of a list, in its order; none where one of its variants does not go on from the one before,
    or where there is but one step."""
    found = tuple(_step_between(study, *pair) for pair in pairwise(variants))
    if study.design is not Design.LIST or len(found) < STEPS_LEAST:
        return ()
    moved = [name for variant in pairwise(variants) for name in _moved(*variant)]
    return found if len(moved) == len(set(moved)) else ()


def explain_chain(
    study: Study, records: Sequence[Record], variants: Sequence[Variant], cells: Cells, estimator: Estimator
) -> Gap:
    """Shares the gap out among the steps. `missing` of the result holds the variants that no block measured
    together with the others. Total and shares hold together."""
    steps = steps_of(study, variants)
    metric, confidence = study.goal.response, study.goal.confidence
    gap = Gap(
        metric=metric,
        factors=tuple(factor.name for factor in study.factors),
        slow=steps[0].slow,
        fast=steps[-1].fast,
        confidence=confidence,
        in_order=True,
        unset=tuple(_unset_defaults(study, records)),
    )
    settings = (steps[0].slow, *(step.fast for step in steps))
    blocks = set.intersection(*(set(cells.get(setting, {})) for setting in settings))
    if not blocks:
        return gap.but(missing=tuple(one for one in settings if not cells.get(one)) or settings)
    each = confidence_each(confidence, len(steps) + 1)

    def ratio(under: Setting, over: Setting) -> Ratio | None:
        logs = {block: math.log(cells[over][block] / cells[under][block]) for block in blocks}
        return estimator.ratio(metric, logs, each)

    return gap.but(
        total=ratio(steps[0].slow, steps[-1].fast),
        shares=tuple(
            Share(
                factor=step.factor,
                slow=step.before,
                fast=step.after,
                share=ratio(step.slow, step.fast),
            )
            for step in steps
        ),
        blocks=len(blocks),
    )


def _step_between(study: Study, one: Variant, other: Variant) -> GapStep:
    moved = _moved(one, other)
    slow, fast = (tuple(each.levels[factor.name] for factor in study.factors) for each in (one, other))
    if len(moved) == 1:
        [name] = moved
        return GapStep(name, one.levels[name], other.levels[name], slow, fast)
    kind = "settings" if all(name.startswith("config.") for name in moved) else "factors"
    return GapStep(f"{len(moved)} {kind}", one.name, other.name, slow, fast)


def _moved(one: Variant, other: Variant) -> list[str]:
    return [name for name, level in one.levels.items() if other.levels[name] != level]


def _unset_defaults(study: Study, records: Sequence[Record]) -> Iterator[DefaultChanged]:
    """The defaults that differ between the engines, and that no variant sets."""
    compared = engines_compared(study, records)
    given = {*study.settings, *study.baseline}
    for beside in compared.defaults if compared is not None else ():
        yield from (one for one in beside.changed if f"config.{one.name}" not in given)


LogsOfBlocks = Mapping[Block, Sequence[float]]
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
    settings = [_setting_at(factors, signs) for signs in designs.points(count)]
    slow, fast = _setting_at(factors, (-1,) * count), _setting_at(factors, (1,) * count)
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
    rows = designs.fraction(count)
    logs = {block: [math.log(cells[one][block]) for one in settings[: len(rows)]] for block in blocks}
    totals = {block: math.log(cells[fast][block]) - math.log(cells[slow][block]) for block in blocks}
    mains = [_contrasts(logs, designs.column(rows, (index,)), 2.0) for index in range(count)]
    residuals = {block: totals[block] - math.fsum(main[block] for main in mains) for block in blocks}
    told = estimator.method.confidence_each if in_head else confidence_each(confidence, count + 1)
    return found.but(
        total=estimator.ratio(metric, totals, told),
        shares=tuple(
            _share_of_fraction(factors, index, estimator.ratio(metric, mains[index], told))
            for index in range(count)
        ),
        residual=estimator.ratio(metric, residuals, confidence),
        confounded=_confounded_in(factors, logs, estimator),
        blocks=len(blocks),
    )


def _setting_at(factors: tuple[Factor, ...], signs: designs.Signs) -> Setting:
    return tuple(factor.levels[sign > 0] for factor, sign in zip(factors, signs, strict=True))


def _contrasts(logs: LogsOfBlocks, signs: designs.Signs, weight: float) -> dict[Block, float]:
    """Block by block, the mean of the log responses with these signs, times `weight`: 2 for a factor, a
    difference of two means; 4 for an interaction, a difference of two such differences.
    """
    return {
        block: weight * math.fsum(sign * log for sign, log in zip(signs, each, strict=True)) / len(each)
        for block, each in logs.items()
    }


def _share_of_fraction(factors: tuple[Factor, ...], index: int, share: Ratio | None) -> Share:
    besides = designs.within(len(factors), index)
    return Share(
        factor=factors[index].name,
        slow=factors[index].levels[0],
        fast=factors[index].levels[1],
        share=share,
        holds_besides=_group_named(factors, besides) if besides else (),
    )


def _confounded_in(
    factors: tuple[Factor, ...], logs: LogsOfBlocks, estimator: Estimator
) -> tuple[Confounded, ...]:
    """Every figure that interactions of two factors have; the intervals hold together."""
    rows, groups = designs.fraction(len(factors)), designs.together(len(factors))
    each = confidence_each(estimator.method.confidence, len(groups))

    def effect(group: designs.ConfoundedInteractions) -> Ratio | None:
        contrasts = _contrasts(logs, designs.column(rows, group.interactions[0]), 4.0)
        return estimator.ratio(estimator.method.response, contrasts, each)

    return tuple(
        Confounded(
            interactions=_group_named(factors, group), signs=group.signs, text=group.text, effect=found
        )
        for group in groups
        if (found := effect(group)) is not None
    )


def _group_named(
    factors: tuple[Factor, ...], group: designs.ConfoundedInteractions
) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(factors[index].name for index in one) for one in group.interactions)


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
