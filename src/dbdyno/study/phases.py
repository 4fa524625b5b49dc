"""The phases of a trial: loads that follow one another, each observed and checked by itself."""

from __future__ import annotations

from dbdyno.frozen import Frozen
from dbdyno.study.nouns import Study


class Phase(Frozen):
    """One stretch of load: its clients come within `ramp_s`, and the first `warmup_s` are not measured."""

    name: str
    ramp_s: float = 0.0
    warmup_s: float = 0.0
    duration_s: float

    @property
    def takes_s(self) -> float:
        return self.ramp_s + self.warmup_s + self.duration_s


def phases_of(study: Study) -> tuple[Phase, ...]:
    """The phases of every trial of a study: its load, once."""
    load = study.workload
    return (Phase(name="load", ramp_s=load.ramp_s, warmup_s=load.warmup_s, duration_s=load.duration_s),)
