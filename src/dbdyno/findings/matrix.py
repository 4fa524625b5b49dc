"""Variants by loads: a column for each load, with the best and the worst of all cells before them.

The same variants under several loads, a run for each: what each gains over the baseline under each load.

A build that one workload trained is measured on that one and on others. The best of all cells says how far it
can go, and the worst one what it can cost, so both are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dbdyno.analyse.found import LayoutSpread
from dbdyno.analyse.model import Analysis, Ratio, Role, VariantResult, Verdict
from dbdyno.findings import versions
from dbdyno.findings.counted import UNTOLD
from dbdyno.findings.versions import CLIENTS, Versions, versions_of
from dbdyno.frozen import Frozen, Level, absent
from dbdyno.records import metrics
from dbdyno.report.document import Document, Mark, Notes, Section, Table, TableCell, Words, table
from dbdyno.report.words import numbers, verdicts
from dbdyno.study.nouns import Promise

TRAINERS = ("build.pgo", "build.bolt")
"""The factors whose levels are workloads that train a build."""
UNTRAINED = "off"
OF_THE_LOAD = "workload."


class Load(Frozen):
    """What a run drove: a column."""

    run: str
    workload: str
    clients: int


class Instructions(Frozen):
    """Instructions per transaction under one load, with one client: variant / baseline of the same run.
    `told` says that the repeats tell it from 1."""

    ratio: float
    told: bool


class Cell(Frozen):
    """A variant under one load. `effect` is its ratio to the baseline of the same run, and None where it has
    no speed that counts; its verdict then says why. `instructions` are there where the run counted them."""

    effect: Ratio | None = None
    verdict: Verdict | None = None
    instructions: Instructions | None = absent(None)


class Row(Frozen):
    """A variant, with a cell for each load in their order: None where that run has no such variant.
    `trained_on` are the workloads that train its build. A placebo's tells of luck alone."""

    variant: str
    trained_on: tuple[str, ...]
    cells: tuple[Cell | None, ...]
    placebo: bool = absent(False)
    gives_up: tuple[Promise, ...] = absent(())


class Extreme(Frozen):
    """The cell with the largest gain of all, or with the smallest one."""

    variant: str
    load: Load
    effect: Ratio
    verdict: Verdict | None
    gives_up: tuple[Promise, ...] = absent(())


class Matrix(Frozen):
    """Variants by loads. `confidence` holds for all intervals of one run together. Without a single ratio
    there is neither a `best` cell nor a `worst` one. `luck` is that of layout under each load, where runs
    have placebos. Where every run varies its engine beside other factors, `versions` has the cells of each:
    the versions under the same conditions."""

    metric: str
    confidence: float
    loads: tuple[Load, ...]
    rows: tuple[Row, ...]
    best: Extreme | None = None
    worst: Extreme | None = None
    luck: tuple[LayoutSpread | None, ...] = absent(())
    versions: tuple[Versions, ...] = absent(())


def matrix(analyses: Sequence[Analysis]) -> Matrix:
    """The matrix of runs whose variants have the same levels by name. They share a response."""
    first = analyses[0]
    loads = tuple(_load(one) for one in analyses)
    compared = [{variant.name: variant for variant in _compared(one)} for one in analyses]
    names = dict.fromkeys(name for variants in compared for name in variants)
    rows = tuple(
        Row(
            variant=name,
            trained_on=next(
                _trained_on(variants[name], one)
                for variants, one in zip(compared, analyses, strict=True)
                if name in variants
            ),
            cells=tuple(
                _cell(variants.get(name), one) for variants, one in zip(compared, analyses, strict=True)
            ),
            placebo=any(name in variants and variants[name].role is Role.PLACEBO for variants in compared),
            gives_up=next(variants[name].gives_up for variants in compared if name in variants),
        )
        for name in names
    )
    metric, luck = first.method.response, tuple(one.method.layout for one in analyses)
    told = sorted(_extremes(rows, loads), key=lambda one: one.effect.ratio)
    if not metrics.find(metric).higher_is_better:
        told.reverse()
    return Matrix(
        metric=metric,
        confidence=first.study.goal.confidence,
        loads=loads,
        rows=rows,
        best=told[-1] if told else None,
        worst=told[0] if told else None,
        luck=luck if any(luck) else (),
        versions=_versions(analyses),
    )


def _versions(analyses: Sequence[Analysis]) -> tuple[Versions, ...]:
    found = [versions_of(one) for one in analyses]
    return tuple(one for one in found if one is not None) if all(found) else ()


