"""The report of a run: its answer, the verdicts, what explains them, and what proves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.versions import versions_of
from dbdyno.records.chain import Rerun
from dbdyno.records.run import ImportedRun
from dbdyno.report.document import Detail, Document, Figure, Lines, Section
from dbdyno.report.parts import (
    builds,
    costs,
    counted,
    engines,
    evidence,
    factors,
    findings,
    frontier,
    gap,
    gate,
    grid,
    hosts,
    machine,
    overhead,
    plans,
    platforms,
    registered,
    replays,
    request,
    restarts,
    running,
    search,
    split,
    statements,
    verdicts,
    versions,
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
    beside = platforms.trial_count(analysis) if analysis.study.of_platforms else 0
    records = numbers.plural(len(analysis.trials) + beside, "record")
    held = gate.gate_in(analysis)
    return Document(
        title=analysis.study.title if held is None else gate.title(held),
        answer=(answer.headline(analysis),) if held is None else gate.answered(held),
        sections=(*(gate.sections(held) if held is not None else ()), *_sections(analysis, reruns)),
        eyebrow=f"run {run.run} · {began}",
        facts=(*_facts(analysis),),
        findings=tuple(answer.findings(analysis)),
        footer=f"Dyno {run.dyno_version} · run {run.run} · made from {records}",
        numbered=True,
    )


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    if analysis.study.of_platforms:
        yield from (machine if analysis.study.of_machine else platforms).facts(analysis)
        return
    done, planned = len(analysis.trials), analysis.trials_planned
    trials = numbers.plural(done, "trial") if done == planned else f"{done} of {planned} trials"
    yield "Engine", naming.engine_text(analysis)
    yield "Workload", naming.workload_text(analysis)
    yield "Design", analysis.study.design.value
    if names := [one.name for one in analysis.run.fleet]:
        yield "Fleet", f"{numbers.plural(len(names), 'host')} ({words_hosts.enumerated(names)})"
    yield "Size", f"{naming.size_text(analysis)}, {trials}"
    if not isinstance(analysis.run, ImportedRun):
        load = analysis.study.workload
        warmup, measured = map(numbers.seconds_text, (load.warmup_s, load.duration_s))
        yield "Each", f"{warmup} warm-up, {measured} measured"


def _sections(analysis: Analysis, reruns: Sequence[Rerun] | None) -> Iterator[Section]:
    if analysis.study.of_platforms:
        yield from (machine if analysis.study.of_machine else platforms).sections(analysis)
        yield from registered.sections(analysis, reruns)
        return
    yield from verdicts.sections(analysis)
    yield from search.sections(analysis)
    yield from hosts.sections(analysis)
    if analysis.engines is not None:
        yield from engines.sections(analysis.engines)
    if (by_condition := versions_of(analysis)) is not None:
        yield from versions.sections(by_condition)
    yield from grid.sections(analysis)
    yield from factors.sections(analysis)
    if analysis.gap is not None:
        yield from gap.sections(analysis.gap)
    if analysis.frontier is not None:
        yield from frontier.sections(analysis.frontier)
    yield from running.sections(analysis)
    yield from restarts.sections(analysis)
    yield from builds.sections(analysis)
    yield from counted.sections(analysis)
    yield from request.sections(analysis.requests)
    yield from split.sections(analysis.splits)
    yield from replays.sections(analysis.replays)
    yield from statements.sections(analysis.statements)
    if analysis.plans is not None:
        yield from plans.sections(analysis.plans)
    yield from overhead.sections(analysis)
    yield from findings.sections(analysis)
    yield from _figures(analysis)
    yield from costs.sections(analysis)
    yield from evidence.sections(analysis)
    yield from registered.sections(analysis, reruns)
    yield Section("Method", (Lines(tuple(method.method_text(analysis)), bullets=True),), detail=Detail.TEXT)


def _figures(analysis: Analysis) -> Iterator[Section]:
    """Every trial as a point, and what each measured."""
    below = ", blocks one under the other" if not isinstance(analysis.run, ImportedRun) else ""
    for title, drawing, aside in (
        ("Trials", "trials", f"Every measured trial{below}. {TRIALS}"),
        ("Latency", "latency", LATENCY),
        ("Seconds", "series", SECONDS),
    ):
        yield Section(title, (Figure(drawing, (analysis,)),), aside=aside, detail=Detail.PAGE)
