"""Variants by loads: a column for each load, with the best and the worst of all cells before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dbdyno.analyse import matrix
from dbdyno.analyse.luck import LayoutSpread
from dbdyno.analyse.matrix import Extreme, Instructions, Load, Matrix, Row
from dbdyno.analyse.model import Verdict
from dbdyno.analyse.versions import Versions
from dbdyno.records import metrics
from dbdyno.report.document import Cell, Document, Mark, Notes, Section, Table, Words, table
from dbdyno.report.parts import versions
from dbdyno.report.parts.counted import UNTOLD
from dbdyno.report.parts.versions import CLIENTS
from dbdyno.report.words import numbers, verdicts

LUCK = "luck of layout"
PLACEBOS = "placebos"
COLUMNS_MOST = 4
"""More do not fit beside each other on a terminal."""
COUNTED = "Variant / baseline of the same run, counted once by Valgrind: the server's own code."
WITHIN = (
    "by what placebos show, a build without any effect lies within these limits. No build counts as faster "
    "or slower unless its whole interval lies beyond them."
)


def document(found: Matrix) -> Document:
    """The two cells, then the tables."""
    variants = numbers.plural(sum(not row.placebo for row in found.rows), "variant")
    loads = numbers.plural(len({(load.workload, load.clients) for load in found.loads}), "load")
    return Document(
        title=f"{variants} under {loads}",
        answer=tuple(_headline(found)),
        sections=tuple(_of_versions(found)) if found.versions else tuple(_of_loads(found)),
        eyebrow="one question under several loads",
        titled=False,
    )


def _of_loads(found: Matrix) -> Iterator[Section]:
    """What was timed, and then what was counted, each with its note."""
    grids = _grids(found)
    for grid in grids:
        yield Section(grid.title, (_table(found, grid.places, grid.heads),))
    yield Section("", (Notes((_note(found),)),))
    for grid in grids:
        yield from _instructions(found, grid)


def _of_versions(found: Matrix) -> Iterator[Section]:
    """The versions under each condition, a section for each run."""
    for one in found.versions:
        for section in versions.sections(one):
            yield replace(section, title=f"{_driven(one)}: {section.title[:1].lower()}{section.title[1:]}")


def _driven(one: Versions) -> str:
    """The workload of a run, with its clients where they are the same in all cells."""
    clients = "" if CLIENTS in one.factors else f", {numbers.plural(one.clients, 'client')}"
    return f"{one.workload}{clients}"


def _headline_of_versions(found: Matrix) -> list[str]:
    """The worst and the best of all runs' cells."""
    ends = [
        (cell.effect.ratio, one, cell)
        for one in found.versions
        for cell in (one.worst, one.best)
        if cell is not None and cell.effect is not None
    ]
    if not ends:
        return ["No condition has a speed of two versions."]
    ranked = sorted(ends, key=lambda end: end[0], reverse=not found.versions[0].higher_is_better)
    told = (("Worst", ranked[0]), ("Best", ranked[-1]))
    return [f"{word}: {_driven(one)}, {versions.extreme_text(one, cell)}." for word, (_, one, cell) in told]


def _headline(found: Matrix) -> list[str]:
    """The best and the worst of all cells, told alike."""
    if found.versions:
        return _headline_of_versions(found)
    if found.best is None or found.worst is None:
        return ["No variant has a speed under any of these loads."]
    return [f"Best: {_extreme_text(found.best)}.", f"Worst: {_extreme_text(found.worst)}."]


class Grid(NamedTuple):
    """Runs that stand beside each other in a table: their places in the matrix, and the heads of their
    columns."""

    title: str
    where: str
    places: Sequence[int]
    heads: Sequence[str]


def _grids(found: Matrix) -> list[Grid]:
    """One where each workload was driven once, with a column for each; else one for each workload, with a
    column for each run of it, the fewest clients first."""
    by_workload: dict[str, list[int]] = {}
    for place, load in enumerate(found.loads):
        by_workload.setdefault(load.workload, []).append(place)
    if 1 < len(found.loads) == len(by_workload) <= COLUMNS_MOST:
        clients = {load.clients for load in found.loads}
        alike = numbers.plural(min(clients), "client") if len(clients) == 1 else ""
        heads = [load.workload if alike else f"{load.workload}, {_head(load, found)}" for load in found.loads]
        title = f"Measured on each load, with {alike}" if alike else "Measured on each load"
        return [Grid(title, "on each load", range(len(heads)), heads)]
    grids = []
    for workload, places in by_workload.items():
        places.sort(key=lambda place: found.loads[place].clients)
        heads = [_head(found.loads[place], found) for place in places]
        grids.append(Grid(f"Measured on {workload}", f"on {workload}", places, heads))
    return grids


