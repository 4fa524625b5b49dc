"""What the list of runs shows of each: its answer, how its variants ended, and a line over its blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis
from dbdyno.errors import DynoError
from dbdyno.findings import gate
from dbdyno.findings.results import RESULTS
from dbdyno.frozen import Frozen
from dbdyno.host.host_lock import holder
from dbdyno.kinds.held_against import held_gate
from dbdyno.kinds.registry import without_speeds
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.readings import BLOCKS_LEAST, Readings, RunOfIndex
from dbdyno.records.run import RunLine, RunSummary
from dbdyno.records.store import Store
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
    engine: str
    trend: str

    @property
    def kinds(self) -> str:
        """What the list is filtered by."""
        return " ".join(verdict.slug for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class UnshownRun:
    """A run of the list before it is shown, because a page shows few of them."""

    line: RunLine
    read: RunOfIndex
    under_way: bool

    @property
    def day(self) -> str:
        """That of its beginning, as browsers write dates."""
        return minute_text(self.line.created_unix_s)[:10]

    @property
    def about(self) -> str:
        """Its study's file, its names and its note."""
        line = self.line
        named = (line.name, *(f"baseline {name}" for name in line.baselines), line.note)
        return "; ".join(filter(None, (self.read.file, *named)))

    @property
    def said(self) -> str:
        """What words are looked for in."""
        began = minute_text(self.line.created_unix_s)
        return " ".join((self.line.run, self.read.title, self.about, self.read.answer, began)).lower()


@dataclass(frozen=True)
class RunQuery:
    """What of a list is asked for: runs with all these words, of a study's file, of an engine, with a
    verdict, that began between two days; and how many of the latest are left out before the first."""

    text: str = ""
    study: str = ""
    engine: str = ""
    verdict: str = ""
    since: str = ""
    until: str = ""
    skip: int = 0

    @classmethod
    def of(cls, query: str) -> RunQuery:
        """What a query string asks for; what it does not know asks for nothing."""
        given = dict(parse_qsl(query))
        known = {
            name: given[name]
            for name in ("text", "study", "engine", "verdict", "since", "until")
            if name in given
        }
        skip = given.get("skip", "")
        return cls(**known, skip=int(skip) if skip.isdecimal() and len(skip) < 10 else 0)

    def query(self, skip: int) -> str:
        """The same as a query string, from another row on."""
        told = {name: value for name, value in vars(self).items() if value and name != "skip"}
        return urlencode(told | ({"skip": skip} if skip else {}))

    def fits(self, one: UnshownRun) -> bool:
        """Whether a run is asked for."""
        said = one.said if self.text else ""
        return (
            all(word in said for word in self.text.lower().split())
            and self.study in ("", one.read.file)
            and self.engine in ("", one.read.engine)
            and (not self.verdict or self.verdict in map(_slug, one.read.verdicts))
            and (not self.since or one.day >= self.since)
            and (not self.until or one.day <= self.until)
        )


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
    """Reads each run once. What finished runs say is kept on disk as well (`records/readings.py`), and all of
    it in one file, because ten thousand files take too long to open."""

    _seen: dict[str, Seen] = field(default_factory=dict)
    _is_loaded: bool = False

    def runs(self, store: Store, between: Callable[[], None]) -> list[UnshownRun]:
        """The latest run first. `between` is called before each run is read."""
        measuring = holder()
        under_way = measuring.run if measuring else ""
        readings, found = Readings(store), list[UnshownRun]()
        self._load(readings)
        lines = store.lines()
        before = len(self._seen)
        for line in lines:
            seen = self._seen.get(line.run)
            if seen is None or not seen.is_of(line):
                between()
                seen = self._read(store, readings, line)
            found.append(UnshownRun(line, seen.reading, line.run == under_way))
        if len(self._seen) != before:
            self._keep(readings, lines)
        return found

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
            read = readings.of(first, RunOfIndex, partial(read_in_brief, store, first))
            read = read or RunOfIndex(title=Path(first.run.study_path).name, answer=UNREADABLE, verdicts={})
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

    def _read(self, store: Store, readings: Readings, line: RunLine) -> Seen:
        try:
            summary = store.summary_of(line)
        except DynoError as error:
            return Seen(finished=line.finished, outcomes={}, reading=_unreadable(error.message))
        run = summary.run
        found = readings.of(summary, RunOfIndex, partial(read_in_brief, store, summary))
        file = Path(run.study_path).name
        found = found or RunOfIndex(title=file, answer=UNREADABLE, verdicts={})
        engine = f"{run.installation.engine} {run.installation.version}".strip()
        found = found.but(file=file, engine=engine, has_trend=bool(run.compares and not run.of_logs))
        seen = Seen(finished=line.finished, outcomes=line.outcomes, reading=found)
        self._seen[line.run] = seen
        return seen

    def _load(self, readings: Readings) -> None:
        """What an earlier process has read."""
        if not self._is_loaded:
            self._is_loaded = True
            kept = readings.kept_index(KeptRuns)
            self._seen |= kept.runs if kept is not None else {}

    def _keep(self, readings: Readings, lines: Sequence[RunLine]) -> None:
        """Of runs that are over."""
        over = {line.run: self._seen[line.run] for line in lines if line.finished and line.run in self._seen}
        readings.keep_index(KeptRuns(runs=over))


class Seen(Frozen):
    """What was read of a run that was so far."""

    finished: bool
    outcomes: dict[str, int]
    reading: RunOfIndex

    def is_of(self, line: RunLine) -> bool:
        """Whether the run is as far now as it was then."""
        return self.finished == line.finished and self.outcomes == line.outcomes


class KeptRuns(Frozen):
    """The same of all runs of a store by their names."""

    runs: dict[str, Seen]


def _unreadable(why: str) -> RunOfIndex:
    return RunOfIndex(title=UNREADABLE, answer=why, verdicts={})


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


def verdicts_in(runs: Sequence[UnshownRun]) -> list[Verdicts]:
    """Each verdict that a run has, and how many have it."""
    counted = Counter(name for one in runs for name in one.read.verdicts)
    return [Verdicts(name, _slug(name), count) for name, count in counted.items()]


def _slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def row_of(one: UnshownRun) -> IndexRow:
    """What is shown of a run."""
    line, read = one.line, one.read
    points, height_of_one = _points(read.line)
    told = ""
    if points:
        spread = f"{ratio_text(min(read.line))} to {ratio_text(max(read.line))}"
        told = f"{read.line_of}: {spread} times {read.line_against} over {plural(len(read.line), 'block')}"
    trials = sum(line.outcomes.values())
    return IndexRow(
        run=line.run, href=f"/run/{quote(line.run)}", began=minute_text(line.created_unix_s),
        title=read.title, about=one.about, answer=read.answer,
        state="under way" if one.under_way else "" if line.finished else "unfinished",
        trials=plural(trials, "trial") if read.title != UNREADABLE else "",
        points=points, one=height_of_one, line=told, engine=read.engine,
        trend=f"/trend/{quote(line.run)}" if read.has_trend and trials else "",
        verdicts=tuple(Verdicts(name, _slug(name), count) for name, count in sorted(read.verdicts.items())),
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
