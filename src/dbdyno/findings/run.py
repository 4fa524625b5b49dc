"""The findings of a run in the order of its page, the analysis that they make, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import numpy as np

from dbdyno.analyse.analysis import AnalysisInput, Basis, basis_of
from dbdyno.analyse.columns import HAS_PLANS, HAS_REPLAY, HAS_REQUESTS, HAS_STATEMENTS
from dbdyno.analyse.found import EFFORTS
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.museum import answer as answer_of
from dbdyno.analyse.quantiles import explains_gap, varies_together
from dbdyno.findings import registered, screen
from dbdyno.findings.registered import Belonging, OpenedBy
from dbdyno.records.chain import Rerun
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.report.document import Detail, Document, Lines, Section, Words
from dbdyno.report.words import answer, method, naming, numbers
from dbdyno.report.words import hosts as words_hosts
from dbdyno.report.words.numbers import moment_text
from dbdyno.study import Study
from dbdyno.study.nouns import STATEMENTS

NOBODY = ""
"""In the place of what finds something: a search is found around all other findings."""


@dataclass(frozen=True)
class Finding:
    """One finding: the `field` of an Analysis that it fills, and the places of its `sections` and of what
    finds it, each a `module:function`. Unless it is named, `find` stands beside `sections`. One that only
    tells what others found has no field. A file is imported where it is `asked` of a run, or where there is
    something to be `told`: without a rule for that, where its field is not empty. What tells it is given the
    whole Analysis, or its field `alone`."""

    field: str = ""
    sections: str = ""
    find: str | None = None
    asked: Callable[[Basis], bool] = lambda basis: True
    told: Callable[[Analysis], bool] | None = None
    alone: bool = False

    def found(self, basis: Basis) -> Any:
        """What it finds in a run; None where it is not asked of such a run, or finds nothing."""
        place = f"{self.sections.partition(':')[0]}:find" if self.find is None else self.find
        return resolve_name(place)(basis) if self.field and place and self.asked(basis) else None

    def told_of(self, analysis: Analysis) -> Iterator[Section]:
        """Its sections of the page."""
        held = getattr(analysis, self.field) if self.field else None
        is_told = bool(held) or not self.field if self.told is None else self.told(analysis)
        if self.sections and is_told:
            yield from resolve_name(self.sections)(held if self.alone else analysis)


def _of_one_host(basis: Basis) -> bool:
    """Whether Dyno knows the host: each of a fleet has spreads of its own, and logs have none."""
    return basis.run.of_logs is None and not basis.of_hosts


FINDINGS = (
    Finding("museum", find="dbdyno.findings.museum:find"),
    Finding("aa", find="dbdyno.findings.verdicts:find_aa"),
    Finding("floor", find="dbdyno.findings.verdicts:find_floor", asked=_of_one_host),
    Finding("components", find="dbdyno.findings.verdicts:find_components", asked=_of_one_host),
    Finding("second", find="dbdyno.findings.verdicts:find_second", asked=lambda basis: not basis.of_hosts),
    Finding(sections="dbdyno.findings.verdicts:sections"),
    Finding(
        "published",
        "dbdyno.findings.published:sections",
        asked=lambda basis: bool(basis.study.published),
    ),
    Finding("search", "dbdyno.findings.search:sections", find=NOBODY),
    Finding(
        "hosts",
        "dbdyno.findings.hosts:sections",
        asked=lambda basis: basis.of_hosts,
    ),
    Finding(
        "engines",
        "dbdyno.findings.engines:sections",
        asked=lambda basis: len(basis.study.engines) > 1,
        alone=True,
    ),
    Finding(
        sections="dbdyno.findings.versions:sections_of",
        told=lambda analysis: len(analysis.study.engines) > 1,
    ),
    Finding(
        sections="dbdyno.findings.factors:grid_sections",
        told=lambda analysis: varies_together(analysis.study),
    ),
    Finding(
        "factorial",
        "dbdyno.findings.factors:sections",
        asked=lambda basis: varies_together(basis.study),
    ),
    Finding(
        "gap",
        "dbdyno.findings.gap:sections",
        asked=lambda basis: explains_gap(basis.study),
        alone=True,
    ),
    Finding(
        "frontier",
        "dbdyno.findings.frontier:sections",
        asked=lambda basis: any(one.name in EFFORTS for one in basis.study.factors),
        alone=True,
    ),
    Finding(
        "phases",
        "dbdyno.findings.phases:sections",
        asked=lambda basis: bool(basis.study.phases),
    ),
    Finding(
        "capacities",
        "dbdyno.findings.capacity:sections",
        asked=lambda basis: bool(basis.study.goal.promise),
    ),
    Finding(
        "meanwhile",
        "dbdyno.findings.meanwhile:sections",
        asked=lambda basis: bool(basis.study.meanwhile),
    ),
    Finding(
        sections="dbdyno.findings.running:sections", told=lambda analysis: analysis.run.in_use is not None
    ),
    Finding(
        "survival",
        "dbdyno.findings.restarts:sections",
        asked=lambda basis: basis.survived is not None,
    ),
    Finding(
        sections="dbdyno.findings.code:build_sections",
        told=lambda analysis: any(one.code is not None for one in analysis.variants),
    ),
    Finding(
        "counted",
        "dbdyno.findings.counted:sections",
        asked=lambda basis: any(not one.of_restarts for one in basis.given.beside),
        told=lambda analysis: bool(analysis.counted) or analysis.run.counting_builds is not None,
    ),
    Finding(
        "requests",
        "dbdyno.findings.request:sections",
        asked=lambda basis: basis.has(HAS_REQUESTS),
        alone=True,
    ),
    Finding("splits", "dbdyno.findings.split:sections", alone=True),
    Finding(
        "replays",
        "dbdyno.findings.replays:sections",
        asked=lambda basis: basis.has(HAS_REPLAY),
        alone=True,
    ),
    Finding(
        "statements",
        "dbdyno.findings.statements:sections",
        asked=lambda basis: basis.has(HAS_STATEMENTS),
        alone=True,
    ),
    Finding(
        "statements_compared",
        "dbdyno.findings.statements:compared_sections",
        find="dbdyno.findings.statements:find_compared",
        asked=lambda basis: basis.study.workload.name == STATEMENTS,
    ),
    Finding(
        "statement_costs",
        "dbdyno.findings.statement_costs:sections",
        asked=lambda basis: basis.study.workload.name == STATEMENTS,
        alone=True,
    ),
    Finding(
        "plans",
        "dbdyno.findings.plans:sections",
        asked=lambda basis: basis.has(HAS_PLANS),
        alone=True,
    ),
    Finding(
        "overhead",
        "dbdyno.findings.overhead:sections",
        asked=lambda basis: basis.run.of_logs is None,
    ),
    Finding("conditions", find="dbdyno.findings.overhead:find_conditions"),
    Finding(sections="dbdyno.findings.museum:sections"),
    Finding(sections="dbdyno.findings.over_time:error_sections"),
    Finding(sections="dbdyno.findings.evidence:figures"),
    Finding(sections="dbdyno.findings.over_time:sections"),
    Finding(sections="dbdyno.findings.verdicts:costs_sections"),
    Finding(sections="dbdyno.findings.evidence:sections"),
)
"""In the order of the page."""


def analyse_blocks(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not.

    A trial that was recorded more than once (a resumed run) counts once, with its last record.
    """
    return analyse_given(study, run, AnalysisInput.of(records))


