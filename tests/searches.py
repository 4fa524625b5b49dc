"""Searches of surfaces that are known, as a run leaves them: no server runs, and only noise is drawn. For
tests and benches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dbdyno.driver.tally import Tally
from dbdyno.frozen import Level
from dbdyno.host.fingerprint import Host
from dbdyno.plan.search.ask import Memory, next_block, trials_of
from dbdyno.plan.search.sampler import settled
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import SearchRun
from dbdyno.study import Arrangement, Design, Factor, Goal, Study, Workload
from dbdyno.study.nouns import Reference, Search
from dbdyno.study.trials import Trial
from tests.fakes import make_tally

TRIAL_S = 10.0
SPEED = 1000.0
BLOCK_SD, TRIAL_SD = 0.05, 0.02
"""Of log speeds: what a block has in common, and each trial's own."""

Surface = Callable[[Mapping[str, Level]], float | None]
"""The true log ratio of some levels to the baseline; None where the server does not start."""


def a_search(
    *factors: Factor, budget_s: float = 2000.0, seed: int = 1, **changes: object
) -> tuple[Study, SearchRun]:
    """A study of these factors, or of three, and a run of it."""
    study = Study(
        title="What helps?",
        engine=Reference("mariadb"),
        design=Design.SEARCH,
        seed=seed,
        arrangement=Arrangement.SIDE_BY_SIDE,
        workload=Workload(name="tpcb", warmup_s=1.0, duration_s=4.0),
        factors=factors or (ranged("config.pool", 16), listed("config.log", 2), ranged("config.io", 8)),
        goal=Goal(),
        search=Search(time_s=budget_s),
        digest="e" * 64,
    ).but(**changes)
    run = SearchRun(
        run="first",
        study_path="study.toml",
        study_text="",
        study_digest=study.digest,
        seed=seed,
        mirrored=True,
        blocks=study.blocks,
        created_unix_s=0.0,
        dyno_version="0",
        host=Host(name="here"),
        budget_s=budget_s,
    )
    return study, run


def ranged(name: str, steps: int, baseline: int = 0) -> Factor:
    """A factor whose levels are the steps of a range, from 0 on."""
    rising = tuple(range(steps))
    return Factor(name=name, levels=(baseline, *(one for one in rising if one != baseline)), rising=rising)


def listed(name: str, levels: int) -> Factor:
    return Factor(name=name, levels=tuple(range(levels)))


def step(levels: Mapping[str, Level], name: str) -> int:
    """The level of a factor of whole numbers."""
    return int(levels[name])


def nothing_helps(levels: Mapping[str, Level]) -> float:
    return 0.0


def a_larger_pool_helps(levels: Mapping[str, Level]) -> float:
    return min(step(levels, "config.pool"), 8) / 8


def two_changes_help(levels: Mapping[str, Level]) -> float:
    return a_larger_pool_helps(levels) + 0.3 * step(levels, "config.log")


def measured(trial: Trial, run: SearchRun, surface: Surface, trial_sd: float = TRIAL_SD) -> Record:
    """The record of a trial. Its noise follows from the run's seed and the trial alone."""
    in_common = np.random.default_rng([run.seed, trial.block]).normal(0.0, BLOCK_SD)
    own = np.random.default_rng([run.seed, trial.block, trial.index]).normal(0.0, trial_sd)
    true = surface(trial.variant.levels)
    failed = Record(
        run=run.run, trial=trial.index, block=trial.block, purpose=trial.purpose, position=trial.position,
        variant=trial.variant.name, levels=trial.variant.levels, host="here",
        started_unix_s=TRIAL_S * trial.block, finished_unix_s=TRIAL_S * (trial.block + 1),
        outcome=Outcome.FAILED, cause="the server did not start",
    )  # fmt: skip
    if true is None:
        return failed
    speed = SPEED * math.exp(true + in_common + own)
    tally = a_tally(speed, started_unix_s=0.0)
    phase = PhaseRecord(name="load", tally=tally)
    return failed.but(outcome=Outcome.MEASURED, cause="", phases=(phase,))


def a_tally(speed: float, **changes: object) -> Tally:
    """A tally of so many transactions a second."""
    return make_tally(operations=round(1000.0 * speed), duration_s=1000.0, throughput_per_s=speed, **changes)


def carried_out(
    study: Study,
    run: SearchRun,
    surface: Surface,
    memory: Memory = lambda levels: 0,
    trial_sd: float = TRIAL_SD,
    blocks: int = 10**6,
    begun: Sequence[Record] = (),
) -> list[Record]:
    """All records that a search comes to, or those of its first blocks; of one that has `begun`, those and
    what follows."""
    records = list(begun)
    for _ in range(blocks):
        block = next_block(memory, study, run, records)
        if block is None:
            break
        trials = trials_of(study, run, block, len(records))
        records += [measured(trial, run, surface, trial_sd) for trial in trials]
    return records


def drawn(study: Study, random: np.random.Generator) -> dict[str, Level]:
    """A point of the space, each level of each factor as likely."""
    levels = {one.name: one.levels[int(random.integers(len(one.levels)))] for one in study.factors}
    return settled(study, levels)


def tried_in(records: Sequence[Record]) -> list[str]:
    """The variants of each trial, in order."""
    return [record.variant for record in records]
