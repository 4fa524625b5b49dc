"""What each factor does over all settings of the others, and how far two of them multiply.

Main effects and pairwise interactions of a factorial design, on the log scale, block by block.

A main effect compares a level with the baseline's level, averaged over the settings of all other factors
(marginal means); an interaction is the difference of differences of two factors. Both are contrasts formed
within a block, so each has a Student t interval over blocks, with no assumption on what blocks have in
common (Box, Hunter and Hunter, Statistics for Experimenters, 2nd edition, 2005, chapters 5 and 6). On logs
an average is a geometric mean and an interaction of 1 means that the effects multiply.

A factorial study as one table: the baseline is 100, the factor with most levels runs across.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.estimate import Estimator, Trials
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import (
    Analysis,
    FactorEffect,
    Factorial,
    Interaction,
    Ratio,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.analyse.quantiles import confidence_each, varies_together
from dbdyno.frozen import Level, level_shown, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.report import document
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Fitting,
    Mark,
    Notes,
    Row,
    Section,
    Table,
    Tone,
    Words,
    table,
)
from dbdyno.report.words import method, naming, numbers, verdicts
from dbdyno.study import Design, Factor, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import Promise

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


HEADS = ("effect of", "ratio", "interval", "blocks", "combinations")
NOTE = (
    "Main effects are averaged over the levels of all other factors; with the study's"
    " confidence, none of their intervals and of the verdicts' is wrong. ×: how far two factors together are"
    " from the product of each alone (1: they multiply);"
    " with the same confidence, none of these intervals is wrong."
)


GivenUp = Mapping[str, tuple[Promise, ...]]
"""What variants give up that the baseline keeps, by name, without those that keep all."""


def given_up_at(study: Study, given_up: GivenUp, factor: str, level: Level) -> tuple[Promise, ...]:
    """What all variants with a level of a factor give up, without what all others do as well."""
    sides: tuple[list[set[Promise]], list[set[Promise]]] = ([], [])
    for variant in variants_of(study):
        sides[variant.levels.get(factor) != level].append(set(given_up.get(variant.name, ())))
    there, elsewhere = (set.intersection(*side) if side else set() for side in sides)
    return tuple(sorted(there - elsewhere))


def find(basis: Basis) -> Factorial | None:
    """Main effects and interactions of a factorial design of two factors or more."""
    study = basis.study
    if not varies_together(study):
        return None
    found = factorial(study.factors, cells_of(study, basis.compared), basis.estimator)
    if not basis.run.given_up:
        return found
    given_up = partial(given_up_at, study, basis.run.given_up)
    main = tuple(one.but(gives_up=given_up(one.factor, one.level)) for one in found.main)
    return found.but(main=main)


def cells_of(study: Study, trials: Sequence[Trials]) -> Cells:
    """Responses by setting and block, without variants that broke or at which the driver was the limit."""
    return {
        tuple(each.variant.levels[factor.name] for factor in study.factors): {
            block: value for block, value in each.values(study.goal.response).items() if usable(value)
        }
        for each in trials
        if each.role is not Role.TWIN and not each.count(Outcome.BROKEN) and not each.limited_by_driver
    }


def sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each main effect and each interaction of a factorial study."""
    found = analysis.factorial
    if found is None or not (found.main or found.interactions):
        return
    rows = [
        *(_row(naming.main_text(one), one) for one in found.main),
        *(_row(naming.pair_text(one), one) for one in found.interactions),
    ]
    yield Section("Factors", (table(HEADS, rows, dense=True), Notes((NOTE,))))


def _row(name: str, one: FactorEffect | Interaction) -> Row:
    ratio = numbers.ratio_text(one.effect.ratio)
    return (
        name,
        Mark(ratio, Tone.STRONG) if numbers.differs(one.effect) else ratio,
        numbers.interval_text(one.effect),
        str(one.effect.pairs),
        f"{one.settings} of {one.settings_planned}",
    )


COLUMNS_MOST, ROWS_MOST = 12, 40
"""A larger table is no longer read."""

LOSS = "†"
"""What stands beside a ratio that something was given up for."""

Texts = tuple[str, ...]


@dataclass(frozen=True)
class FactorCell:
    """One variant: its ratio x 100 and the interval, or the word for why there is none."""

    value: str
    spread: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class FactorGrid:
    """The table as text. `heads` are the levels of the factor that runs across; each row has the other
    factors' levels, then a cell per column.
    """

    across: str
    down: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[Texts, tuple[FactorCell, ...]], ...]
    note: str

    @property
    def title(self) -> str:
        return f"Baseline = 100, by {self.across}"


