"""The study: the question, declared. Read from TOML once, fully defaulted, frozen.

Only this module knows the file format. Every mistake in a file is found at once, with its line.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from dbdyno.engines.base import Reference
from dbdyno.record import Frozen, Level


class Design(StrEnum):
    """Which combinations of levels become variants."""

    ONE_AT_A_TIME = "one-at-a-time"
    LADDER = "ladder"
    FACTORIAL = "factorial"
    LIST = "list"


class Factor(Frozen):
    """What is varied. `name` is `layer.knob`; the first level is the baseline's."""

    name: str
    levels: tuple[Level, ...]

    @property
    def layer(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def knob(self) -> str:
        return self.name.split(".", 1)[1]

    @property
    def baseline(self) -> Level:
        return self.levels[0]


class Workload(Frozen):
    """The load of every trial. `options` are the workload's own, as the driver lists them."""

    name: str
    clients: int = 1
    threads: int = 0
    warmup_s: float = 5.0
    duration_s: float = 20.0
    rate_per_s: float | None = None
    arrivals: str = "poisson"
    options: dict[str, Level] = Field(default_factory=dict)


class Guard(Frozen):
    """A condition that a variant must keep to count: `invariants`, or a metric against the baseline (`p99_ms <= 1.2x`)
    or an absolute bound (`p99_ms <= 50`)."""

    text: str
    metric: str
    bound: float | None = None
    relative: bool = False
    at_most: bool = True


class Goal(Frozen):
    """What is asked of the variants. `margin` is a share: 0.02 means closer than 2 % counts as no effect.

    `confidence` is that of all intervals together, after the correction for the number of comparisons.
    """

    response: str = "throughput"
    margin: float = 0.02
    confidence: float = 0.95
    guards: tuple[Guard, ...] = (Guard(text="invariants", metric="invariants"),)


class Study(Frozen):
    """A study as read. `settings` hold for every variant (fixed levels, by factor name); `variants` only for `list`."""

    title: str
    engine: Reference
    design: Design = Design.ONE_AT_A_TIME
    blocks: int = 6
    seed: int = 1
    aa: bool = False
    workload: Workload
    settings: dict[str, Level] = Field(default_factory=dict)
    factors: tuple[Factor, ...]
    variants: tuple[tuple[str, dict[str, Level]], ...] = ()
    goal: Goal = Goal()
    path: str = ""
    text: str = ""
    digest: str = ""
