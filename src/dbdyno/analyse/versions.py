"""Versions under each condition: memory, clients and whatever else a factorial study varies beside `engine`.

A cell is a later version over the first one under the same levels of all other factors. Its ratio is formed
within each block, by both variants' ratios to the baseline, so what a block has in common cancels. The
intervals of all cells hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from dbdyno.analyse.columns import Block, OfRecords
from dbdyno.analyse.estimate import Estimator, around_means
from dbdyno.analyse.intervals import judge
from dbdyno.analyse.model import Analysis, Ratio, Role, VariantResult, Verdict
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import ENGINE_FACTOR, Frozen, Level, level_text
from dbdyno.study import Design


class VersionCell(Frozen):
    """A version under one condition: a level for each of the other factors, in their order. `effect` is its
    ratio to the first version there. It is None where one of the two has no speed that counts; the verdict
    then says why, if there is one."""

    version: str
    condition: tuple[Level, ...]
    effect: Ratio | None = None
    verdict: Verdict | None = None


class Versions(Frozen):
    """All cells of a run, and the best and the worst of them, which are None without a single ratio.
    `factors` are those beside `engine`, with their levels. `confidence` holds for all intervals together."""

    run: str
    workload: str
    clients: int
    metric: str
    higher_is_better: bool
    confidence: float
    first: str
    factors: dict[str, tuple[Level, ...]]
    cells: tuple[VersionCell, ...]
    best: VersionCell | None = None
    worst: VersionCell | None = None


def versions_of(analysis: Analysis) -> Versions | None:
    """The cells of a factorial study that varies `engine` and something else; None for others."""
    study, method = analysis.study, analysis.method
    others = tuple(factor for factor in study.factors if factor.name != ENGINE_FACTOR)
    if study.design is not Design.FACTORIAL or not others or len(others) == len(study.factors):
        return None
    found = {_key(one.levels): one for one in analysis.variants if one.role is not Role.TWIN}
    first, *later = (one.written for one in study.engines)
    conditions = list(product(*(factor.levels for factor in others)))
    each = confidence_each(study.goal.confidence, len(later) * len(conditions))
    columns = OfRecords(one.record for one in analysis.trials)
    estimator, block_of = Estimator.of(columns, around_means(method)), _block_of(analysis)

    def logs_of(variant: VariantResult | None) -> dict[Block, float]:
        return {block_of[number]: math.log(ratio) for number, ratio in _by_block(analysis, variant).items()}

    def cell(version: str, condition: tuple[Level, ...]) -> VersionCell:
        levels = {factor.name: level for factor, level in zip(others, condition, strict=True)}
        pair = [found.get(_key({**levels, ENGINE_FACTOR: engine})) for engine in (first, version)]
        before, after = map(logs_of, pair)
        logs = {block: after[block] - before[block] for block in before.keys() & after.keys()}
        effect = estimator.ratio(method.response, logs, each)
        verdict = judge(effect, method)[0] if effect is not None else _why_none(pair)
        return VersionCell(version=version, condition=condition, effect=effect, verdict=verdict)

    cells = tuple(cell(version, condition) for version in later for condition in conditions)
    ranked = sorted(_with_effect(cells), key=lambda one: one[0], reverse=not method.higher_is_better)
    return Versions(
        run=analysis.run.run,
        workload=study.workload.name,
        clients=study.workload.clients,
        metric=method.response,
        higher_is_better=method.higher_is_better,
        confidence=study.goal.confidence,
        first=first,
        factors={factor.name: factor.levels for factor in others},
        cells=cells,
        best=ranked[-1][1] if ranked else None,
        worst=ranked[0][1] if ranked else None,
    )


def _key(levels: Mapping[str, Level]) -> tuple[tuple[str, str], ...]:
    """Levels as text: 1 and true are two levels, and would be one key."""
    return tuple(sorted((name, level_text(level)) for name, level in levels.items()))


def _block_of(analysis: Analysis) -> dict[int, Block]:
    """Each block of a run by its number, which no other block of the run has."""
    return {one.record.block: (one.record.host, one.record.block) for one in analysis.trials}


def _by_block(analysis: Analysis, variant: VariantResult | None) -> dict[int, float]:
    """A variant's ratio to the baseline in each block; the baseline's own is 1 wherever another has one."""
    if variant is None or variant.verdict is Verdict.BROKEN:
        return {}
    if variant.role is Role.BASELINE:
        return {pair.block: 1.0 for one in analysis.variants for pair in one.block_ratios}
    return {pair.block: pair.ratio for pair in variant.block_ratios}


def _why_none(pair: list[VariantResult | None]) -> Verdict | None:
    """The later version's own verdict, else that of the first one."""
    return next((one.verdict for one in reversed(pair) if one is not None and one.verdict is not None), None)


def _with_effect(cells: tuple[VersionCell, ...]) -> Iterator[tuple[float, VersionCell]]:
    yield from ((cell.effect.ratio, cell) for cell in cells if cell.effect is not None)
