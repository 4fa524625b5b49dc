"""The same variants under several loads, a run for each: what each gains over the baseline under each load.

A build that one workload trained is measured on that one and on others. The best of all cells says how far it
can go, and the worst one what it can cost, so both are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.luck import LayoutSpread
from dbdyno.analyse.model import Analysis, Ratio, Role, VariantResult, Verdict
from dbdyno.analyse.versions import Versions, versions_of
from dbdyno.frozen import Frozen, Level, absent
from dbdyno.records import metrics
from dbdyno.study.space import Promise

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
