"""What the driver is to do in a trial, and the setup that a trial begins with."""

from __future__ import annotations

from dbdyno.driver.job import Job
from dbdyno.host import paths
from dbdyno.layers.setup import Setup
from dbdyno.study import Workload, pacing
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench

INDEXING_S = 3600.0
"""A server that makes an index is silent until it is done."""


def job_of(workload: Workload, trial: Trial, bench: Bench) -> Job:
    """What the driver is to do in a trial, before there is a server and before its levels are put in."""
    load = pacing.load(
        workload.rate_per_s,
        workload.arrivals,
        pacing.schedule(workload.schedule) if workload.schedule else None,
        pacing.think_time(workload.think_time) if workload.think_time else None,
    )
    return Job(
        workload=workload.name,
        options=dict(workload.options),
        folder=str(bench.study.folder),
        clients=workload.clients,
        threads=workload.threads,
        ramp_s=workload.ramp_s,
        gather=workload.gather,
        by_statement=workload.by_statement,
        opening=workload.opening,
        warmup_s=workload.warmup_s,
        duration_s=workload.duration_s,
        seed=trial_seed(bench.run.seed, trial.block),
        load=load,
    )


def setup_of(trial: Trial, bench: Bench) -> Setup:
    """What a trial begins with: a folder of its own, which is in the journal before it is made."""
    scratch = paths.cache() / "trials" / f"{bench.run.run}-{trial.index}"
    bench.journal.note_tree(scratch)
    scratch.mkdir(parents=True)
    job = job_of(bench.study.workload, trial, bench)
    setup = Setup(bench.engine, bench.installation, scratch, bench.journal, job)
    setup.allowed = bench.allowed
    return setup


def trial_seed(run_seed: int, block: int) -> int:
    """What the keys of a trial are drawn from, 0 to 2**64 - 1. All variants of a block draw the same keys, so
    that they differ in nothing but their levels."""
    return (run_seed * 1_000_003 + block) % 2**64
