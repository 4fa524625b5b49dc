"""A run that measures each variant until its verdict stands, in as many blocks as its study says at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dbdyno.plan.blocks import Order, next_trials
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import DURABLE, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial

if TYPE_CHECKING:
    from dbdyno.analyse.analysis import Looks
    from dbdyno.analyse.model import VariantResult

    Told = Callable[[VariantResult, int], None]


@dataclass
class SequentialMemory:
    """What a run that asks after each block has read already, so that a block costs the same at its end as at
    its beginning, and who is told of each verdict, once, with the number of blocks. It changes no answer."""

    looks: Looks | None = None
    tell: Told | None = None
    known: set[str] = field(default_factory=set)


def ask(
    study: Study, run: Run, records: Sequence[Record], memory: SequentialMemory | None = None
) -> Sequence[Trial]:
    """The variants that are not decided; nothing when all are."""
    return next_trials(study, Order.of(run), records, partial(_left_out, study, run, memory))


def decided(
    study: Study, run: Run, records: Sequence[Record], memory: SequentialMemory | None = None
) -> dict[str, VariantResult]:
    """The variants whose verdict stands, whatever may follow, by name. What restarts showed stood before the
    first block, and a variant that lost something is measured all the same: the report says what it gains."""
    # Here, because a plan that is only shown has no use for numpy.
    from dbdyno.analyse import analysis

    guards = tuple(guard for guard in study.goal.guards if guard.metric != DURABLE)
    timed = study.but(goal=study.goal.but(guards=guards))
    memory = memory or SequentialMemory()
    memory.looks = memory.looks or analysis.Looks()
    return analysis.decided(timed, run, records, memory.looks)


def _left_out(
    study: Study, run: Run, memory: SequentialMemory | None, records: Sequence[Record]
) -> frozenset[str]:
    """The decided variants; all of them, the baseline too, when it has none left to be compared with. A run
    that is held against another has that.

    Where every second block mirrors the one before it, only whole pairs decide: half of a pair favours
    whoever came first, and both halves must hold the same variants to balance each other.
    """
    blocks = 1 + max(record.block for record in records)
    judged = blocks - blocks % 2 if run.mirrored else blocks
    if not judged:
        return frozenset()
    variants = variants_of(study)
    looked_at = records if judged == blocks else [record for record in records if record.block < judged]
    results = decided(study, run, looked_at, memory)
    _tell(results, judged, memory)
    over = frozenset(results)
    candidates = [variant.name for variant in variants[1:] if variant.candidate]
    if over and over >= set(candidates) and not run.took_turns_with:
        return frozenset(variant.name for variant in variants)
    return over


def _tell(results: dict[str, VariantResult], blocks: int, memory: SequentialMemory | None) -> None:
    """Tells of each verdict once."""
    if memory is None or memory.tell is None:
        return
    for name in results.keys() - memory.known:
        memory.tell(results[name], blocks)
    memory.known |= results.keys()
