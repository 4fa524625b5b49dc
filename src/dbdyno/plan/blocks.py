"""From a study to its trials: blocks of all variants, and the order that each has. A soak's block is a rung;
a reference has the baseline alone in each.

The design is a randomised complete block design: every block holds every variant once, in an order that a
seed draws (R. A. Fisher, The Design of Experiments, 1935). The block is the unit of inference.

Blocks come in pairs: the first of a pair has an order drawn from the seed, the second runs it backwards. So
over a pair every variant has the same mean position, and of each two variants each comes first once: what
drifts evenly with time cancels out of every comparison (W. S. Gosset's half-drill strips, 1938).

A block is a rung. A variant that did not come through one has none of those above it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import TypeVar

from dbdyno.errors import BaselineFailed, UserError
from dbdyno.frozen import Frozen, level_shown
from dbdyno.records.record import Outcome, Record, over_for_good
from dbdyno.records.run import Run
from dbdyno.study import BASELINE, TRIALS_MAX, Arrangement, Study
from dbdyno.study.designs import size_of_study, variants_of
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Plan, Trial, Variant, phases_of, rung_of

T = TypeVar("T")


class Order(Frozen):
    """What orders every block of a run. Where it is not `mirrored`, each block has a draw of its own."""

    seed: int
    mirrored: bool = True

    @classmethod
    def of(cls, run: Run) -> Order:
        """A run keeps the order that it began with, because a trial's index names its place in its block."""
        return cls(seed=run.seed, mirrored=run.mirrored)

    def of_block(self, variants: tuple[Variant, ...], block: int) -> list[Variant]:
        """All variants, as the block runs them."""
        backwards = self.mirrored and block % 2 == 1
        order = _shuffled(variants, f"{self.seed} {block - backwards}")
        return order[::-1] if backwards else order

    def of_round(self, trials: Sequence[T], block: int, round: int) -> list[T]:
        """A block's trials, as the load goes round them; rounds come in pairs, as blocks do."""
        order = _shuffled(trials, f"{self.seed} {block} {round - round % 2}")
        return order[::-1] if round % 2 else order


