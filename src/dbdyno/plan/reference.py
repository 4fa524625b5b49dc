"""A reference: the baseline of a study alone, in as many blocks as the run that is held against it."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.plan.blocks import Order, block_of
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial


def ask(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """The baseline in the next block. Where it stands in its block is as a run of the whole study has it."""
    variants = variants_of(study)
    block = 1 + max((record.block for record in records), default=-1)
    if block >= study.blocks:
        return ()
    trials = block_of(study, variants, block, Order.of(run))
    return tuple(trial for trial in trials if trial.variant.name == variants[0].name)
