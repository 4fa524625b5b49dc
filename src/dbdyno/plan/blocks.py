"""From a study to its trials: blocks of all variants, each in an order of its own.

The design is a randomised complete block design: every block holds every variant once, in an order drawn from
the study's seed (R. A. Fisher, The Design of Experiments, 1935). The block is the unit of inference.
"""

from __future__ import annotations

import random
from itertools import chain

from dbdyno.errors import UserError
from dbdyno.study import TRIALS_MAX, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Plan, Trial, Variant


def make_plan(study: Study) -> Plan:
    """All trials of a study: the same study and seed give the same plan, on every machine and Python.

    Raises UserError when there would be more than `TRIALS_MAX`.
    """
    require_few_enough(study)
    variants = variants_of(study)
    blocks = (block_of(variants, study.seed, block) for block in range(study.blocks))
    return Plan(variants=variants, trials=tuple(chain.from_iterable(blocks)), seed=study.seed)


def require_few_enough(study: Study) -> None:
    """Raises UserError for a study of more than `TRIALS_MAX` trials, before any of them is made."""
    size = study.size
    if size.trials > TRIALS_MAX:
        raise UserError(f"too many trials: {size.arithmetic}", f"at most {TRIALS_MAX:,} are allowed")


def block_of(variants: tuple[Variant, ...], seed: int, block: int) -> tuple[Trial, ...]:
    """The trials of one block in their order. Trials are counted through all blocks."""
    return tuple(
        Trial(index=block * len(variants) + position, block=block, position=position, variant=variant)
        for position, variant in enumerate(_shuffled(variants, seed, block))
    )


def expected_duration_s(trials: int, study: Study, overhead_s: float) -> float:
    """Seconds that so many trials take: each one's ramp, warm-up and measured part, and `overhead_s` for the
    rest."""
    workload = study.workload
    return trials * (workload.ramp_s + workload.warmup_s + workload.duration_s + overhead_s)


def _shuffled(variants: tuple[Variant, ...], seed: int, block: int) -> list[Variant]:
    """One block's order: Fisher and Yates' shuffle in Durstenfeld's form.

    `random.shuffle` may change between versions of Python; the bits of its Mersenne Twister do not.
    """
    draw = random.Random(f"{seed} {block}")
    order = list(variants)
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
