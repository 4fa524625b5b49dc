"""What an analysis holds of noise; `floor.py`, `components.py` and `second.py` find it."""

from __future__ import annotations

from dbdyno.frozen import Frozen, absent


class Blocking(Frozen):
    """What comparing within blocks is worth: without blocks the same precision takes `efficiency` times as
    many trials. With its 95 % interval."""

    efficiency: float
    low: float
    high: float


class Floor(Frozen):
    """How far two runs of one variant differ here: by up to the share `difference`, with `confidence`.

    `log_sd` is the spread of the log ratio of two equal variants in one block, from the `twin`, or from what
    variants and blocks leave unexplained. `neighbours` is the correlation of the log ratios of blocks that
    follow one another, with the chance of one as high where they are independent, and its upper limit (95 %,
    one-sided): intervals take blocks for independent.
    """

    twin: bool
    blocks: int
    log_sd: float
    difference: float
    confidence: float
    blocking: Blocking
    neighbours: float
    neighbours_p: float
    neighbours_high: float


class Components(Frozen):
    """Spreads of the log speed of one server: of `starts` from trial to trial, whatever their length, with
    its 95 % interval, and of `pieces` within a trial. Pieces are slices, about `piece_s` long, or seconds.
    The mean of a trial spreads `alike` times as far as that of as many independent pieces would.
    """

    starts: float
    starts_low: float
    starts_high: float
    pieces: float
    alike: float = absent(1.0)
    piece_s: float
    sliced: bool
    blocks: int


class CostRatio(Frozen):
    """The ratio of a cost, candidate / baseline, with an interval that holds together with the others'."""

    variant: str
    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        return not self.low <= 1.0 <= self.high


class SecondResponse(Frozen):
    """The ratios of another metric, whose log ratios spread from block to block `spread_share` times as far
    as the response's (median of the candidates)."""

    metric: str
    spread_share: float
    ratios: tuple[CostRatio, ...]
