"""The nouns of what loads that followed one another showed."""

from __future__ import annotations

from dbdyno.analyse.found import RatioPosition
from dbdyno.frozen import Frozen, absent


class PhaseTold(Frozen):
    """The response of one phase under a variant: the geometric mean over its `blocks`, and the ratio to the
    baseline's, with an interval that holds together with those of all other phases and variants; None for the
    baseline and, of the interval, with a single block. `written_bytes_per_op` is what the server's processes
    sent towards storage, over the transactions of the phase."""

    phase: str
    variant: str
    value: float
    blocks: int
    written_bytes_per_op: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    position: RatioPosition | None = None


class PhasesCompared(Frozen):
    """All phases in their order, each under each variant. `behind` says where less was sent beside a phase
    than was asked for."""

    metric: str
    comparisons: int
    confidence: float
    phases: tuple[PhaseTold, ...]
    behind: tuple[str, ...] = absent(())