def unlike(analyses: Sequence[Analysis]) -> str:
    """Why runs make no matrix: another engine, another response, or a variant of the same name with other
    levels. Empty where they make one."""
    first = analyses[0]
    levels: dict[str, dict[str, Level]] = {}
    for one in analyses:
        names = first.run.run, one.run.run
        if one.study.engine.engine != first.study.engine.engine:
            return f"{names[0]} measured {first.study.engine.engine}, {names[1]} {one.study.engine.engine}"
        responses = first.method.response, one.method.response
        if responses[0] != responses[1]:
            return f"the response of {names[0]} is {responses[0]}, of {names[1]} {responses[1]}"
        for variant in one.variants:
            own = {
                name: level
                for name, level in {**one.study.settings, **variant.levels}.items()
                if not name.startswith(OF_THE_LOAD)
            }
            if levels.setdefault(variant.name, own) != own:
                return f"{variant.name} has other levels in {names[1]} than in an earlier run"
    return ""


def _load(analysis: Analysis) -> Load:
    workload = analysis.study.workload
    return Load(run=analysis.run.run, workload=workload.name, clients=workload.clients)


def _compared(analysis: Analysis) -> list[VariantResult]:
    """Candidates and placebos, in the study's order: what the baseline gains over itself is no answer."""
    return [one for one in analysis.variants if one.role in (Role.CANDIDATE, Role.PLACEBO)]


def _trained_on(variant: VariantResult, analysis: Analysis) -> tuple[str, ...]:
    levels = {**analysis.study.settings, **variant.levels}
    given = (str(levels.get(factor, UNTRAINED)) for factor in TRAINERS)
    return tuple(dict.fromkeys(level.split()[0] for level in given if level != UNTRAINED))


def _cell(variant: VariantResult | None, analysis: Analysis) -> Cell | None:
    if variant is None:
        return None
    # What is broken has no speed that counts, also where some blocks have a ratio.
    effect = None if variant.verdict is Verdict.BROKEN else variant.effect
    return Cell(effect=effect, verdict=variant.verdict, instructions=_instructions(variant.name, analysis))


def _instructions(variant: str, analysis: Analysis) -> Instructions | None:
    for one in analysis.counted:
        if one.variant == variant and one.ratio is not None:
            return Instructions(ratio=one.ratio, told=one.told)
    return None


def _extremes(rows: Sequence[Row], loads: Sequence[Load]) -> Iterator[Extreme]:
    for row in rows:
        if row.placebo:
            continue
        for load, cell in zip(loads, row.cells, strict=True):
            if cell is not None and cell.effect is not None:
                yield Extreme(
                    variant=row.variant,
                    load=load,
                    effect=cell.effect,
                    verdict=cell.verdict,
                    gives_up=row.gives_up,
                )


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
        yield from _instructions_beside(found, grid)


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


class MatrixGrid(NamedTuple):
    """Runs that stand beside each other in a table: their places in the matrix, and the heads of their
    columns."""

    title: str
    where: str
    places: Sequence[int]
    heads: Sequence[str]


def _grids(found: Matrix) -> list[MatrixGrid]:
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
        return [MatrixGrid(title, "on each load", range(len(heads)), heads)]
    grids = []
    for workload, places in by_workload.items():
        places.sort(key=lambda place: found.loads[place].clients)
        heads = [_head(found.loads[place], found) for place in places]
        grids.append(MatrixGrid(f"Measured on {workload}", f"on {workload}", places, heads))
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


def _instructions_beside(found: Matrix, grid: MatrixGrid) -> Iterator[Section]:
    """What was counted in these runs; nothing where none counted. What placebos span stands in the last row,
    which says how far a count tells nothing of the code."""
    counted = [place for place in grid.places if any(_counted(row, place) for row in found.rows)]
    if not counted:
        return
    apart = [row for row in found.rows if row.placebo and found.luck]
    listed = [(row, [_counted(row, place) for place in counted]) for row in found.rows if row not in apart]
    rows: list[tuple[Words | TableCell, ...]] = [(_named(row), *map(_count, each)) for row, each in listed]
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


def _span(ratios: Sequence[float]) -> Words | TableCell:
    """From the smallest to the largest, and of how many."""
    if not ratios:
        return numbers.DASH
    return TableCell(
        numbers.between_text(min(ratios), max(ratios)), (numbers.plural(len(ratios), "placebo"),)
    )


def _named(row: Row) -> TableCell:
    """A variant, and what trained it."""
    trained = (f"trained on {', '.join(row.trained_on)}",) if row.trained_on else ()
    return TableCell(verdicts.losing(row.variant, row.gives_up), trained)


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


def _ratio(cell: Cell | None) -> Words | TableCell:
    if cell is None:
        return numbers.DASH
    if cell.effect is None:
        return cell.verdict.value if cell.verdict else numbers.DASH
    glyph = (Mark(verdicts.LOOKS[cell.verdict].glyph, cell.verdict), " ") if cell.verdict else ()
    return TableCell((*glyph, numbers.ratio_text(cell.effect.ratio)), (numbers.interval_text(cell.effect),))


def _luck(found: LayoutSpread | None) -> Words | TableCell:
    """The limits, and how many placebos they rest on."""
    if found is None:
        return numbers.DASH
    return TableCell(
        numbers.between_text(found.low, found.high), (numbers.plural(found.placebos, "placebo"),)
    )
