"""A run of as many blocks as its study says."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.plan.blocks import next_trials
from dbdyno.plan.order import Order
from dbdyno.records.record import Record, Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial


def ask(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """Every variant in every block."""
    return next_trials(study, Order.of(run), records)
