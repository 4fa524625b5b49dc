"""The phases of a trial: loads that follow one another, each observed and checked by itself."""

from __future__ import annotations

from dbdyno.frozen import Frozen
from dbdyno.study.nouns import SLICE_S, Arrangement, Study

SETTLE_S = 0.1
"""How long the load runs before a slice is measured: the server's caches and the CPUs' are those of another
server's slice until then."""


class Phase(Frozen):
    """One stretch of load: its clients come within `ramp_s`, and the first `warmup_s` are not measured.

    With `slices` the rest is measured in so many pieces, and the load waits before each of them.
    """

    name: str
    ramp_s: float = 0.0
    warmup_s: float = 0.0
    duration_s: float
    slices: int | None = None

    @property
    def settle_s(self) -> float:
        """Before each slice."""
        return SETTLE_S if self.slices else 0.0

    @property
    def stretches_s(self) -> tuple[float, ...]:
        """Each time that the load is on the server: once, or for the warm-up and then for each slice."""
        if not self.slices:
            return (self.takes_s,)
        slice_s = self.settle_s + self.duration_s / self.slices
        return (self.ramp_s + self.warmup_s, *[slice_s] * self.slices)

    @property
    def takes_s(self) -> float:
        return self.ramp_s + self.warmup_s + self.duration_s + (self.slices or 0) * self.settle_s


COUNTED = (Phase(name="counted", duration_s=0.0),)
"""The phases of a trial whose work is counted: it takes as long as its transactions take."""


def phases_of(study: Study) -> tuple[Phase, ...]:
    """The phases of every trial of a study: its load, once."""
    load = study.workload
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    return (
        Phase(
            name="load",
            ramp_s=load.ramp_s,
            warmup_s=load.warmup_s,
            duration_s=load.duration_s,
            slices=_slices(load.duration_s, study.slice_s or SLICE_S) if beside else None,
        ),
    )


def _slices(duration_s: float, slice_s: float) -> int:
    """An even number, because every second round runs the order of the one before it backwards."""
    return 2 * max(1, round(duration_s / slice_s / 2))
