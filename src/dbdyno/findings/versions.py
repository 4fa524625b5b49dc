"""Versions under each condition: the worst cell told like the best, a heat map, and a table a version.

Versions under each condition: memory, clients and whatever else a factorial study varies beside `engine`.

A cell is a later version over the first one under the same levels of all other factors. Its ratio is formed
within each block, by both variants' ratios to the baseline, so what a block has in common cancels. The
intervals of all cells hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from dbdyno.analyse.columns import Block, OfRecords
from dbdyno.analyse.estimate import Estimator, around_means
from dbdyno.analyse.intervals import as_told, judge
from dbdyno.analyse.model import Analysis, Ratio, Role, VariantResult, Verdict
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import ENGINE_FACTOR, Frozen, Level, level_shown, level_text
from dbdyno.records import metrics
from dbdyno.report import document
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Element,
    Figure,
    Lines,
    Mark,
    Notes,
    Section,
    Table,
    Words,
)
from dbdyno.report.words import naming, numbers
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
        effect = estimator.ratio(method.response, logs, each, judged=True)
        verdict = judge(effect, method)[0] if effect is not None else _why_none(pair)
        told = effect and as_told(effect, verdict is Verdict.NO_EFFECT, method.margin)
        return VersionCell(version=version, condition=condition, effect=told, verdict=verdict)

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


CLIENTS = "workload.clients"


def sections_of(analysis: Analysis) -> Iterator[Section]:
    """The versions of a run; nothing where it varies nothing beside them."""
    found = versions_of(analysis)
    if found is not None:
        yield from sections(found)


def sections(found: Versions) -> Iterator[Section]:
    """One section, which holds all cells."""
    yield Section("Versions under each condition", (*_body(found),))


def headline(found: Versions) -> tuple[str, ...]:
    """The worst of all cells and the best one, told alike."""
    if found.best is None or found.worst is None:
        return ("No condition has a speed of two versions.",)
    return (f"Worst: {extreme_text(found, found.worst)}.", f"Best: {extreme_text(found, found.best)}.")


def extreme_text(found: Versions, cell: VersionCell) -> str:
    """A cell by its version and its condition, with its ratio."""
    levels = zip(found.factors, cell.condition, strict=True)
    under = ", ".join(f"{naming.factor_text(name)}={level_shown(level)}" for name, level in levels)
    verdict = f", {cell.verdict.value}" if cell.verdict else ""
    return f"{cell.version} with {under}, {numbers.effect_text(cell.effect)}{verdict}"


def _body(found: Versions) -> Iterator[Element]:
    yield Lines(headline(found))
    if any(cell.effect is not None for cell in found.cells):
        yield figure(found)
    for version in dict.fromkeys(cell.version for cell in found.cells):
        yield _table(found, version)
    yield Notes((_note(found),))


STRENGTH_LEAST, STRENGTH_MOST = 0.08, 0.85


def figure(found: Versions) -> Figure:
    """A heat map: colour says which way, strength how far, and the text how much."""
    across = across_of(found)
    rows = [_heat_row(found, cell, across) for cell in found.cells]
    return Figure("dbdyno.report.figures.heat:versions", (rows, naming.factor_text(across), found.first))


def across_of(found: Versions) -> str:
    """The factor whose levels run across: the clients, else the one with most levels."""
    if CLIENTS in found.factors:
        return CLIENTS
    return max(found.factors, key=lambda name: len(found.factors[name]))


def _table(found: Versions, version: str) -> Table:
    """A row for each condition of the other factors; the first column says which version this is."""
    across = across_of(found)
    names = list(found.factors)
    down = [name for name in names if name != across]
    cells = {cell.condition: cell for cell in found.cells if cell.version == version}
    rows: list[tuple[Words | document.TableCell, ...]] = []
    for setting in product(*(found.factors[name] for name in down)):
        levels: dict[str, Level] = dict(zip(down, setting, strict=True))
        conditions = [
            tuple({**levels, across: level}[name] for name in names) for level in found.factors[across]
        ]
        rows.append((version, *map(level_shown, setting), *(_shown(cells[one]) for one in conditions)))
    heads = (f"{naming.factor_text(across)} {level_shown(level)}" for level in found.factors[across])
    columns = (
        Column("version", ColumnKind.PHRASE),
        *(Column(naming.factor_text(name), ColumnKind.PHRASE) for name in down),
        *map(Column, heads),
    )
    return Table(columns, tuple(rows), dense=True)


def _shown(cell: VersionCell) -> Words | document.TableCell:
    if cell.effect is None:
        return cell.verdict.value if cell.verdict else numbers.DASH
    ratio = numbers.ratio_text(cell.effect.ratio)
    value = Mark(ratio, cell.verdict) if cell.verdict else ratio
    below = (numbers.interval_text(cell.effect), numbers.narrower_text(cell.effect))
    return document.TableCell(value, (*filter(None, below),))


def _note(found: Versions) -> str:
    metric = metrics.find(found.metric)
    better = "more" if found.higher_is_better else "less"
    return (
        f"{metric.title[:1].upper()}{metric.title[1:]}: the version / {found.first} under the same condition,"
        f" {better} is better. The intervals of all {numbers.plural(len(found.cells), 'cell')} are right at"
        f" once at {numbers.share_text(found.confidence)}. The best and the worst of many cells owe something"
        " to luck. Where one of the two has no speed, its verdict is shown instead."
    )


def _heat_row(found: Versions, cell: VersionCell, across: str) -> dict[str, Any]:
    levels = dict(zip(found.factors, map(level_shown, cell.condition), strict=True))
    down = [f"{naming.factor_text(name)} {level}" for name, level in levels.items() if name != across]
    row: dict[str, Any] = {
        "column": levels[across],
        "line": ", ".join([cell.version, *down]),
        "verdict": cell.verdict.value if cell.verdict else numbers.DASH,
        "extreme": "worst" if cell == found.worst else "best" if cell == found.best else "",
    }
    if cell.effect is None:
        nothing = {"ratio": row["verdict"], "below": "", "told": numbers.DASH}
        return {**row, **nothing, "kind": "none", "strength": 0.0}
    gain = math.log(cell.effect.ratio) * (1 if found.higher_is_better else -1)
    return {
        **row,
        "ratio": numbers.ratio_text(cell.effect.ratio),
        "below": numbers.interval_text(cell.effect),
        "told": numbers.effect_text(cell.effect),
        "kind": "better" if gain > 0 else "worse",
        "strength": _strength(found, gain),
    }


def _strength(found: Versions, gain: float) -> float:
    """How strong a colour is: the same for a gain and a loss of one size, the largest of all cells fully."""
    sizes = [abs(math.log(cell.effect.ratio)) for cell in found.cells if cell.effect is not None]
    share = abs(gain) / max(sizes) if max(sizes) else 0.0
    return round(STRENGTH_LEAST + (STRENGTH_MOST - STRENGTH_LEAST) * share, 3)
