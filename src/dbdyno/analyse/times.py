"""What an analysis says of time: how a trial's speed went on, where an operation's time went, and a trial's.
Facts only, like `model.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import Field, WrapValidator

from dbdyno.frozen import Frozen

T = TypeVar("T")


class ReadAgain(Sequence[T]):
    """What is made when it is asked for, because all together would fill memory."""


def _as_they_are(given: Any, validated: Callable[[Any], Any]) -> Any:
    return given if isinstance(given, ReadAgain) else validated(given)


KEPT_LAZY = WrapValidator(_as_they_are)
"""For a field that may hold such a sequence: nothing is made of it to validate it."""


class Segment(Frozen):
    """A stretch of seconds at one level: `[start, stop)` in seconds of the series, level in operations per
    second.
    """

    start: int
    stop: int
    level: float


class Steady(Frozen):
    """Where a trial's throughput settled, from its per-second series.

    Seconds count from the start of the measured part, as in the series: warm-up seconds are negative.
    `settled_at` is the first second of the steady state. `share` is the part of the measured seconds that it
    covers.
    """

    settled_at: int
    share: float
    settled: bool
    warmup_enough: bool
    segments: tuple[Segment, ...]


class Series(Frozen):
    """Operations per second, `width_s` seconds to a point, which may be less than one; seconds count from
    the start of the measured part.
    """

    width_s: int | float
    seconds: tuple[int | float, ...]
    operations_per_s: tuple[float, ...]


class Estimate(Frozen):
    """An arithmetic mean over trials with its t interval; a single trial gives none."""

    name: str
    mean: float
    low: float | None = None
    high: float | None = None
    trials: int


class TimeSplit(Frozen):
    """The time of one operation, in microseconds, and its parts (`analyse/split.py`), which add up to it.

    `beyond_us` is how much the parts come to more than the whole; above 0 there is no remainder. `missing`
    are parts that were not read and lie in the remainder. `hardware` are facts of the CPU's counters,
    `engine` the engine's own counters per operation; `uncounted` says why a counter of the CPU has no figure.
    """

    variant: str
    trials: int
    whole: Estimate
    parts: tuple[Estimate, ...]
    beyond_us: float = 0.0
    missing: tuple[str, ...] = ()
    hardware: tuple[Estimate, ...] = ()
    engine: tuple[Estimate, ...] = ()
    uncounted: dict[str, str] = Field(default_factory=dict)

    def share(self, part: Estimate) -> float:
        """A part over the whole."""
        return part.mean / self.whole.mean


class RequestPart(Frozen):
    """One part of the time of an operation that passes through an application: microseconds, and how many
    more than with the baseline, paired by block. There is no `more_us` of the baseline itself, nor without a
    block in which both were measured."""

    us: Estimate
    more_us: Estimate | None = None


class RequestTimes(Frozen):
    """Where an operation's time goes that passes through an application (`analyse/request.py`): `parts` are
    the application, the database and waiting, which add up to the whole. `requests_per_op` counts the
    requests of all operations, over those that ended well; so does `errors_per_op`."""

    variant: str
    trials: int
    requests_per_op: float
    errors_per_op: float
    whole: RequestPart
    parts: tuple[RequestPart, ...]

    def share(self, part: RequestPart) -> float:
        """A part over the whole."""
        return part.us.mean / self.whole.us.mean


class StatementTime(Frozen):
    """One kind of statement, by its text without values: how many a transaction has, and the microseconds of
    a transaction that its client waited for them. `errors` counts those that failed in all trials."""

    text: str
    per_op: float
    us_per_op: Estimate
    errors: int


class StatementTimes(Frozen):
    """The kinds of statements of one variant, those that took the most time first."""

    variant: str
    trials: int
    kinds: tuple[StatementTime, ...]


class StageTime(Frozen):
    """Seconds that one stage took over the measured trials, and its share of their wall time. `load` is the
    warm-up and the measured part, which the stage `drive` then does not hold."""

    name: str
    median_s: float
    longest_s: float
    share: float


class Overhead(Frozen):
    """What the measured trials' wall time went into. `overhead_s` is the median of what a trial took beside
    its load, `overhead_share` that part of all trials' wall time."""

    trials: int
    stages: tuple[StageTime, ...]
    trial_s: float
    overhead_s: float
    overhead_share: float


class Condition(Frozen):
    """What one metric of the host was in the measured parts of the trials."""

    metric: str
    trials: int
    median: float
    lowest: float
    highest: float
