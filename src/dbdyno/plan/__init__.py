"""What comes next: pure functions of a study, its run and the records so far. Each answers with the next
trials; none means that the run is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial

Ask = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""Follows from the records alone, so that a run that is resumed goes on as if nothing had happened."""
