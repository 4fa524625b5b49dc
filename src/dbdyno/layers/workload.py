"""The workload layer: clients, rate and the workload's own options, proved by what the driver says it
drove. Beside it two layers of what is asked: the texts of statements, and the indexes of the data."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.datasets import SET_FILE, VECTOR_SEARCH, placed
from dbdyno.driver.job import Closed, Job, Open, Schedule, ThinkTime
from dbdyno.driver.load import files_read, review
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, DriverFailed, Mistake
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.layers.layer import LayerOfStudy, proof
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.records.load_words import BUILD_S, SIZE_BYTES
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor, pacing
from dbdyno.study.files import FileKind, NamedFile

_JOB_KNOBS = ("clients", "threads")
"""Knobs that stand in the job itself."""


def _as_it_is(level: Level, folder: Path) -> Level:
    return level


Pace = Level | Schedule | ThinkTime

_LOAD_KNOBS: Mapping[str, tuple[type[Open | Closed], Callable[[Level, Path], Pace]]] = {
    "rate_per_s": (Open, _as_it_is),
    "arrivals": (Open, _as_it_is),
    "schedule": (Open, pacing.schedule),
    "think_time": (Closed, lambda level, folder: pacing.think_time(level)),
}
"""Knobs of when transactions start: the kind of load they make, and their form in the job. All others are
options of the workload."""


def files_of_workload(workload: str, options: Mapping[str, Level], folder: Path) -> tuple[NamedFile, ...]:
    """The files that a workload with these options reads in a study's folder."""
    if workload == VECTOR_SEARCH:
        return _vectors(str(options.get("dataset", "")), folder)
    read = files_read(workload, options, folder)
    return tuple(NamedFile(FileKind.WORKLOAD, one.name, one.option, one.named_at) for one in read)


def _vectors(dataset: str, folder: Path) -> tuple[NamedFile, ...]:
    """The file of vectors, or what a folder of them says of itself; none for a set that Dyno keeps."""
    path = Path(placed(dataset, folder))
    if path.is_dir() and dataset:
        return (NamedFile(FileKind.VECTORS, str(Path(dataset) / SET_FILE), "dataset"),)
    return (NamedFile(FileKind.VECTORS, dataset, "dataset"),) if path.suffix else ()


@dataclass(frozen=True)
class DriverChange(Request):
    """A knob of the driver's job, or of its load or its workload's options, and the level it gets."""

    knob: str
    level: Level

    def apply(self, setup: Setup) -> None:
        setup.job = _changed(setup.job, self.knob, self.level)


