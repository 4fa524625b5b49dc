"""The preparatory trials in which builds are trained, before the first trial of a run."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.cli.progress import Quiet
from dbdyno.engines.built import Instrumented, Train
from dbdyno.host import forks
from dbdyno.host.journal import open_journal
from dbdyno.run import run_trial
from dbdyno.trial.bench import Bench
from dbdyno.trial.training import TRAINING, bench_of, transactions_of


def training_on(bench: Bench) -> Train:
    """Trains engines by trials on a bench, which no run keeps. Builds may be made side by side, each in a
    fork of this process: one of them trains at a time, because trials share the host, and notes what it
    changes there in a journal of its own."""
    turn = forks.FORK.Lock()

    def train(instrumented: Instrumented) -> int:
        with turn, open_journal() as journal:
            of_training = bench_of(replace(bench, journal=journal), instrumented)
            record = run_trial(TRAINING, of_training, lambda _: None, Quiet())
        return transactions_of(record, instrumented.trainer)

    return train
