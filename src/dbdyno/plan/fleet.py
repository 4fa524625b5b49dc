"""A run on several hosts: each is asked for its own blocks, in their order, so all hosts advance together.

A host's trials follow from the run and from its own records alone. What it measures stands in the blocks, in
the orders and with the keys that the same run would have on one host.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.plan import counted
from dbdyno.plan.blocks import Order, next_trials
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial


def ask(host: str, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """What one host of a fleet, by its name there, is to do next; nothing when all its blocks are over. Work
    that is counted beside the blocks is the same on every host, so the first one does it.

    Raises BaselineFailed like `next_trials`, by the first block of that host.
    """
    own = [record for record in records if _is_of(host, run, record.block)]
    if run.fleet and run.fleet[0].name == host:
        return counted.ask(lambda *asked: _timed(host, *asked), study, run, own)
    return _timed(host, study, run, own)


def blocks_of(host: str, run: Run) -> tuple[int, ...]:
    """The blocks of a host of a fleet, by its name there."""
    return tuple(block for block in range(run.blocks) if _is_of(host, run, block))


def _timed(host: str, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    own = blocks_of(host, run)
    return next_trials(study, Order.of(run), records, own=own) if own else ()


def _is_of(host: str, run: Run, block: int) -> bool:
    found = run.host_of(block)
    return found is not None and found.name == host
