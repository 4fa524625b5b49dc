"""What was done to a server beside its load, and what became of the load meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from statistics import fmean, stdev

from dbdyno.driver.tally import Second, Tally
from dbdyno.frozen import Frozen, absent

CONFIDENCE = 0.95
"""Of the limits that the seconds before an act give for all seconds within it together."""
FULL_SHARE = 0.9
"""Of the speed before an act, what counts as full speed after it."""


NEARLY_S = 0.1
"""A second counts as one before an act that began so shortly before its end: to connect takes that."""


class LockWait(Frozen):
    """Who waited for whom, as the engine's own views of locks had it. `waiter` and `blocker` are names of
    acts, or statements without their values. It was seen in so many `looks`, in one of them with up to
    `sessions` that waited. Where the engine does not say who holds a lock, `inferred` says that the blocker
    follows from what it says of transactions."""

    waiter: str
    blocker: str
    lock: str
    looks: int
    sessions: int
    inferred: bool = absent(False)


class ActMeanwhile(Frozen):
    """An act beside the load. It began `began_s` after the measured part of the load, and took `took_s`;
    where it is not `done`, at least that, because the load was over and it was ended. `fault` says why it
    failed. A command took so much CPU time, with all processes that it waited for, and moved so many bytes
    from and towards storage. Who `blocked` whom was asked every `every_s`, in so many `looks`."""

    name: str
    text: str
    at_s: float
    began_s: float | None = None
    took_s: float = 0.0
    done: bool = False
    fault: str = absent("")
    cpu_s: float | None = absent(None)
    read_bytes: float | None = absent(None)
    written_bytes: float | None = absent(None)
    looks: int = absent(0)
    every_s: float = absent(0.0)
    blocked: tuple[LockWait, ...] = absent(())

    def after(self, ahead_s: float) -> ActMeanwhile:
        """The same, counted from a moment that lies so much earlier."""
        return self if self.began_s is None else self.but(began_s=round(self.began_s + ahead_s, 3))

    @property
    def ended_s(self) -> float:
        """Seconds after the measured part began."""
        return (self.began_s or 0.0) + self.took_s


class Dip(Frozen):
    """What became of the throughput while acts went on.

    The base is the mean of the `base_seconds` whole seconds of the measured part before the first act, which
    scatter by `spread` (a share of it). A share `depth` of it was gone in the worst second. It was below what
    the base lets expect for `length_s`, and for `silent_s` on end nothing was done. `lost_s` are seconds of
    the load as it was before, by which less was done in all. Nothing smaller than `depth_seen` and
    `lost_seen_s` can be told from the spread. `full_speed_s` is how long after the acts' end the load needed
    to its full speed; None where it did not come back to that.
    """

    base_per_s: float
    base_seconds: int
    spread: float
    seconds: int
    depth: float
    length_s: float
    silent_s: float
    lost_s: float
    depth_seen: float
    lost_seen_s: float
    full_speed_s: float | None
    p99_ms_before: float | None
    p99_ms_within: float | None

    @property
    def is_deep(self) -> bool:
        """Whether some second lies below what the base lets expect."""
        return self.depth > self.depth_seen

    @property
    def is_lost(self) -> bool:
        """Whether less was done in all than the base lets expect."""
        return self.lost_s > self.lost_seen_s

    @property
    def is_seen(self) -> bool:
        return self.is_deep or self.is_lost


def dip_of(tally: Tally, acts: Sequence[ActMeanwhile]) -> Dip | None:
    """What a load shows of the acts beside it; None where none began, or too few seconds lie before.

    The area between the base and what was done is the loss of M. Bruneau and others (Earthquake Spectra 19,
    2003). A second counts as part of a dip below the prediction limit of all seconds to come together, from
    the n seconds before: of their logarithms mean - t * s * sqrt(1 + 1/n), one-sided, with the confidence
    shared by Bonferroni (G. J. Hahn, Journal of Quality Technology 1, 1969). The sum of m seconds has the
    limit t * s * sqrt(m + m^2/n). Seconds as far above the base, in which a queue is worked off, count as the
    base. The highest percentile is also looked for in the second after, when those end that had waited.
    """
    begun = [act for act in acts if act.began_s is not None]
    counts = seconds_done(tally)
    first = int(min((act.began_s or 0.0 for act in begun), default=0.0) + NEARLY_S)
    before = counts[:first]
    if len(before) < 2 or fmean(before) <= 0.0:
        return None
    end_s = max(act.ended_s for act in begun)
    within = _within(counts, first, end_s, fmean(before))
    limits = _Limits(before, len(within))
    shares = [count / limits.base for count in within]
    low = [share < limits.low for share in shares]
    return Dip(
        base_per_s=limits.base,
        base_seconds=len(before),
        spread=limits.spread,
        seconds=len(within),
        depth=max((1.0 - share for share in shares), default=0.0),
        length_s=float(sum(low)),
        silent_s=float(longest(not count for count in within)),
        lost_s=sum(1.0 - (1.0 if share > limits.high else share) for share in shares),
        depth_seen=1.0 - limits.low,
        lost_seen_s=limits.all,
        full_speed_s=windows_to_full(counts[math.ceil(end_s) :], limits.base),
        p99_ms_before=_p99_ms(tally.series, range(first)),
        p99_ms_within=_p99_ms(tally.series, range(first, first + len(within) + 1)),
    )


class _Limits:
    """What seconds before let expect of so many to come, as shares of their mean: `low` and `high` for each,
    and what all together may lack."""

    def __init__(self, before: Sequence[float], seconds: int) -> None:
        # Here, because most records have no act.
        from scipy.special import stdtrit

        count = len(before)
        self.base, self.spread = fmean(before), stdev(before) / fmean(before)
        each, whole = (
            float(stdtrit(count - 1, 1.0 - (1.0 - CONFIDENCE) / share)) for share in (max(1, seconds), 1)
        )
        logs = [math.log(max(1.0, one) / self.base) for one in before]
        reach = each * stdev(logs) * math.sqrt(1.0 + 1.0 / count)
        # Of a steady rate that is one transaction more or less.
        self.low = min(1.0 - 1.0 / self.base, math.exp(fmean(logs) - reach))
        self.high = max(1.0 + 1.0 / self.base, math.exp(fmean(logs) + reach))
        self.all = max(1.0 / self.base, whole * self.spread * math.sqrt(seconds + seconds**2 / count))


def seconds_done(tally: Tally) -> list[float]:
    """The transactions of each whole second of the measured part, none where nothing was done."""
    counted = {point.second: float(point.operations) for point in tally.series}
    return [counted.get(second, 0.0) for second in range(math.floor(tally.duration_s))]


def _within(counts: Sequence[float], first: int, end_s: float, base: float) -> Sequence[float]:
    """The seconds from the first act on until all are over, with those after it in which the load is not back
    at full speed."""
    last = math.ceil(end_s)
    full = windows_to_full(counts[last:], base)
    return counts[first:] if full is None else counts[first : last + full - 1]


def longest(are: Iterable[bool]) -> int:
    """How many on end are true at most."""
    return max((sum(1 for _ in run) for holds, run in groupby(are) if holds), default=0)


def windows_to_full(counts: Sequence[float], before: float) -> int | None:
    """The number, from 1, of the first window that was nearly as fast as those `before` were; None where none
    was."""
    return next((number for number, count in enumerate(counts, 1) if count >= FULL_SHARE * before), None)


def _p99_ms(series: Iterable[Second], seconds: range) -> float | None:
    """The highest 99th percentile of any of these seconds."""
    return max(
        (one.p99_us / 1000.0 for one in series if one.second in seconds and one.operations), default=None
    )


Acts = Sequence[ActMeanwhile]


def _of_dip(read: Callable[[Dip], float | None]) -> Callable[[Tally, Acts], float | None]:
    def of_acts(tally: Tally, acts: Acts) -> float | None:
        dip = dip_of(tally, acts)
        return None if dip is None else read(dip)

    return of_acts


_AT_LEAST = "Where no dip is seen, the smallest that would have been."
OF_ACTS: tuple[tuple[str, str, str, str, Callable[[Tally, Acts], float | None]], ...] = (
    ("act_s", "time of the act", "s",
     "Time that the act beside the load took, of several the last one to begin; at least that, where the load"
     " was over before.",
     lambda tally, acts: acts[-1].took_s if acts and acts[-1].began_s is not None else None),
    ("dip_depth", "depth of the dip", "",
     "Share of the throughput before that was gone in the worst second from the first act on until the load"
     f" was back. {_AT_LEAST}",
     _of_dip(lambda dip: max(dip.depth, dip.depth_seen))),
    ("dip_s", "length of the dip", "s",
     "Seconds of the same time in which the throughput was below what the seconds before let expect, one"
     " where none was.",
     _of_dip(lambda dip: max(dip.length_s, 1.0))),
    ("dip_lost_s", "load lost in the dip", "s",
     "Seconds of the load as it was before by which less was done in that time: the area of the dip over the"
     f" throughput before. {_AT_LEAST}",
     _of_dip(lambda dip: max(dip.lost_s, dip.lost_seen_s))),
    ("dip_p99_ms", "99th percentile in the dip", "ms",
     "The highest 99th percentile latency of any second of that time.",
     _of_dip(lambda dip: dip.p99_ms_within)),
)  # fmt: skip
"""Metrics of acts beside a load: name, title, unit, definition, and how one is made."""
