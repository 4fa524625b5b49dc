"""What comes next: pure functions of a study, its run and the records so far. Each answers with the next
trials; none means that the run is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dbdyno.plan import bisect, blocks, budget, counted, restarts, sequential, soak
from dbdyno.plan.search import ask as search
from dbdyno.records.record import Record
from dbdyno.records.run import BisectionRun, Run, SearchRun, SoakRun
from dbdyno.study import Study
from dbdyno.study.trials import Trial

Ask = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""Follows from the records alone, so that a run that is resumed goes on as if nothing had happened."""


def ask_for(run: Run, memory: search.Memory = lambda levels: 0) -> Ask:
    """How a run finds its next trials. A search asks `memory` what the servers of its candidates take."""
    if isinstance(run, SoakRun):
        return partial(soak.ask, run.soak)
    if isinstance(run, BisectionRun):
        return lambda study, _, records: bisect.ask(study, run, records)
    if isinstance(run, SearchRun):
        return lambda study, _, records: search.ask(memory, study, run, records)
    asked = partial(sequential.ask, memory=sequential.Memory())
    timed = asked if run.sequential else blocks.ask if run.budget_s is None else budget.ask
    return partial(restarts.ask, partial(counted.ask, timed))