class WorkloadLayer(LayerOfStudy):
    """`workload.NAME = VALUE` changes the load, not the server. Its options are known to the reader."""

    name = "workload"
    related: Mapping[str, tuple[str, ...]] = {"clients": ("cpu.usable_cores",)}

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(DriverChange(knob, level) for knob, level in levels.items())

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [self._from_job(knob, level, running) for knob, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """The tally repeats what was driven: clients that never connected would show here."""
        knob = evidence.factor.removeprefix("workload.")
        if knob not in _JOB_KNOBS or running.tally is None:
            return evidence
        driven: int = getattr(running.tally, knob)
        shown = Reading(value=level_text(driven), source=f"tally: {knob}")
        if getattr(running.setup.job, knob) not in (0, driven):
            reason = f"asked for {evidence.requested}, the driver drove {driven}"
            return evidence.but(exercised=shown, in_effect=False, reason=reason)
        return evidence.but(exercised=shown)

    def _from_job(self, knob: str, level: Level, running: Running) -> Evidence:
        found = _found(running.setup.job, knob)
        folder = Path(running.setup.job.folder)
        wanted = _LOAD_KNOBS[knob][1](level, folder) if knob in _LOAD_KNOBS else level
        reading = Reading(value=_shown(found), source="the driver's job")
        return Evidence(
            factor=f"workload.{knob}",
            requested=level_text(level),
            accepted=reading,
            effective=reading,
            in_effect=found == wanted,
        )


def _changed(job: Job, knob: str, level: Level) -> Job:
    """The job with one knob at its level. A knob of the other kind of loop changes the load to that kind."""
    if knob in _JOB_KNOBS:
        return job.but(**{knob: level})
    if knob in _LOAD_KNOBS:
        kind, read = _LOAD_KNOBS[knob]
        kept = dict(job.load) if isinstance(job.load, kind) else {}
        return job.but(load=kind.model_validate({**kept, knob: read(level, Path(job.folder))}))
    return job.but(options={**job.options, knob: level})


def _found(job: Job, knob: str) -> Pace | None:
    """What the job has for a knob; None where its load is of the other kind of loop."""
    where = job if knob in _JOB_KNOBS else job.load if knob in _LOAD_KNOBS else None
    found: Pace | None = getattr(where, knob, None) if where is not None else job.options[knob]
    return found


def _shown(found: Pace | None) -> str:
    if found is None:
        return "nothing"
    text = json.dumps(found.model_dump()) if isinstance(found, Frozen) else level_text(found)
    # The points of a day are too many for each trial's record.
    return text if len(text) <= READING_MOST else f"{text[:READING_MOST]}..."


WORKLOAD = WorkloadLayer()


@dataclass(frozen=True)
class StatementReplaced(Request):
    """A statement of the workload whose text is that of another file."""

    statement: str
    file: str

    def apply(self, setup: Setup) -> None:
        others = str(setup.job.options.get(REPLACED, ""))
        told = ",".join(filter(None, (others, f"{self.statement}={self.file}")))
        setup.job = setup.job.but(options={**setup.job.options, REPLACED: told})


READING_MOST = 160
REPLACED = "replaced"
"""The option of the workload `statements` that names such files."""


class StatementLayer(LayerOfStudy):
    """`statement.NAME = FILE` sends the text of a file in the place of the statement NAME."""

    name = "statement"

    def wrong(self, factor: Factor, engine: Engine) -> list[Mistake]:
        wrong = [level for level in map(level_text, factor.levels) if not level.endswith(".sql")]
        hint = f'write "{factor.name}" = ["queries/{factor.knob}.sql", "new/{factor.knob}.sql"]'
        return [Mistake(0, f"{factor.name}: {level!r} is no .sql file", hint) for level in wrong]

    def files(self, level: Level) -> tuple[NamedFile, ...]:
        """The file that a level names."""
        return (NamedFile(FileKind.WORKLOAD, level_text(level), REPLACED),)

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(StatementReplaced(knob, level_text(level)) for knob, level in levels.items())

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        job = running.setup.job
        sent = review(job.workload, job.options, Path(job.folder)).own_sql.splitlines()
        return [self._sent(knob, level_text(level), sent, Path(job.folder)) for knob, level in levels.items()]

    def _sent(self, knob: str, level: str, sent: Sequence[str], folder: Path) -> Evidence:
        # As the driver joins them.
        place = os.path.join(folder, level)  # noqa: PTH118
        lines = [line for line in sent if line.startswith(f"{place}:")]
        shown = lines[0].removeprefix(f"{folder}/")[:READING_MOST] if lines else "nothing of it"
        found = Reading(value=shown, source="what the driver sends")
        return proof(f"statement.{knob}", level, found, bool(lines), "the driver's job")

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """How often the tally has it."""
        kinds = running.tally.by_transaction if running.tally else {}
        kind = kinds.get(evidence.factor.removeprefix("statement."))
        if kind is None:
            return evidence
        return evidence.but(exercised=Reading(value=str(kind.operations), source="tally: executions"))


STATEMENT = StatementLayer()

NO_INDEX, BUILD_MOST_S = "none", 300.0
"""The level without an index, and how long one may take to build: as long as the driver waits for a byte."""
INDEX = re.compile(
    r"\s*CREATE\s+(?:(?:UNIQUE|ASC|ASCENDING|DESC|DESCENDING|FULLTEXT|SPATIAL)\s+)*INDEX\s+"
    r"(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?[\"`]?(?P<name>\w+)",
    re.IGNORECASE,
)


def _indexes(level: str) -> list[tuple[str, str]]:
    """The name of each index that a level makes, and the statement that makes it."""
    parts = [] if level == NO_INDEX else [part.strip() for part in level.split(";") if part.strip()]
    return [(found["name"], part) for part in parts if (found := INDEX.match(part))]


@dataclass(frozen=True)
class IndexesMade(Request):
    """Indexes that a variant has beside those of the data."""

    knob: str
    level: str

    def apply(self, setup: Setup) -> None:
        """Nothing yet: there is no server."""

    def put_on(self, running: Running) -> Mapping[str, Level]:
        factor, words = f"schema.{self.knob}", running.setup.engine.indexes
        if self.level == NO_INDEX or words is None:
            return {}
        before = _bytes(running, words.size)
        began = time.monotonic()
        try:
            for _, statement in _indexes(self.level):
                running.load.query(running.server.url, statement, BUILD_MOST_S)
        except DriverFailed as refusal:
            if refusal.kind != "server":
                raise
            raise Blocked(factor, f"the server refused it: {refusal.message}", "mend the statement") from None
        told: dict[str, Level] = {f"{factor}{BUILD_S}": round(time.monotonic() - began, 4)}
        after = _bytes(running, words.size)
        if before is not None and after is not None:
            told[f"{factor}{SIZE_BYTES}"] = after - before
        return told


def _bytes(running: Running, sql: str) -> float | None:
    """The bytes of the database; None where the account may not ask, or no statement tells."""
    if not sql:
        return None
    try:
        [[size]] = running.ask(sql)
    except DriverFailed as refusal:
        if refusal.kind != "server":
            raise
        return None
    return None if size is None else float(size)


class SchemaLayer(LayerOfStudy):
    """`schema.index = CREATE INDEX ...` makes an index in the data of a variant."""

    name = "schema"

    def wrong(self, factor: Factor, engine: Engine) -> list[Mistake]:
        hint = 'write "schema.index" = ["none", "CREATE INDEX by_customer ON orders (customer)"]'
        if not factor.knob.startswith("index"):
            return [
                Mistake(0, f"the schema layer has no knob {factor.knob!r}, but index and index_...", hint)
            ]
        levels = [level for level in map(level_text, factor.levels) if level != NO_INDEX]
        wrong = [
            level
            for level in levels
            if len(_indexes(level)) != len(list(filter(str.strip, level.split(";")))) or not _indexes(level)
        ]
        return [Mistake(0, f"{factor.name}: {level!r} makes no index", hint) for level in wrong]

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(IndexesMade(knob, level_text(level)) for knob, level in levels.items())

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [self._made(knob, level_text(level), running) for knob, level in levels.items()]

    def _made(self, knob: str, level: str, running: Running) -> Evidence:
        words, factor = running.setup.engine.indexes, f"schema.{knob}"
        names = [name for name, _ in _indexes(level)]
        if not names or words is None:
            found = Reading(value=NO_INDEX, source="the data as they came")
            return proof(factor, level, found, not names, "the study")
        there = [name for name in names if _number(running, words.found.format(name=name))]
        reading = Reading(
            value=", ".join(there) or NO_INDEX, source=f"{running.setup.engine.title}'s catalogue"
        )
        return proof(factor, level, reading, there == names, "the server, once it answered")


def _number(running: Running, sql: str) -> float:
    [[count]] = running.ask(sql)
    return float(count or 0)


SCHEMA = SchemaLayer()
