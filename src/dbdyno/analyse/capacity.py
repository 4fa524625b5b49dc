"""What variants take under a promise: their capacities, and how latencies grow with the rate.

**The knee** is where the 99th percentile begins to grow faster: the join of two lines through its logarithm
over that of the rate, which leave the least sum of squares (D. J. Hudson, JASA 61, 1966). There is none where
the second line is not steeper, or fewer than `RATES_LEAST` rates have a percentile.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dbdyno.frozen import Frozen, absent
from dbdyno.records.metrics import latency_ms, median_of
from dbdyno.records.record import PhaseRecord, Record

BAND = 0.05
"""Rates whose logarithms differ by less than this are told as one."""
RATES_LEAST = 6
STEEPER = 1.0
"""By how much the exponent of the growth must rise at a knee: below it, a percentile grows no faster than by
the square where it was even."""
POINTS = ("p50", "p99", "p99_9")


class RateTold(Frozen):
    """The steps at about one rate: how many there were, how many kept the promise, and medians of latencies
    in ms. A percentile above which too few transactions lie is None."""

    rate_per_s: float
    steps: int
    kept: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None


class CapacityTold(Frozen):
    """What a variant takes: the geometric mean over its blocks with its interval. In `at_least` of its
    `blocks` no rate was found that the server does not keep, so that the capacity is higher. `broke` counts
    the steps by what of the promise they broke. `took_s` is what all its trials took. At the capacity one
    unit of money buys `per_money` transactions; None where no price is known."""

    variant: str
    per_s: float
    low: float
    high: float
    blocks: int
    at_least: int = absent(0)
    broke: dict[str, int]
    knee_per_s: float | None = None
    rates: tuple[RateTold, ...]
    took_s: float
    per_money: float | None = absent(None)


class Capacities(Frozen):
    """The capacities of all variants that have one, for one promise, in steps of `step_s`."""

    promise: tuple[str, ...]
    step_s: float
    price_per_hour: float | None = absent(None)
    variants: tuple[CapacityTold, ...]


def steps_tried(records: Iterable[Record]) -> Iterator[PhaseRecord]:
    """The steps of all trials."""
    for record in records:
        yield from (phase for phase in record.phases if phase.tried is not None)


def broken_by(steps: Iterable[PhaseRecord]) -> dict[str, int]:
    """How many steps broke each part of the promise, the most frequent first."""
    found = Counter(name for step in steps if step.tried for name in step.tried.broke)
    return dict(found.most_common())


def rates_told(steps: Iterable[PhaseRecord]) -> tuple[RateTold, ...]:
    """The steps by their rates, in rising order."""
    bands: dict[int, list[PhaseRecord]] = {}
    for step in steps:
        assert step.tried is not None, "a step has tried a rate"
        bands.setdefault(round(math.log(step.tried.rate_per_s) / BAND), []).append(step)
    return tuple(_told(bands[band]) for band in sorted(bands))


def _told(steps: Sequence[PhaseRecord]) -> RateTold:
    rates = [step.tried.rate_per_s for step in steps if step.tried]
    latencies = [step.tally.latency_us for step in steps if step.tally is not None]
    medians = {f"{point}_ms": median_of(latency_ms(one, point) for one in latencies) for point in POINTS}
    return RateTold(
        rate_per_s=math.exp(math.fsum(map(math.log, rates)) / len(rates)),
        steps=len(steps),
        kept=sum(step.tried.kept for step in steps if step.tried),
        **medians,
    )


def knee_per_s(rates: Sequence[RateTold]) -> float | None:
    """The rate at which the 99th percentile begins to grow faster; None where it does not."""
    known = [(math.log(one.rate_per_s), math.log(one.p99_ms)) for one in rates if one.p99_ms]
    if len(known) < RATES_LEAST:
        return None
    places, logs = np.array(known).T
    # Each line has two rates of its own at least, beside the one that both share.
    found = min((_two_lines(places, logs, join) for join in places[2:-2]), key=lambda fit: fit[0])
    return math.exp(found[2]) if found[1] >= STEEPER else None


def _two_lines(
    places: npt.NDArray[np.float64], logs: npt.NDArray[np.float64], join: float
) -> tuple[float, float, float]:
    """What two lines that meet at a place leave: the sum of squares, by how much the second is steeper, and
    the place."""
    terms = np.stack((np.ones_like(places), places - join, np.maximum(0.0, places - join)), axis=1)
    fitted = np.linalg.lstsq(terms, logs, rcond=None)[0]
    left = logs - terms @ fitted
    return float(left @ left), float(fitted[2]), float(join)
