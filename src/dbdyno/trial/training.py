"""Trials that no run keeps: one that trains an instrumented engine, and one under perf. No speed is read from
them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from dbdyno.driver.tally import Tally
from dbdyno.engines.built import Instrumented
from dbdyno.errors import BuildFailed, DynoError
from dbdyno.host.cache import scratch
from dbdyno.host.perf import PROBES_MOST_S, Sample, Sampler
from dbdyno.layers.build import run_options
from dbdyno.layers.setup import Running
from dbdyno.obtain.source.build import Trainer
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import ComparisonRun, of_kind
from dbdyno.study import Design, Study, Workload
from dbdyno.study.trials import Phase, Trial, Variant
from dbdyno.trial.bench import Bench

LONGEST_S = 3600.0
"""What a training takes at most."""
SEED = 1
"""Of every training, so that a build does not depend on the run that made it."""

TRAINING = Trial(
    index=0,
    block=0,
    position=0,
    variant=Variant(name="training", levels={}),
    phases=(Phase(name="training", duration_s=LONGEST_S),),
)


def bench_of(bench: Bench, instrumented: Instrumented) -> Bench:
    """The bench on which an instrumented engine is trained. Its data are those of any study of that load."""
    run = of_kind(
        ComparisonRun, bench.run, run=f"{bench.run.run}-training", seed=SEED, arrangement=None, budget_s=None
    )
    return replace(
        bench,
        study=_study(bench.study, instrumented.trainer),
        run=run,
        instrumented=instrumented,
        callgrind=None,
        counter=None,
    )


def _study(study: Study, trainer: Trainer) -> Study:
    """A study of nothing but the trainer's load on the trainer's server."""
    workload = Workload(
        name=trainer.workload,
        clients=trainer.clients,
        warmup_s=0.0,
        duration_s=LONGEST_S,
        options=dict(trainer.options),
        run_options=run_options(trainer),
    )
    # An application takes requests; another load than the study's own is SQL.
    own = trainer.workload == study.workload.name
    return study.but(
        title=f"Training by {trainer.workload}",
        design=Design.ONE_AT_A_TIME,
        arrangement=None,
        images=1,
        driver=None,
        workload=workload,
        settings={**dict(trainer.settings), **(study.application_levels if own else {})},
        factors=(),
        variants=(),
    )


def transactions_of(record: Record, trainer: Trainer) -> int:
    """The transactions that a training did. Raises BuildFailed, with its cause, where it was none to build
    on."""
    name, done = f"the training by {trainer.workload}", record.tally.operations if record.tally else 0
    # How fast the driver was does not matter here.
    saturated = record.outcome is Outcome.FAILED and Doubt.DRIVER_SATURATED in record.doubts
    if record.outcome is not Outcome.MEASURED and not saturated:
        hint = record.remedy or "mend what it says, or take another trainer"
        raise BuildFailed(f"{name} failed: {record.cause}", hint, record.server_log)
    if done < trainer.transactions:
        raise BuildFailed(
            f"{name} did {done:,} of {trainer.transactions:,} transactions in {LONGEST_S:g} s",
            f'ask for fewer: "{trainer.workload} transactions={max(1, done // 2)}"',
            record.server_log,
        )
    if unclean := record.trial_doubts.get(Doubt.SERVER_LOG):
        raise BuildFailed(
            f"{name} ended without a whole profile: {unclean}", "look at the server's log", record.server_log
        )
    return done


Beside = Callable[[Running], AbstractContextManager[object]]
"""What looks on while the load runs."""


@dataclass(frozen=True)
class Sampled:
    """The samples of a trial's measured part, as (weight, frames from root to leaf), and the CPU time per
    operation that the kernel counted in the same trial. `way` is how perf found the callers."""

    variant: str
    samples: tuple[tuple[int, tuple[tuple[str, str], ...]], ...]
    cpu_us_per_op: float
    way: str


def with_time_to_probe(study: Study) -> Study:
    """The study with a warm-up in which the ways to find callers can be tried."""
    warmup_s = max(study.workload.warmup_s, PROBES_MOST_S + 1.0)
    return study.but(workload=study.workload.but(warmup_s=warmup_s))


def sampled(carry_out: Callable[[Beside], Record], embedded: bool) -> Sampled:
    """Samples a trial while `carry_out` carries it out. Raises DynoError for one that was not measured."""
    with scratch("profile") as folder:
        sampler = Sampler(folder)
        ahead_s = time.time() - time.monotonic()

        def beside(running: Running) -> AbstractContextManager[object]:
            nonlocal ahead_s
            ahead_s = time.time() - time.monotonic()
            return sampler.on(running.process_ids)

        record = carry_out(beside)
        if record.outcome is not Outcome.MEASURED or record.tally is None:
            raise DynoError(f"{record.variant} could not be profiled: {record.cause}", record.remedy)
        own = "driver_cpu_us_per_op" if embedded else ""
        spent = [metrics.find(name).read(record) for name in ("server_cpu_us_per_op", own) if name]
        measured = _measured_part(list(sampler.samples()), record.tally, ahead_s)
        return Sampled(
            variant=record.variant,
            samples=tuple((one.weight, one.frames) for one in measured),
            cpu_us_per_op=sum(value or 0.0 for value in spent),
            way=sampler.way.name,
        )


def _measured_part(samples: list[Sample], tally: Tally, ahead_s: float) -> list[Sample]:
    """Without the warm-up. perf's clock is the monotonic one, the tally's is unix time, which was so much
    ahead when the load began: a clock may have been set since."""
    start_s = tally.started_unix_s + tally.warmup_s - ahead_s
    return [one for one in samples if start_s <= one.time_s <= start_s + tally.duration_s]
