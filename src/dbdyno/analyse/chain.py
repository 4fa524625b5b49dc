"""The gap between the first and the last variant of a list as a product of its steps.

Each variant goes on from the one before it: it moves one factor or several, and moves none back. A step's
share is the ratio of a variant to the one before, by block, so the shares multiply out to the whole. They
depend on the order, which the study chose: a version first, say, and then what its defaults changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dbdyno.analyse.engines import DefaultChanged, engines_compared
from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.factorial import Cells, Setting
from dbdyno.analyse.model import Gap, Ratio, Share
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.study import Design, Study
from dbdyno.study.trials import Variant

STEPS_LEAST = 2


@dataclass(frozen=True)
class Step:
    """A variant after the one before it: what it moves, and both its ends as a reader knows them."""

    factor: str
    before: Level
    after: Level
    slow: Setting
    fast: Setting


def steps_of(study: Study, variants: Sequence[Variant]) -> tuple[Step, ...]:
    """The steps of a list, in its order; none where one of its variants does not go on from the one before,
    or where there is but one step."""
    found = tuple(_step(study, *pair) for pair in pairwise(variants))
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
        unset=tuple(_unset(study, records)),
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


def _step(study: Study, one: Variant, other: Variant) -> Step:
    moved = _moved(one, other)
    slow, fast = (tuple(each.levels[factor.name] for factor in study.factors) for each in (one, other))
    if len(moved) == 1:
        [name] = moved
        return Step(name, one.levels[name], other.levels[name], slow, fast)
    kind = "settings" if all(name.startswith("config.") for name in moved) else "factors"
    return Step(f"{len(moved)} {kind}", one.name, other.name, slow, fast)


def _moved(one: Variant, other: Variant) -> list[str]:
    return [name for name, level in one.levels.items() if other.levels[name] != level]


def _unset(study: Study, records: Sequence[Record]) -> Iterator[DefaultChanged]:
    """The defaults that differ between the engines, and that no variant sets."""
    compared = engines_compared(study, records)
    given = {*study.settings, *study.baseline}
    for beside in compared.defaults if compared is not None else ():
        yield from (one for one in beside.changed if f"config.{one.name}" not in given)
