"""Bisections on a simulated bench: what each point is worth is known, and blocks and trials have noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dbdyno.driver.tally import TransactionType
from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.plan.bisect import ask
from dbdyno.records.load_words import StatementAnswer, StatementAnswers
from dbdyno.records.record import INSTRUCTIONS, Counted, Evidence, Outcome, PhaseRecord, Reading, Record
from dbdyno.records.run import BisectionRun, Counting, of_kind
from dbdyno.study import Goal, Study
from dbdyno.study.trials import Along, Line, Point, Trial, on_line
from tests.analyse.factory import STARTED_UNIX_S, a_run, a_study
from tests.fakes import make_tally

VARIED = "source.revision"
TRIALS_MOST = 4000
OTHER_ROWS = "pgbench_accounts: 1 rows, 00000000"


@dataclass(frozen=True)
class World:
    """A line of `last` steps. From the point `slow` on, speed is lower by the share `loss` and instructions
    are more by the share `executed`. `ends` are the outcomes of points that have no speed. Versions at the
    places `strange` have other rows. Each of the `statements` becomes slower at its first place, and is
    answered otherwise from its second one on; None where it never is."""

    last: int = 64
    slow: int | None = None
    loss: float = 0.03
    executed: float | None = None
    trial_sd: float = 0.01
    blocks: int = 30
    ends: Mapping[int, Outcome] = field(default_factory=dict)
    along: Along = Along.COMMITS
    strange: frozenset[int] = frozenset()
    statements: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)

    @cached_property
    def line(self) -> Line:
        return Line(along=self.along, points=tuple(map(self._point, range(self.last + 1))))

    def _point(self, place: int) -> Point:
        if self.along is Along.VERSIONS:
            levels: dict[str, Level] = {ENGINE_FACTOR: f"postgresql@{place}"}
            return Point(name=str(place), title=f"PostgreSQL {place}.4", levels=levels)
        return Point(name=f"c{place}", title=f"Change {place}", levels={VARIED: f"{place:040x}"})

    @cached_property
    def study(self) -> Study:
        return on_line(a_study(blocks=self.blocks, goal=Goal(margin=0.01)), self.line)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.line.variant(place): place for place in range(self.last + 1)}

    def run(self, seed: int = 1) -> BisectionRun:
        counting = Counting(by="nothing" if self.executed is None else "valgrind")
        return of_kind(
            BisectionRun,
            a_run(self.study),
            line=self.line,
            counting=counting,
            seed=seed,
            mirrored=True,
            statements=bool(self.statements),
        )

    def place(self, trial: Trial) -> int:
        return self._places[trial.variant.name]

    def is_slow(self, place: int) -> bool:
        return self.slow is not None and place >= self.slow


def measured(world: World, trials: Sequence[Trial], random: np.random.Generator) -> list[Record]:
    """The records of one answer of `ask`: of a block, or of trials that are counted."""
    study, disturbance, found = world.study, random.normal(0.0, 0.05), []
    for trial in trials:
        place = world.place(trial)
        speed = 1.0 - world.loss * world.is_slow(place)
        noise = disturbance + random.normal(0.0, world.trial_sd)
        record = _record(study, trial, speed * math.exp(noise))
        if (end := world.ends.get(place)) is not None:
            record = record.but(outcome=end, cause="the compiler refused it", phases=())
        elif world.along is Along.VERSIONS:
            rows = OTHER_ROWS if place in world.strange else "pgbench_accounts: 1 rows, ffffffff"
            record = record.but(reset={"image": 0, "rows": rows}, evidence=(_engine(trial),))
        elif trial.counts_instructions:
            record = record.but(phases=(_counted(world, place, random),))
        if world.statements and record.outcome is Outcome.MEASURED:
            record = _by_statement(world, place, record, random)
        found.append(record)
    return found


def _by_statement(world: World, place: int, record: Record, random: np.random.Generator) -> Record:
    """A trial that sent each statement by itself, and what they were answered."""
    tally, kinds, answers = make_tally(), {}, []
    for name, (slow, otherwise) in world.statements.items():
        factor = 1.0 + world.loss * (slow is not None and place >= slow)
        mean_us = 900.0 * factor * math.exp(random.normal(0.0, world.trial_sd))
        latency_us = tally.latency_us.but(mean=mean_us)
        kinds[name] = TransactionType(
            operations=3, throughput_per_s=1.0, acknowledged=3, latency_us=latency_us
        )
        digest = "b" if otherwise is not None and place >= otherwise else "a"
        answers.append(
            StatementAnswer(statement=name, rows=1, rounded=digest, digest=digest, shown=(digest,))
        )
    phase = record.phases[0].but(tally=tally.but(by_transaction=kinds))
    return record.but(phases=(phase,), answers=StatementAnswers(statements=tuple(answers)))


def _record(study: Study, trial: Trial, speed: float) -> Record:
    """The record of a timed trial, whose load counted many transactions in a second."""
    tally = make_tally(operations=round(1e6 * speed), duration_s=1.0)
    return Record(
        run="20251009-085320-example",
        trial=trial.index,
        block=trial.block,
        purpose=trial.purpose,
        position=trial.position,
        variant=trial.variant.name,
        levels=trial.variant.levels,
        host="bench-1",
        started_unix_s=STARTED_UNIX_S,
        finished_unix_s=STARTED_UNIX_S + 1.0,
        outcome=Outcome.MEASURED,
        phases=(PhaseRecord(name=study.title, tally=tally),),
    )


def _engine(trial: Trial) -> Evidence:
    """The proof that a version ran."""
    level = level_text(trial.variant.levels[ENGINE_FACTOR])
    read = Reading(value=level, source="/proc/PID/maps")
    return Evidence(factor=ENGINE_FACTOR, requested=level, effective=read, in_effect=True)


def _counted(world: World, place: int, random: np.random.Generator) -> PhaseRecord:
    """One repeat is exact, and others hold work that is done now and then."""
    per_op = 50_000.0 * (1.0 + (world.executed or 0.0) * world.is_slow(place))
    repeats = (per_op, *(per_op * (1.0 + abs(random.normal(0.0, 0.01))) for _ in range(2)))
    return PhaseRecord(
        name="counted", counted=Counted(operations=1000, per_op={INSTRUCTIONS: per_op}, repeats=repeats)
    )


def carried_out(
    world: World, seed: int = 1, records: Sequence[Record] = ()
) -> tuple[BisectionRun, list[Record]]:
    """A whole bisection, or the rest of one whose `records` are there."""
    run, random, done = world.run(seed), np.random.default_rng(seed), list(records)
    while trials := ask(world.study, run, done):
        assert len(done) < TRIALS_MOST, "it never ends"
        done += measured(world, trials, random)
    return run, done
