"""Main effects and pairwise interactions of a factorial design, on the log scale, block by block.

A main effect compares a level with the baseline's level, averaged over the settings of all other factors
(marginal means); an interaction is the difference of differences of two factors. Both are contrasts formed
within a block, so each has a Student t interval over blocks, with no assumption on what blocks have in
common (Box, Hunter and Hunter, Statistics for Experimenters, 2nd edition, 2005, chapters 5 and 6). On logs
an average is a geometric mean and an interaction of 1 means that the effects multiply.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.model import FactorEffect, Factorial, Interaction, Ratio
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Level
from dbdyno.study import Factor

Block = tuple[str, int]
Setting = tuple[Level, ...]
Cells = Mapping[Setting, Mapping[Block, float]]
"""Responses, all above zero, by setting (a level per factor, in the factors' order) and block."""

Contrast = tuple[tuple[Setting, int], ...]
"""Cells with their signs: log responses are added or subtracted within a block."""


def factorial(
    factors: tuple[Factor, ...], cells: Cells, estimator: Estimator, in_head: bool = True
) -> Factorial:
    """The two tables. Main effects hold together, with all else in the head of a report, or by themselves.
    Interactions are corrected for their own number, so they hold together with the study's confidence.
    """
    method = estimator.method
    mains = [(i, level) for i, factor in enumerate(factors) for level in factor.levels[1:]]
    pairs = [
        (i, a, j, b)
        for i, j in itertools.combinations(range(len(factors)), 2)
        for a in factors[i].levels[1:]
        for b in factors[j].levels[1:]
    ]
    each_main = method.confidence_each if in_head else confidence_each(method.confidence, len(mains))
    each_pair = confidence_each(method.confidence, len(pairs))
    return Factorial(
        main=tuple(
            main for row in mains if (main := _main(factors, cells, estimator, each_main, *row)) is not None
        ),
        interactions=tuple(
            pair
            for row in pairs
            if (pair := _interaction(factors, cells, estimator, each_pair, *row)) is not None
        ),
        confidence=method.confidence,
    )


def _main(
    factors: tuple[Factor, ...],
    cells: Cells,
    estimator: Estimator,
    confidence: float,
    index: int,
    level: Level,
) -> FactorEffect | None:
    baseline = factors[index].baseline

    def contrast(rest: Mapping[int, Level]) -> Contrast:
        return (
            (_setting(factors, {**rest, index: level}), 1),
            (_setting(factors, {**rest, index: baseline}), -1),
        )

    effect, used, planned = _estimate(factors, cells, estimator, confidence, (index,), contrast)
    if effect is None:
        return None
    return FactorEffect(
        factor=factors[index].name,
        level=level,
        against=baseline,
        effect=effect,
        settings=used,
        settings_planned=planned,
    )


def _interaction(
    factors: tuple[Factor, ...],
    cells: Cells,
    estimator: Estimator,
    confidence: float,
    first: int,
    first_level: Level,
    second: int,
    second_level: Level,
) -> Interaction | None:
    def contrast(rest: Mapping[int, Level]) -> Contrast:
        return tuple(
            (_setting(factors, {**rest, first: a, second: b}), sign_a * sign_b)
            for a, sign_a in ((first_level, 1), (factors[first].baseline, -1))
            for b, sign_b in ((second_level, 1), (factors[second].baseline, -1))
        )

    effect, used, planned = _estimate(factors, cells, estimator, confidence, (first, second), contrast)
    if effect is None:
        return None
    return Interaction(
        factors=(factors[first].name, factors[second].name),
        levels=(first_level, second_level),
        effect=effect,
        settings=used,
        settings_planned=planned,
    )


def _setting(factors: tuple[Factor, ...], levels: Mapping[int, Level]) -> Setting:
    return tuple(levels[index] for index in range(len(factors)))


def _estimate(
    factors: tuple[Factor, ...],
    cells: Cells,
    estimator: Estimator,
    confidence: float,
    fixed: tuple[int, ...],
    contrast: Callable[[Mapping[int, Level]], Contrast],
) -> tuple[Ratio | None, int, int]:
    """The contrast averaged over the other factors' settings; which of them could be used, of how many.

    A block is used when it holds all used settings, so that every block averages the same thing. A setting
    that few blocks hold would take the others from the rest: the settings are those with which most is used,
    settings times blocks.
    """
    others = [index for index in range(len(factors)) if index not in fixed]
    rests = [
        dict(zip(others, levels, strict=True))
        for levels in itertools.product(*(factors[index].levels for index in others))
    ]
    measured = [(each, blocks) for each in map(contrast, rests) if (blocks := _blocks(each, cells))]
    used, shared = _most(measured)
    logs = {
        block: sum(sign * math.log(cells[setting][block]) for each in used for setting, sign in each)
        / len(used)
        for block in shared
    }
    return estimator.ratio(estimator.method.response, logs, confidence), len(used), len(rests)


def _most(measured: Sequence[tuple[Contrast, set[Block]]]) -> tuple[list[Contrast], set[Block]]:
    """The contrasts to use and the blocks that hold them all. Contrasts are taken up from the one with most
    blocks on, and the last step with the most contrasts times blocks stands.
    """
    used: list[Contrast] = []
    best: tuple[list[Contrast], set[Block]] = ([], set())
    shared: set[Block] = set()
    for contrast, blocks in sorted(measured, key=lambda one: -len(one[1])):
        shared = shared & blocks if used else blocks
        used.append(contrast)
        if len(used) * len(shared) >= len(best[0]) * len(best[1]):
            best = (list(used), shared)
    return best


def _blocks(contrast: Contrast, cells: Cells) -> set[Block]:
    """The blocks in which every cell of the contrast was measured."""
    return set.intersection(*(set(cells.get(setting, {})) for setting, _ in contrast))
