"""What a bisection measures next: the ends side by side, then points between them, then what was found beside
the point before it. Work is counted in trials of no block, between blocks, where nothing is timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.errors import BaselineFailed
from dbdyno.plan.blocks import Order, require_baseline
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import BisectionRun
from dbdyno.study import Study
from dbdyno.study.trials import COUNTED, COUNTED_FROM, NO_BLOCK, Trial, Variant, phases_of

if TYPE_CHECKING:
    from dbdyno.analyse.bisect import BisectionNeed


def ask(study: Study, run: BisectionRun, records: Sequence[Record]) -> Sequence[Trial]:
    """What is left of the block that has begun, or else what the bisection needs next; nothing when it has
    found what it can find. Raises BaselineFailed where an end cannot be measured."""
    whole = sorted((record for record in records if record.whole), key=lambda record: record.trial)
    timed = [record for record in whole if not record.of_no_block]
    counted = [record for record in whole if record.of_no_block]
    require_baseline(study, timed)
    done, begun = {record.trial for record in timed}, max((record.block for record in timed), default=0)
    for earlier in ([record for record in timed if record.block < begun], timed):
        need = _need(study, run, [*earlier, *counted])
        if need is None:
            continue
        if need.counted:
            return [_counted_trial(run, place) for place in need.places]
        trials = _block(study, run, need, earlier)
        if left := [trial for trial in trials if trial.index not in done]:
            return left
    _require_ends(run, timed)
    return ()


def _need(study: Study, run: BisectionRun, records: Sequence[Record]) -> BisectionNeed | None:
    # Here, because a plan that is only shown has no use for numpy.
    if run.statements:
        from dbdyno.analyse.bisect_statements import courses_of, need_of_statements

        return need_of_statements(courses_of(study, run, records), run.line.last)
    from dbdyno.analyse.bisect import BisectionEvidence, course_of

    return course_of(BisectionEvidence(study, run, records)).need


def _block(study: Study, run: BisectionRun, need: BisectionNeed, earlier: Sequence[Record]) -> list[Trial]:
    """The block after the earlier ones. Blocks come in pairs, so one of other points begins a pair."""
    names = tuple(run.line.variant(place) for place in need.places)
    last = max((record.block for record in earlier), default=-1)
    before = {record.variant for record in earlier if record.block == last}
    number = last + 1 if before == set(names) else last + 1 + (last + 1) % 2
    levels = {run.line.variant(place): run.line.points[place].levels for place in need.places}
    variants = tuple(Variant(name=name, levels=levels[name]) for name in names)
    phases = phases_of(study)
    return [
        Trial(
            index=len(earlier) + position,
            block=number,
            position=position,
            variant=variant,
            phases=phases,
            purpose=need.purpose,
        )
        for position, variant in enumerate(Order.of(run).of_block(variants, number))
    ]


def _counted_trial(run: BisectionRun, place: int) -> Trial:
    variant = Variant(name=run.line.variant(place), levels=run.line.points[place].levels)
    index = COUNTED_FROM + place
    return Trial(index=index, block=NO_BLOCK, position=place, variant=variant, phases=COUNTED)


def _require_ends(run: BisectionRun, timed: Sequence[Record]) -> None:
    """Raises BaselineFailed where the bad end has no speed that could be looked for."""
    name = run.line.variant(run.line.last)
    first = next((record for record in timed if record.variant == name), None)
    if first is not None and first.outcome not in (Outcome.MEASURED, Outcome.INERT):
        raise BaselineFailed(f"the bad end {name} could not be measured: {first.cause}", first.remedy)