def grid(analysis: Analysis) -> FactorGrid | None:
    """The table of a factorial study with two factors or more; None where there is none, or it is too
    large."""
    factors = analysis.study.factors
    if analysis.study.design is not Design.FACTORIAL or len(factors) < 2:
        return None
    across = max(factors, key=lambda factor: len(factor.levels))
    down = tuple(factor for factor in factors if factor is not across)
    settings = list(product(*(factor.levels for factor in down)))
    if len(across.levels) > COLUMNS_MOST or len(settings) > ROWS_MOST:
        return None
    found = {
        _texts(variant.levels, factors): variant
        for variant in analysis.variants
        if variant.role is not Role.TWIN
    }

    def row(setting: tuple[Level, ...]) -> tuple[FactorCell, ...]:
        levels = {factor.name: level for factor, level in zip(down, setting, strict=True)}
        return tuple(
            _cell(found.get(_texts({**levels, across.name: level}, factors))) for level in across.levels
        )

    return FactorGrid(
        across=naming.factor_text(across.name),
        down=tuple(naming.factor_text(factor.name) for factor in down),
        heads=tuple(level_shown(level) for level in across.levels),
        rows=tuple((_setting_text(setting), row(setting)) for setting in settings),
        note=_note(analysis),
    )


def grid_sections(analysis: Analysis) -> Iterator[Section]:
    """The table, if the study has one. A terminal without room has its figures among the verdicts."""
    found = grid(analysis)
    if found is not None:
        layouts = Fitting((_across(found), _down(found)), optional=True)
        yield Section(found.title, (layouts, Notes((found.note,))))


def _across(found: FactorGrid) -> Table:
    """The levels of the first factor run across."""
    columns = (*(Column(name, ColumnKind.PHRASE) for name in found.down), *map(Column, found.heads))
    return Table(columns, tuple((*setting, *map(_shown, cells)) for setting, cells in found.rows), dense=True)


def _down(found: FactorGrid) -> Table:
    """The same turned by a right angle: each column is a setting of the others."""
    heads = (Column(" ".join(setting)) for setting, _ in found.rows)
    rows = tuple(
        (head, *(_shown(cells[place]) for _, cells in found.rows)) for place, head in enumerate(found.heads)
    )
    return Table((Column(found.across, ColumnKind.PHRASE), *heads), rows, dense=True)


def _shown(cell: FactorCell) -> Words | document.TableCell:
    value = Mark(cell.value, cell.verdict) if cell.verdict else cell.value
    return document.TableCell(value, (cell.spread,)) if cell.spread else value


def _texts(levels: Mapping[str, Level], factors: tuple[Factor, ...]) -> Texts:
    """Levels as text: 1 and true are two levels, and would be one key."""
    return tuple(level_text(levels[factor.name]) for factor in factors)


def _setting_text(setting: tuple[Level, ...]) -> Texts:
    return tuple(level_shown(level) for level in setting)


def _cell(variant: VariantResult | None) -> FactorCell:
    if variant is None:
        return FactorCell(numbers.DASH)
    if variant.role is Role.BASELINE and variant.verdict is None:
        return FactorCell("100")
    effect = variant.effect
    if effect is None or variant.verdict is Verdict.BROKEN:
        return FactorCell(variant.verdict.value if variant.verdict else numbers.DASH, verdict=variant.verdict)
    spread = ""
    if effect.low is not None and effect.high is not None:
        spread = f"{numbers.hundredths_text(effect.low)}{numbers.DASH}{numbers.hundredths_text(effect.high)}"
    mark = LOSS if variant.gives_up else ""
    return FactorCell(f"{numbers.hundredths_text(effect.ratio)}{mark}", spread, variant.verdict)


def _note(analysis: Analysis) -> str:
    metric = metrics.find(analysis.method.response)
    better = "more" if metric.higher_is_better else "less"
    losing = [variant.gives_up for variant in analysis.variants if variant.gives_up]
    lost = verdicts.lost(sorted({promise for promises in losing for promise in promises}))
    loss = f" {LOSS}: it gives up {lost} that the baseline keeps." if losing else ""
    return (
        f"{metric.title[:1].upper()}{metric.title[1:]}: variant / baseline x 100, {better} is better. "
        f"{method.intervals_text(analysis)} "
        "Where a variant has no speed, its verdict is shown instead, and the museum says why."
        f"{loss}"
    )
