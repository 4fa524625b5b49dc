"""The preparatory trials in which builds are trained, before the first trial of a run."""

from __future__ import annotations

from dbdyno.engines.built import Instrumented, Train
from dbdyno.host.once import Tell
from dbdyno.run import run_trial
from dbdyno.trial.bench import Bench
from dbdyno.trial.training import TRAINING, bench_of, transactions_of


def training_on(bench: Bench, tell: Tell) -> Train:
    """Trains engines by trials on a bench, which no run keeps."""

    def train(instrumented: Instrumented) -> int:
        tell(f"training a build by {instrumented.trainer.words}")
        record = run_trial(TRAINING, bench_of(bench, instrumented))
        return transactions_of(record, instrumented.trainer)

    return train
