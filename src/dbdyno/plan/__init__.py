"""What comes next: pure functions of a study, its run and the records so far. Each answers with the next
trials; none means that the run is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dbdyno.records.record import Record
from dbdyno.records.run import BisectionRun, Run, SearchRun, SoakRun
from dbdyno.study import Study
from dbdyno.study.trials import Trial

if TYPE_CHECKING:
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told

Ask = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""Follows from the records alone, so that a run that is resumed goes on as if nothing had happened."""


def ask_for(run: Run, memory: Memory = lambda levels: 0, tell: Told | None = None) -> Ask:
    """How a run finds its next trials. A search asks `memory` what the servers of its candidates take. A run
    that measures until its verdicts stand tells of each, once, with the number of blocks."""
    # Each kind of run is imported when one of it begins.
    if isinstance(run, SoakRun):
        from dbdyno.plan import soak

        return partial(soak.ask, run.soak)
    if isinstance(run, BisectionRun):
        from dbdyno.plan import bisect

        return lambda study, _, records: bisect.ask(study, run, records)
    if isinstance(run, SearchRun):
        from dbdyno.plan.search import ask as search

        return lambda study, _, records: search.ask(memory, study, run, records)
    from dbdyno.plan import blocks, budget, counted, restarts, sequential

    asked = partial(sequential.ask, memory=sequential.Memory(tell=tell))
    timed = asked if run.sequential else blocks.ask if run.budget_s is None else budget.ask
    return partial(restarts.ask, partial(counted.ask, timed))