def analyse_given(study: Study, run: Run, given: AnalysisInput) -> Analysis:
    """The same, of what was read of the records already."""
    basis = basis_of(study, run, given)
    found = {one.field: what for one in FINDINGS if (what := one.found(basis)) is not None}
    return Analysis(
        study=study,
        run=run,
        method=basis.method,
        answer=answer_of(basis.results, basis.trials, basis.method),
        variants=basis.results,
        trials=basis.columns.results_of(np.sort(basis.shown)),
        trials_planned=basis.planned,
        **found,
    )


def document(
    analysis: Analysis,
    reruns: Sequence[Rerun] | None = None,
    belongings: Sequence[Belonging] = (),
    opened_by: OpenedBy = registered.by_nothing,
) -> Document:
    """The whole report. `reruns` are all runs of the same study that the store knows, where it was asked, and
    `belongings` what belongs to the run, which the page is `opened_by`."""
    run = analysis.run
    began = moment_text(run.created_unix_s)
    trials = len(analysis.trials)
    if analysis.study.untimed:
        trials += _of_part("dbdyno.findings.platforms:trial_count", analysis)
    records = numbers.plural(trials, "record")
    held = _of_part("dbdyno.findings.gate:gate_in", analysis) if run.held else None
    return Document(
        title=analysis.study.title if held is None else _of_part("dbdyno.findings.gate:title", held),
        answer=_answer(analysis) if held is None else _of_part("dbdyno.findings.gate:answered", held),
        sections=(
            *(_of_part("dbdyno.findings.gate:sections", held) if held is not None else ()),
            *_sections(analysis, reruns),
            *registered.belonging_sections(belongings, opened_by),
        ),
        eyebrow=f"run {run.run} · {began}",
        facts=(*_facts(analysis),),
        findings=tuple(answer.findings(analysis)),
        footer=f"Dyno {run.dyno_version} · run {run.run} · made from {records}",
        numbered=True,
        screen=screen.of_run(analysis, reruns)
        if held is None
        else _of_part("dbdyno.findings.gate:screen", held),
    )


def _answer(analysis: Analysis) -> tuple[Words, ...]:
    """Of an upgrade a sentence for each version, behind what could not be measured."""
    versions: tuple[Words, ...] = ()
    if len(analysis.study.engines) > 1 and not analysis.answer.baseline_broken:
        versions = _of_part("dbdyno.findings.engines:answer_of_versions", analysis)
    if not versions:
        return (answer.headline(analysis),)
    missing = answer.not_measured(analysis)
    return (*([missing] if missing else ()), *versions)


def _of_part(place: str, *found: Any) -> Any:
    """What a part of the report says of what was found. It is imported where something was."""
    return resolve_name(place)(*found)


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    if analysis.study.untimed:
        of_machine, of_platforms = (
            "dbdyno.findings.platforms:machine_facts",
            "dbdyno.findings.platforms:facts",
        )
        yield from _of_part(of_machine if analysis.study.in_guest else of_platforms, analysis)
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
        rounds = load.options.get("rounds") if load.name == STATEMENTS else None
        yield "Each", f"{rounds} rounds" if rounds else f"{warmup} warm-up, {measured} measured"


def _sections(analysis: Analysis, reruns: Sequence[Rerun] | None) -> Iterator[Section]:
    if analysis.study.untimed:
        yield from _of_part("dbdyno.findings.platforms:sections", analysis)
        yield from registered.sections(analysis, reruns)
        return
    for finding in FINDINGS:
        yield from finding.told_of(analysis)
    yield from registered.sections(analysis, reruns)
    yield Section("Method", (Lines(tuple(method.method_text(analysis)), bullets=True),), detail=Detail.TEXT)
