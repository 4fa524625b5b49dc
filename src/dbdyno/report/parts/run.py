"""The report of a run: its answer, the verdicts, what explains them, and what proves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pkgutil import resolve_name
from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.versions import versions_of
from dbdyno.records.chain import Rerun
from dbdyno.report.document import Detail, Document, Figure, Lines, Section
from dbdyno.report.parts import (
    builds,
    costs,
    counted,
    evidence,
    findings,
    grid,
    overhead,
    registered,
    screen,
    verdicts,
)
from dbdyno.report.words import answer, method, naming, numbers
from dbdyno.report.words import hosts as words_hosts
from dbdyno.report.words.moments import moment_text

TRIALS = "Point at one for its evidence. Triangles carry a warning."
LATENCY = "All measured trials of a variant together. Point at a line to highlight it."
SECONDS = (
    "Operations per second, a line per trial; scales differ. Shaded: warm-up. Seconds count from the start of"
    " the measured part."
)


def document(analysis: Analysis, reruns: Sequence[Rerun] | None = None) -> Document:
    """The whole report. `reruns` are all runs of the same study that the store knows, where it was asked."""
    run = analysis.run
    began = moment_text(run.created_unix_s)
    trials = len(analysis.trials)
    if analysis.study.of_platforms:
        trials += _of_part("dbdyno.report.parts.platforms:trial_count", analysis)
    records = numbers.plural(trials, "record")
    held = _of_part("dbdyno.report.parts.gate:gate_in", analysis) if run.held else None
    return Document(
        title=analysis.study.title if held is None else _of_part("dbdyno.report.parts.gate:title", held),
        answer=(answer.headline(analysis),)
        if held is None
        else _of_part("dbdyno.report.parts.gate:answered", held),
        sections=(
            *(_of_part("dbdyno.report.parts.gate:sections", held) if held is not None else ()),
            *_sections(analysis, reruns),
        ),
        eyebrow=f"run {run.run} · {began}",
        facts=(*_facts(analysis),),
        findings=tuple(answer.findings(analysis)),
        footer=f"Dyno {run.dyno_version} · run {run.run} · made from {records}",
        numbered=True,
        screen=screen.of_run(analysis, reruns)
        if held is None
        else _of_part("dbdyno.report.parts.gate:screen", held),
    )


def _of_part(place: str, *found: Any) -> Any:
    """What a part of the report says of what was found. It is imported where something was."""
    return resolve_name(place)(*found)


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    if analysis.study.of_platforms:
        of_machine, of_platforms = "dbdyno.report.parts.machine:facts", "dbdyno.report.parts.platforms:facts"
        yield from _of_part(of_machine if analysis.study.of_machine else of_platforms, analysis)
        return
    done, planned = len(analysis.trials), analysis.trials_planned
    trials = numbers.plural(done, "trial") if done == planned else f"{done} of {planned} trials"
    yield "Engine", naming.engine_text(analysis)
    yield "Workload", naming.workload_text(analysis)
    yield "Design", analysis.study.design.value
    if names := [one.name for one in analysis.run.fleet]:
        yield "Fleet", f"{numbers.plural(len(names), 'host')} ({words_hosts.enumerated(names)})"
    yield "Size", f"{naming.size_text(analysis)}, {trials}"
    if not analysis.run.of_logs:
        load = analysis.study.workload
        warmup, measured = map(numbers.seconds_text, (load.warmup_s, load.duration_s))
        yield "Each", f"{warmup} warm-up, {measured} measured"


def _sections(analysis: Analysis, reruns: Sequence[Rerun] | None) -> Iterator[Section]:
    if analysis.study.of_platforms:
        of_machine = "dbdyno.report.parts.machine:sections"
        of_platforms = "dbdyno.report.parts.platforms:sections"
        yield from _of_part(of_machine if analysis.study.of_machine else of_platforms, analysis)
        yield from registered.sections(analysis, reruns)
        return
    yield from verdicts.sections(analysis)
    if analysis.search is not None:
        yield from _of_part("dbdyno.report.parts.search:sections", analysis)
    if analysis.hosts is not None:
        yield from _of_part("dbdyno.report.parts.hosts:sections", analysis)
    if analysis.engines is not None:
        yield from _of_part("dbdyno.report.parts.engines:sections", analysis.engines)
    if (by_condition := versions_of(analysis)) is not None:
        yield from _of_part("dbdyno.report.parts.versions:sections", by_condition)
    yield from grid.sections(analysis)
    if analysis.factorial is not None:
        yield from _of_part("dbdyno.report.parts.factors:sections", analysis)
    if analysis.gap is not None:
        yield from _of_part("dbdyno.report.parts.gap:sections", analysis.gap)
    if analysis.frontier is not None:
        yield from _of_part("dbdyno.report.parts.frontier:sections", analysis.frontier)
    if analysis.run.in_use is not None:
        yield from _of_part("dbdyno.report.parts.running:sections", analysis)
    if analysis.survival is not None:
        yield from _of_part("dbdyno.report.parts.restarts:sections", analysis)
    yield from builds.sections(analysis)
    yield from counted.sections(analysis)
    if analysis.requests:
        yield from _of_part("dbdyno.report.parts.request:sections", analysis.requests)
    if analysis.splits:
        yield from _of_part("dbdyno.report.parts.split:sections", analysis.splits)
    if analysis.replays:
        yield from _of_part("dbdyno.report.parts.replays:sections", analysis.replays)
    if analysis.statements:
        yield from _of_part("dbdyno.report.parts.statements:sections", analysis.statements)
    if analysis.plans is not None:
        yield from _of_part("dbdyno.report.parts.plans:sections", analysis.plans)
    yield from overhead.sections(analysis)
    yield from findings.sections(analysis)
    yield from _figures(analysis)
    yield from costs.sections(analysis)
    yield from evidence.sections(analysis)
    yield from registered.sections(analysis, reruns)
    yield Section("Method", (Lines(tuple(method.method_text(analysis)), bullets=True),), detail=Detail.TEXT)


def _figures(analysis: Analysis) -> Iterator[Section]:
    """Every trial as a point, and what each measured."""
    below = ", blocks one under the other" if not analysis.run.of_logs else ""
    for title, drawing, aside in (
        ("Trials", "trials", f"Every measured trial{below}. {TRIALS}"),
        ("Latency", "latency", LATENCY),
        ("Seconds", "series", SECONDS),
    ):
        yield Section(title, (Figure(drawing, (analysis,)),), aside=aside, detail=Detail.PAGE)