def _table(found: Matrix, places: Sequence[int], heads: Sequence[str]) -> Table:
    """The runs at these places as columns. What placebos tell stands in the last row."""
    rows = [
        (_named(row), *(_ratio(row.cells[place]) for place in places))
        for row in found.rows
        if not (row.placebo and found.luck)
    ]
    if found.luck:
        rows.append((LUCK, *(_luck(found.luck[place]) for place in places)))
    return table(("variant", *heads), rows)


def _instructions(found: Matrix, grid: Grid) -> Iterator[Section]:
    """What was counted in these runs; nothing where none counted. What placebos span stands in the last row,
    which says how far a count tells nothing of the code."""
    counted = [place for place in grid.places if any(_counted(row, place) for row in found.rows)]
    if not counted:
        return
    apart = [row for row in found.rows if row.placebo and found.luck]
    listed = [(row, [_counted(row, place) for place in counted]) for row in found.rows if row not in apart]
    rows: list[tuple[Words | Cell, ...]] = [(_named(row), *map(_count, each)) for row, each in listed]
    if apart:
        each = [[one.ratio for row in apart if (one := _counted(row, place))] for place in counted]
        rows.append((PLACEBOS, *map(_span, each)))
    shown = [head for place, head in zip(grid.places, grid.heads, strict=True) if place in counted]
    in_doubt = any(one is not None and not one.told for _, each in listed for one in each)
    note = f"{COUNTED} {UNTOLD}" if in_doubt else COUNTED
    title = f"Instructions per transaction {grid.where}, counted with 1 client"
    yield Section(title, (table(("variant", *shown), rows), Notes((note,))))


def _counted(row: Row, place: int) -> Instructions | None:
    cell = row.cells[place]
    return cell.instructions if cell is not None else None


def _count(counted: Instructions | None) -> str:
    if counted is None:
        return numbers.DASH
    return f"{'' if counted.told else '~'}{numbers.ratio_text(counted.ratio)}"


def _span(ratios: Sequence[float]) -> Words | Cell:
    """From the smallest to the largest, and of how many."""
    if not ratios:
        return numbers.DASH
    return Cell(numbers.between_text(min(ratios), max(ratios)), (numbers.plural(len(ratios), "placebo"),))


def _named(row: Row) -> Cell:
    """A variant, and what trained it."""
    trained = (f"trained on {', '.join(row.trained_on)}",) if row.trained_on else ()
    return Cell(verdicts.losing(row.variant, row.gives_up), trained)


def _note(found: Matrix) -> str:
    """What the figures are, and what they cannot say."""
    metric = metrics.find(found.metric)
    better = "more" if metric.higher_is_better else "less"
    shown = {
        cell.verdict for row in found.rows for cell in row.cells if cell and cell.effect and cell.verdict
    }
    glyphs = ", ".join(verdicts.marked(verdict) for verdict in Verdict if verdict in shown)
    luck = f" Luck of layout: {WITHIN}" if found.luck else ""
    return (
        f"{metric.title[:1].upper()}{metric.title[1:]}: variant / baseline of the same run, {better} is "
        f"better. None of the intervals of one run is wrong, with a confidence of "
        f"{numbers.share_text(found.confidence)}; over all runs some may be."
        " So the best and the worst of many cells owe something to chance."
        f"{luck}{f' {glyphs}.' if glyphs else ''}"
    )


def _extreme_text(found: Extreme) -> str:
    load = f"{found.load.workload} with {numbers.plural(found.load.clients, 'client')}"
    verdict = f", {found.verdict.value}" if found.verdict else ""
    said = f"{found.variant} on {load}, {numbers.effect_text(found.effect)}{verdict}"
    return verdicts.losing(said, found.gives_up)


def _head(load: Load, found: Matrix) -> str:
    """The clients of a run; with its name where another run drove the same."""
    alike = [one for one in found.loads if (one.workload, one.clients) == (load.workload, load.clients)]
    run = f", {load.run}" if len(alike) > 1 else ""
    return f"{numbers.plural(load.clients, 'client')}{run}"


def _ratio(cell: matrix.Cell | None) -> Words | Cell:
    if cell is None:
        return numbers.DASH
    if cell.effect is None:
        return cell.verdict.value if cell.verdict else numbers.DASH
    glyph = (Mark(verdicts.LOOKS[cell.verdict].glyph, cell.verdict), " ") if cell.verdict else ()
    return Cell((*glyph, numbers.ratio_text(cell.effect.ratio)), (numbers.interval_text(cell.effect),))


def _luck(found: LayoutSpread | None) -> Words | Cell:
    """The limits, and how many placebos they rest on."""
    if found is None:
        return numbers.DASH
    return Cell(numbers.between_text(found.low, found.high), (numbers.plural(found.placebos, "placebo"),))