def _shuffled(things: Sequence[T], seed: str) -> list[T]:
    """One draw: Fisher and Yates' shuffle in Durstenfeld's form.

    `random.shuffle` may change between versions of Python; the bits of its Mersenne Twister do not.
    """
    draw = random.Random(seed)
    order = list(things)
    for last in range(len(order) - 1, 0, -1):
        other = _below(draw, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def _below(draw: random.Random, bound: int) -> int:
    """A whole number of 0 to `bound` - 1, each as likely: draws until the bits are in range."""
    bits = bound.bit_length()
    while (number := draw.getrandbits(bits)) >= bound:
        pass
    return number


LeftOut = Callable[[Sequence[Record]], frozenset[str]]


def make_plan(study: Study, order: Order) -> Plan:
    """All trials of a study: the same study and order give the same plan, on every machine and Python.

    Raises UserError when there would be more than `TRIALS_MAX`.
    """
    require_few_enough(study)
    variants = variants_of(study)
    blocks = (block_of(study, variants, block, order) for block in range(study.blocks))
    return Plan(variants=variants, trials=tuple(chain.from_iterable(blocks)), seed=order.seed)


def require_few_enough(study: Study) -> None:
    """Raises UserError for a study of more than `TRIALS_MAX` trials, before any of them is made."""
    size = size_of_study(study)
    if size.trials > TRIALS_MAX:
        raise UserError(f"too many trials: {size.arithmetic}", f"at most {TRIALS_MAX:,} are allowed")


def block_of(study: Study, variants: tuple[Variant, ...], block: int, order: Order) -> tuple[Trial, ...]:
    """The trials of one block in their order. Trials are counted through all blocks."""
    phases = phases_of(study)
    return tuple(
        Trial(
            index=block * len(variants) + position,
            block=block,
            position=position,
            variant=variant,
            phases=phases,
        )
        for position, variant in enumerate(order.of_block(variants, block))
    )


def next_trials(
    study: Study,
    order: Order,
    records: Sequence[Record],
    left_out: LeftOut = lambda earlier: frozenset(),
    own: Sequence[int] = (),
) -> tuple[Trial, ...]:
    """What is still to be run of the block that has begun, or else the whole block after it. Empty when no
    block is left.

    `left_out` names the variants that have no trial in a block after the first, from the records of the
    blocks before it; those that were found inert have none either. Blocks follow one another, so that all
    before the last one begun are over.
    The first block halts after the baseline's trial, unless its trials run side by side: without a baseline
    the rest would compare nothing. A host of a fleet has blocks of its `own`, and these are their records.
    Raises BaselineFailed when the baseline came to no load there, or nothing of the first block was measured.
    """
    variants, own = variants_of(study), own or range(study.blocks)
    first = next(iter(own), 0)
    require_baseline(study, records, first)
    _require_hope(variants, records)
    # A run asks after each block, so nothing here looks at all records more often than it must.
    blocks = [record.block for record in records]
    begun = max(blocks, default=first)
    done = {one.trial for one, block in zip(records, blocks, strict=True) if block >= begun and one.whole}
    # A budget may have taken away the block that the records end with.
    place = own.index(begun) if begun in own else len(own)
    for block in own[place : place + 2]:
        trials = [trial for trial in block_of(study, variants, block, order) if trial.index not in done]
        if not trials:
            continue
        earlier = list(compress(records, (one < block for one in blocks)))
        over = left_out(earlier) | over_for_good(variants, earlier) if block != first else frozenset()
        if going_on := tuple(trial for trial in trials if trial.variant.name not in over):
            beside = study.arrangement is Arrangement.SIDE_BY_SIDE
            return going_on if block != first or beside else _halted_after_baseline(going_on)
    return ()


def ask(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """What a run of as many blocks as its study says is to do next: every variant in every block."""
    return next_trials(study, Order.of(run), records)


def _halted_after_baseline(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """The trials up to the baseline's; all of them where that is done."""
    halt = next((index for index, trial in enumerate(trials) if trial.variant.name == BASELINE), len(trials))
    return trials[: halt + 1]


def require_baseline(study: Study, records: Sequence[Record], first_block: int = 0) -> None:
    """Raises BaselineFailed where the baseline of the first block did not come as far as its load, and names
    the settings that its cause names."""
    first = next((one for one in records if one.block == first_block and one.variant == BASELINE), None)
    if first is None or first.phases or first.outcome is Outcome.MEASURED:
        return
    levels = {**study.settings, **first.levels}
    named = [f"{name} = {level_shown(level)}" for name, level in levels.items() if _names(first.cause, name)]
    who = f"the baseline, with {', '.join(named)}," if named else "the baseline"
    raise BaselineFailed(f"{who} could not be run: {first.cause}", first.remedy)


def _names(cause: str, factor: str) -> bool:
    """Whether a server's or a layer's words name this factor, in any spelling of its knob."""
    knob = re.escape(factor.partition(".")[2]).replace("_", "[-_]")
    return re.search(rf"(?<![\w-]){knob}(?![\w-])", cause) is not None


def _require_hope(variants: tuple[Variant, ...], records: Sequence[Record]) -> None:
    """Raises BaselineFailed where a whole block has no measured trial: the rest would fail the same way."""
    if len(records) != len(variants) or any(one.outcome is Outcome.MEASURED for one in records):
        return
    first = min(records, key=lambda record: record.trial)
    raise BaselineFailed(
        f"no trial of the first block could be measured; {first.variant}: {first.cause}", first.remedy
    )


def expected_duration_s(trials: int, study: Study, overhead_s: float) -> float:
    """Seconds that so many trials take: each one's phases, and `overhead_s` for the rest."""
    return trials * (sum(phase.takes_s for phase in phases_of(study)) + overhead_s)


def next_rung(soak: Soak, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
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


def soak_expected_s(soak: Soak, study: Study, overhead_s: float) -> float:
    """Seconds that all rungs take, with `overhead_s` for each trial beside its phases."""
    rungs = [rung_of(soak, study, rung) for rung in range(len(soak.clients))]
    each_s = sum(phase.takes_s for phases in rungs for phase in phases) + overhead_s * len(rungs)
    return each_s * len(variants_of(study))


def ask_of_reference(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """The baseline in the next block. Where it stands in its block is as a run of the whole study has it."""
    variants = variants_of(study)
    block = 1 + max((record.block for record in records), default=-1)
    if block >= study.blocks:
        return ()
    trials = block_of(study, variants, block, Order.of(run))
    return tuple(trial for trial in trials if trial.variant.name == variants[0].name)
