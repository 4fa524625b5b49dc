"""Trials whose work is counted, one for each variant, when the timed blocks are over.

Valgrind takes a CPU for as long as it runs, so nothing that is timed may run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.designs import counted_variants
from dbdyno.study.trials import COUNTED, COUNTED_FROM, NO_BLOCK, Trial

Timed = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""How a run finds its next timed trials."""


def ask(timed: Timed, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """What is timed next; when nothing is, what is counted."""
    in_blocks = [record for record in records if not record.of_no_block]
    return timed(study, run, in_blocks) or counted_trials(study, records)


def counted_trials(study: Study, records: Sequence[Record]) -> tuple[Trial, ...]:
    """A trial of each variant that has a speed and was not counted yet: what never ran well has no work that
    could be compared."""
    done = {record.variant for record in records if record.of_no_block and record.whole}
    with_speed = {
        record.variant for record in records if not record.of_no_block and record.outcome is Outcome.MEASURED
    }
    return tuple(
        Trial(index=COUNTED_FROM + number, block=NO_BLOCK, position=number, variant=variant, phases=COUNTED)
        for number, variant in enumerate(counted_variants(study))
        if variant.name in with_speed - done
    )
