"""What the list of runs shows of each: its answer, how its variants ended, and a line over its blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis
from dbdyno.begin.gate import held_gate
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.errors import DynoError
from dbdyno.findings import gate
from dbdyno.findings.results import RESULTS
from dbdyno.host.host_lock import holder
from dbdyno.kinds.registry import without_speeds
from dbdyno.records.readings import BLOCKS_LEAST, Readings, RunOfIndex
from dbdyno.records.store import RunSummary, Store
from dbdyno.report import document
from dbdyno.report.words.answer import in_brief
from dbdyno.report.words.numbers import minute_text, plural, ratio_text

WIDTH, HEIGHT, EDGE = 120.0, 24.0, 2.0
"""Of the line over a run's blocks, in pixels."""
NOTHING = "nothing measured yet"
UNREADABLE = "this Dyno cannot read it"


@dataclass(frozen=True)
class Verdicts:
    """How many variants have a verdict, with the class that gives it its colour."""

    text: str
    slug: str
    count: int


@dataclass(frozen=True)
class IndexRow:
    """A row of the list."""

    run: str
    href: str
    began: str
    title: str
    about: str
    answer: str
    state: str
    trials: str
    verdicts: tuple[Verdicts, ...]
    points: str
    one: float
    line: str

    @property
    def kinds(self) -> str:
        """What the list is filtered by."""
        return " ".join(verdict.slug for verdict in self.verdicts)


@dataclass(frozen=True)
class StudyRow:
    """A study with its finished runs."""

    title: str
    path: str
    runs: int
    href: str
    latest: str


@dataclass
class Index:
    """Reads each run once. What finished runs say is kept on disk as well (`records/readings.py`)."""

    _seen: dict[str, tuple[dict[str, int], RunOfIndex]] = field(default_factory=dict)

    def rows(self, store: Store, between: Callable[[], None]) -> list[IndexRow]:
        """The latest run first. `between` is called before each run is read."""
        measuring = holder()
        under_way = measuring.run if measuring else ""
        readings, rows = Readings(store), list[IndexRow]()
        summaries, unreadable = store.runs_and_unreadable()
        for summary in summaries:
            between()
            rows.append(_row(summary, self._read(store, readings, summary), summary.run.run == under_way))
        for one in unreadable:
            said = RunOfIndex(title=UNREADABLE, answer=one.why, verdicts={})
            began = minute_text(one.created_unix_s)
            rows.append(_row_of(one.run, began, said, about="", state="", trials=""))
        return rows

    def verdicts_in(self, rows: Sequence[IndexRow]) -> list[Verdicts]:
        """Each verdict that a row has, and in how many rows."""
        found: dict[str, Verdicts] = {}
        for verdict in (verdict for row in rows for verdict in row.verdicts):
            before = found.get(verdict.slug)
            found[verdict.slug] = Verdicts(verdict.text, verdict.slug, (before.count if before else 0) + 1)
        return list(found.values())

    def studies(self, store: Store, between: Callable[[], None]) -> list[StudyRow]:
        """The studies of finished runs that were measured, those of the latest first."""
        readings, found = Readings(store), dict[str, list[RunSummary]]()
        for summary in store.runs():
            run = summary.run
            compares = run.compares and not run.of_logs
            if summary.finished and summary.outcomes and compares:
                found.setdefault(run.study_digest, []).append(summary)
        rows = []
        for first, *others in found.values():
            between()
            read = self._read(store, readings, first)
            rows.append(
                StudyRow(
                    title=read.title,
                    path=Path(first.run.study_path).name,
                    runs=1 + len(others),
                    href=f"/trend/{quote(first.run.run)}",
                    latest=minute_text(first.run.created_unix_s),
                )
            )
        return rows

    def _read(self, store: Store, readings: Readings, summary: RunSummary) -> RunOfIndex:
        seen = self._seen.get(summary.run.run)
        if seen is not None and seen[0] == summary.outcomes:
            return seen[1]
        found = readings.of(summary, RunOfIndex, partial(read_in_brief, store, summary))
        found = found or RunOfIndex(title=Path(summary.run.study_path).name, answer=UNREADABLE, verdicts={})
        self._seen[summary.run.run] = summary.outcomes, found
        return found


def read_in_brief(store: Store, summary: RunSummary) -> RunOfIndex | None:
    """What a run says, read anew. None where this Dyno cannot read the run's study or its records."""
    run = summary.run
    try:
        study = study_of(run)
        if not summary.outcomes:
            return RunOfIndex(title=study.title, answer=NOTHING, verdicts={})
        if (other := without_speeds(store, run)) is not None:
            kind, result = other
            told = RESULTS[kind].document(result).answer
            return RunOfIndex(title=study.title, answer=" ".join(map(document.plain, told)), verdicts={})
        analysis = analysed(study, run, store.records(run.run))
        held = held_gate(store, run, history=False)
        return in_brief(analysis) if held is None else _of_gate(analysis, held)
    except DynoError:
        return None


def _of_gate(analysis: Analysis, held: Gate) -> RunOfIndex:
    """A run that was held against another one has one verdict."""
    verdict = held.result.verdict
    ratios = held.result.block_ratios
    return RunOfIndex(
        title=gate.title(held),
        answer=gate.sentence(held),
        verdicts={verdict.value: 1} if verdict is not None else {},
        line_of="run" if len(ratios) >= BLOCKS_LEAST else "",
        line_against=held.against,
        line=tuple(one.ratio for one in ratios) if len(ratios) >= BLOCKS_LEAST else (),
    )


def _row(summary: RunSummary, read: RunOfIndex, under_way: bool) -> IndexRow:
    named = (summary.name, *(f"baseline {name}" for name in summary.baselines), summary.note)
    about = "; ".join(filter(None, (Path(summary.run.study_path).name, *named)))
    state = "under way" if under_way else "" if summary.finished else "unfinished"
    trials = plural(sum(summary.outcomes.values()), "trial")
    began = minute_text(summary.run.created_unix_s)
    return _row_of(summary.run.run, began, read, about=about, state=state, trials=trials)


def _row_of(run: str, began: str, read: RunOfIndex, *, about: str, state: str, trials: str) -> IndexRow:
    points, one = _points(read.line)
    told = ""
    if points:
        spread = f"{ratio_text(min(read.line))} to {ratio_text(max(read.line))}"
        told = f"{read.line_of}: {spread} times {read.line_against} over {plural(len(read.line), 'block')}"
    return IndexRow(
        run=run, href=f"/run/{quote(run)}", began=began, title=read.title, about=about, answer=read.answer,
        state=state, trials=trials, points=points, one=one, line=told,
        verdicts=tuple(
            Verdicts(name, name.replace(" ", "-"), count) for name, count in sorted(read.verdicts.items())
        ),
    )  # fmt: skip


def _points(line: Sequence[float]) -> tuple[str, float]:
    """The corners of the line, and the height at which the ratio is 1, which is always within."""
    logs = [math.log(ratio) for ratio in line if ratio > 0.0]
    if len(logs) < BLOCKS_LEAST:
        return "", 0.0
    low, high = min(0.0, *logs), max(0.0, *logs)
    span = (high - low) or 1.0

    def height(log: float) -> float:
        return round(HEIGHT - EDGE - (log - low) / span * (HEIGHT - 2.0 * EDGE), 1)

    step = (WIDTH - 2.0 * EDGE) / (len(logs) - 1)
    return " ".join(f"{EDGE + at * step:.1f},{height(log)}" for at, log in enumerate(logs)), height(0.0)
