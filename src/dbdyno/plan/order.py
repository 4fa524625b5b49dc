"""In which order a block runs its variants.

Blocks come in pairs: the first of a pair has an order drawn from the seed, the second runs it backwards. So
over a pair every variant has the same mean position, and of each two variants each comes first once: what
drifts evenly with time cancels out of every comparison (W. S. Gosset's half-drill strips, 1938).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from dbdyno.frozen import Frozen
from dbdyno.records.run import Run
from dbdyno.study.trials import Variant

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
