"""A soak: every variant on every rung, a trial each, so that one that was cut short goes on with the next.

A block is a rung. A variant that did not come through one has none of those above it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.plan.blocks import Order, block_of
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Trial, rung_of


def ask(soak: Soak, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """What is left of the lowest rung that is not over, with the phases of that rung."""
    variants, order = variants_of(study), Order.of(run)
    done = {record.trial for record in records if record.whole}
    fallen = {record.variant for record in records if record.outcome is not Outcome.MEASURED}
    for rung in range(len(soak.clients)):
        trials = [trial for trial in block_of(study, variants, rung, order) if trial.index not in done]
        if standing := [trial for trial in trials if trial.variant.name not in fallen]:
            phases = rung_of(soak, study, rung)
            return [trial.but(phases=phases) for trial in standing]
    return ()


def expected_s(soak: Soak, study: Study, overhead_s: float) -> float:
    """Seconds that all rungs take, with `overhead_s` for each trial beside its phases."""
    rungs = [rung_of(soak, study, rung) for rung in range(len(soak.clients))]
    each_s = sum(phase.takes_s for phases in rungs for phase in phases) + overhead_s * len(rungs)
    return each_s * len(variants_of(study))
