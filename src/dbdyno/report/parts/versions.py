"""Versions under each condition: the worst cell told like the best, a heat map, and a table a version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from dbdyno.analyse.versions import VersionCell, Versions
from dbdyno.frozen import Level, level_text
from dbdyno.records import metrics
from dbdyno.report import document
from dbdyno.report.document import Column, Element, Figure, Kind, Lines, Mark, Notes, Section, Table, Words
from dbdyno.report.words import naming, numbers

CLIENTS = "workload.clients"


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
    under = ", ".join(f"{naming.factor_text(name)}={level_text(level)}" for name, level in levels)
    verdict = f", {cell.verdict.value}" if cell.verdict else ""
    return f"{cell.version} with {under}, {numbers.effect_text(cell.effect)}{verdict}"


def _body(found: Versions) -> Iterator[Element]:
    yield Lines(headline(found))
    yield Figure("versions", (found,))
    for version in dict.fromkeys(cell.version for cell in found.cells):
        yield _table(found, version)
    yield Notes((_note(found),))


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
    rows: list[tuple[Words | document.Cell, ...]] = []
    for setting in product(*(found.factors[name] for name in down)):
        levels: dict[str, Level] = dict(zip(down, setting, strict=True))
        conditions = [
            tuple({**levels, across: level}[name] for name in names) for level in found.factors[across]
        ]
        rows.append((version, *map(level_text, setting), *(_shown(cells[one]) for one in conditions)))
    heads = (f"{naming.factor_text(across)} {level_text(level)}" for level in found.factors[across])
    columns = (
        Column("version", Kind.PHRASE),
        *(Column(naming.factor_text(name), Kind.PHRASE) for name in down),
        *map(Column, heads),
    )
    return Table(columns, tuple(rows), dense=True)


def _shown(cell: VersionCell) -> Words | document.Cell:
    if cell.effect is None:
        return cell.verdict.value if cell.verdict else numbers.DASH
    ratio = numbers.ratio_text(cell.effect.ratio)
    value = Mark(ratio, cell.verdict) if cell.verdict else ratio
    return document.Cell(value, (numbers.interval_text(cell.effect),))


def _note(found: Versions) -> str:
    metric = metrics.find(found.metric)
    better = "more" if found.higher_is_better else "less"
    return (
        f"{metric.title[:1].upper()}{metric.title[1:]}: the version / {found.first} under the same condition,"
        f" {better} is better. The intervals of all {numbers.plural(len(found.cells), 'cell')} are right at"
        f" once at {numbers.share_text(found.confidence)}. The best and the worst of many cells owe something"
        " to luck. Where one of the two has no speed, its verdict is shown instead."
    )
