"""Trials beside the blocks: restarts before the first, counted work after the last; and which of all trials
one host of a fleet has.

They come before what is timed, as a gate: a speed that does not survive a power cut is none. Each trial
begins with pristine data and holds a few rounds, so that what one of them damages costs no more than the rest
of it. All variants meet the same acts at the same moments.

Valgrind takes a CPU for as long as it runs, so nothing that is timed may run beside it.

A host's trials follow from the run and from its own records alone. What it measures stands in the blocks, in
the orders and with the keys that the same run would have on one host.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from dbdyno.plan.blocks import Order, next_trials
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.designs import (
    CONTROL,
    CONTROL_CUTS,
    ROUNDS_MOST,
    acts_of,
    control_of,
    counted_variants,
    restarted_variants,
    turns,
)
from dbdyno.study.soak import OF_CLUSTER, OF_POWER, Act
from dbdyno.study.trials import COUNTED, COUNTED_FROM, NO_BLOCK, RESTARTS_FROM, Phase, Trial

Others = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""How a run finds all its other trials."""
SHORTEST_SHARE, LONGEST_SHARE = 0.25, 1.75
"""How long a load goes on before an act, over what the study says: evenly drawn, with this mean."""
GIVEN_UP = (Outcome.BLOCKED, Outcome.FAILED)
"""A variant that could not be tried is not tried again."""


def then_in_blocks(others: Others, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """Restarts first, then what is timed and counted."""
    if study.restarts is None:
        return others(study, run, records)
    rest = [record for record in records if not record.of_restarts]
    return restart_trials(study, run, records) or others(study, run, rest)


def restart_trials(study: Study, run: Run, records: Sequence[Record]) -> tuple[Trial, ...]:
    """What is still to be done of the turn that has begun, or else the next turn. In a turn each variant has
    one trial; the control has its only one in the first."""
    seen = [record for record in records if record.of_restarts]
    done = {record.trial for record in seen if record.whole}
    given_up = {record.variant for record in seen if record.outcome in GIVEN_UP}
    for turn in range(turns(study)):
        trials = [
            trial
            for trial in turn_of(study, run, turn)
            if trial.index not in done and trial.variant.name not in given_up
        ]
        if trials:
            return tuple(trials)
    return ()


def turn_of(study: Study, run: Run, turn: int) -> tuple[Trial, ...]:
    """All trials of one turn, in an order that the run's seed draws."""
    variants, control = restarted_variants(study), control_of(study)
    phases = _phases(study, run, turn)
    ordered = Order.of(run).of_block(variants, turn)
    if control is not None and turn == 0:
        ordered.append(control)
    return tuple(
        Trial(
            index=RESTARTS_FROM + turn * (len(variants) + 1) + position,
            block=NO_BLOCK,
            position=position,
            variant=variant,
            phases=_cuts(phases) if variant.name == CONTROL else phases,
        )
        for position, variant in enumerate(ordered)
    )


def _phases(study: Study, run: Run, turn: int) -> tuple[Phase, ...]:
    """The rounds of one turn. The acts of all turns are shuffled together."""
    assert study.restarts is not None
    acts = Order.of(run).of_round(acts_of(study.restarts), NO_BLOCK, 0)
    draw = random.Random(f"{run.seed} restarts {turn}")
    first = turn * ROUNDS_MOST
    return tuple(
        Phase(
            name=f"{act}-{number}",
            duration_s=_drawn_s(study.restarts.load_s, draw),
            then=act,
            ledger=True,
            # A variant of one node has no other that could be lost, and shows the rest.
            optional=act in OF_CLUSTER,
        )
        for number, act in enumerate(acts[first : first + ROUNDS_MOST], first + 1)
    )


def _drawn_s(mean_s: float, draw: random.Random) -> float:
    share = SHORTEST_SHARE + (LONGEST_SHARE - SHORTEST_SHARE) * draw.random()
    return round(mean_s * share, 3)


def _cuts(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """The control's rounds: power cuts alone, at the moments of the others' acts of power."""
    moments = [phase for phase in phases if phase.then in OF_POWER] or list(phases)
    return tuple(
        phase.but(name=f"{Act.CUT}-{number}", then=Act.CUT)
        for number, phase in enumerate(moments[:CONTROL_CUTS], 1)
    )


Timed = Callable[[Study, Run, Sequence[Record]], Sequence[Trial]]
"""How a run finds its next timed trials."""


def then_counted(timed: Timed, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
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


def ask_of_host(host: str, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """What one host of a fleet, by its name there, is to do next; nothing when all its blocks are over. Work
    that is counted beside the blocks is the same on every host, so the first one does it.

    Raises BaselineFailed like `next_trials`, by the first block of that host.
    """
    own = [record for record in records if _is_of(host, run, record.block)]
    if run.fleet and run.fleet[0].name == host:
        return then_counted(lambda *asked: _timed(host, *asked), study, run, own)
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
