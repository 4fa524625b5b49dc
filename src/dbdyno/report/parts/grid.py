"""A factorial study as one table: the baseline is 100, the factor with most levels runs across."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from dbdyno.analyse.model import Analysis, Role, VariantResult, Verdict
from dbdyno.frozen import Level, level_text
from dbdyno.records import metrics
from dbdyno.report import document
from dbdyno.report.document import Column, Fitting, Kind, Mark, Notes, Section, Table, Words
from dbdyno.report.words import method, naming, numbers, verdicts
from dbdyno.study import Design, Factor

COLUMNS_MOST, ROWS_MOST = 12, 40
"""A larger table is no longer read."""

LOSS = "†"
"""What stands beside a ratio that something was given up for."""

Setting = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One variant: its ratio x 100 and the interval, or the word for why there is none."""

    value: str
    spread: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Grid:
    """The table as text. `heads` are the levels of the factor that runs across; each row has the other
    factors' levels, then a cell per column.
    """

    across: str
    down: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[Setting, tuple[Cell, ...]], ...]
    note: str

    @property
    def title(self) -> str:
        return f"Baseline = 100, by {self.across}"


def grid(analysis: Analysis) -> Grid | None:
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
        _setting(variant.levels, factors): variant
        for variant in analysis.variants
        if variant.role is not Role.TWIN
    }

    def row(setting: tuple[Level, ...]) -> tuple[Cell, ...]:
        levels = {factor.name: level for factor, level in zip(down, setting, strict=True)}
        return tuple(
            _cell(found.get(_setting({**levels, across.name: level}, factors))) for level in across.levels
        )

    return Grid(
        across=naming.factor_text(across.name),
        down=tuple(naming.factor_text(factor.name) for factor in down),
        heads=tuple(level_text(level) for level in across.levels),
        rows=tuple((_setting_text(setting), row(setting)) for setting in settings),
        note=_note(analysis),
    )


def sections(analysis: Analysis) -> Iterator[Section]:
    """The table, if the study has one. A terminal without room has its figures among the verdicts."""
    found = grid(analysis)
    if found is not None:
        layouts = Fitting((_across(found), _down(found)), optional=True)
        yield Section(found.title, (layouts, Notes((found.note,))))


def _across(found: Grid) -> Table:
    """The levels of the first factor run across."""
    columns = (*(Column(name, Kind.PHRASE) for name in found.down), *map(Column, found.heads))
    return Table(columns, tuple((*setting, *map(_shown, cells)) for setting, cells in found.rows), dense=True)


def _down(found: Grid) -> Table:
    """The same turned by a right angle: each column is a setting of the others."""
    heads = (Column(" ".join(setting)) for setting, _ in found.rows)
    rows = tuple(
        (head, *(_shown(cells[place]) for _, cells in found.rows)) for place, head in enumerate(found.heads)
    )
    return Table((Column(found.across, Kind.PHRASE), *heads), rows, dense=True)


def _shown(cell: Cell) -> Words | document.Cell:
    value = Mark(cell.value, cell.verdict) if cell.verdict else cell.value
    return document.Cell(value, (cell.spread,)) if cell.spread else value


def _setting(levels: Mapping[str, Level], factors: tuple[Factor, ...]) -> Setting:
    """Levels as text: 1 and true are two levels, and would be one key."""
    return tuple(level_text(levels[factor.name]) for factor in factors)


def _setting_text(setting: tuple[Level, ...]) -> Setting:
    return tuple(level_text(level) for level in setting)


def _cell(variant: VariantResult | None) -> Cell:
    if variant is None:
        return Cell(numbers.DASH)
    if variant.role is Role.BASELINE and variant.verdict is None:
        return Cell("100")
    effect = variant.effect
    if effect is None or variant.verdict is Verdict.BROKEN:
        return Cell(variant.verdict.value if variant.verdict else numbers.DASH, verdict=variant.verdict)
    spread = ""
    if effect.low is not None and effect.high is not None:
        spread = f"{numbers.hundredths_text(effect.low)}{numbers.DASH}{numbers.hundredths_text(effect.high)}"
    mark = LOSS if variant.gives_up else ""
    return Cell(f"{numbers.hundredths_text(effect.ratio)}{mark}", spread, variant.verdict)


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
