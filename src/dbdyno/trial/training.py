"""A preparatory trial: an instrumented engine does what trains its build. No speed is read from it."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.engines.built import Instrumented
from dbdyno.errors import BuildFailed
from dbdyno.layers.build import run_options
from dbdyno.obtain.source.wish import Trainer
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import ComparisonRun, of_kind
from dbdyno.study import Design, Study, Workload
from dbdyno.study.phases import Phase
from dbdyno.study.trials import Trial, Variant
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
    # An application takes requests; another load than the study's own is SQL.
    own = instrumented.trainer.workload == bench.study.workload.name
    return replace(
        bench,
        application=bench.application if own else None,
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
    return study.but(
        title=f"Training by {trainer.workload}",
        design=Design.ONE_AT_A_TIME,
        arrangement=None,
        images=1,
        driver=None,
        workload=workload,
        settings=dict(trainer.settings),
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
