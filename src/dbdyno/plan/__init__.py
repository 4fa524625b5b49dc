"""What comes next: pure functions of a study, its run and the records so far. Each answers with the next
trials; none means that the run is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dbdyno.plan import budget, counted, fixed, sequential, soak
from dbdyno.records.record import Record, Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial

Ask = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""Follows from the records alone, so that a run that is resumed goes on as if nothing had happened."""


def ask_for(run: Run) -> Ask:
    """How a run finds its next trials."""
    if run.soak is not None:
        return partial(soak.ask, run.soak)
    timed = sequential.ask if run.sequential else fixed.ask if run.budget_s is None else budget.ask
    return partial(counted.ask, timed)
