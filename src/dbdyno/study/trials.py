"""What a study is carried out as: variants, their trials, and the plan that puts these in order."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.frozen import Frozen, Level, absent
from dbdyno.study.nouns import TRIALS_MAX
from dbdyno.study.phases import COUNTED, Phase

NO_BLOCK = -1
"""In place of a block's number: what is counted, work or losses, is compared with no block."""
COUNTED_FROM, RESTARTS_FROM = TRIALS_MAX, 2 * TRIALS_MAX
"""The indices of trials beside the blocks begin where those of blocks never come, because blocks may still be
added."""


class Variant(Frozen):
    """What is compared: a level for every factor. The first variant of a plan is the baseline.

    `name` is unique in the plan: `baseline`, or the levels that differ from the baseline's
    (`config.innodb_buffer_pool_size=1G`), or the name a `list` design gives. `twin` marks a copy of the
    baseline; one that `shares` counts with it when candidates are compared, that of an A/A study does not.
    A `placebo` has the baseline's code at other addresses.
    """

    name: str
    levels: dict[str, Level]
    twin: bool = False
    shares: bool = False
    placebo: bool = absent(False)

    @property
    def candidate(self) -> bool:
        """Whether it is compared with the baseline for a verdict, if it is not the baseline."""
        return not (self.twin or self.placebo)


class Purpose(StrEnum):
    """What a block of a search is for, in the order in which they come."""

    SEARCH = "search"
    CONFIRMATION = "confirmation"
    ELIMINATION = "elimination"
    STARTS = "starts"


class Trial(Frozen):
    """One variant in one block. `index` counts trials from 0 in the order in which they run; `phases` follow
    one another on one server. A trial of no block has its work counted, or its engine restarted. The trials
    of a search say what their block is for."""

    index: int
    block: int
    position: int
    variant: Variant
    phases: tuple[Phase, ...]
    purpose: Purpose | None = absent(None)

    @property
    def counted(self) -> bool:
        """Whether its work is counted beside the timed blocks."""
        return self.phases == COUNTED

    @property
    def restarts(self) -> bool:
        """Whether its engine is restarted beside the timed blocks."""
        return self.index >= RESTARTS_FROM

    @property
    def of_no_block(self) -> bool:
        return self.block == NO_BLOCK


class Plan(Frozen):
    """The trials of a study in their order. `seed` is the one that drew the order."""

    variants: tuple[Variant, ...]
    trials: tuple[Trial, ...]
    seed: int
