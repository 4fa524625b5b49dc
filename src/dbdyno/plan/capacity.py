"""The search for a capacity: which rate a trial tries next, and what its rates came to.

**What is asked.** Latencies and errors are judged over a step: so many seconds at one rate in open loop. Near
the capacity a step keeps the promise by chance, so the capacity is the rate at which one step does as often
as not. A longer step is a harder promise.

**The search** is probabilistic bisection: what is known of the capacity is a distribution over its logarithm,
each step is made at the median, and Bayes' rule takes in whether it kept the promise (M. Horstein, IEEE
Trans. Inform. Theory 9, 1963; R. Waeber, P. I. Frazier and S. G. Henderson, SIAM J. Control Optim. 51, 2013).
A plain bisection never comes back from one step that a stall of the host broke. Here a step lies with a
probability that grows towards the capacity, which is the logistic curve with lapses of psychometry (A. B.
Watson and D. G. Pelli, QUEST, Perception & Psychophysics 33, 1983). The capacity of a trial is the last
median.

**Where it begins.** The trial's first load is closed, and its throughput is what the clients can have at
most. The distribution spans a hundredth to four times that, evenly. One that favours likely rates finds them
sooner, and is drawn to its own edge: where it took nine in ten capacities to lie above 0.3 of that
throughput, intervals of 95 % held 57 to 69 % of the capacities at 0.3. Nor does it know earlier blocks: a
trial that began at their mean would stay near it, so that blocks would be alike by the search.

**The instrument stands still.** All variants have the same number of steps, of one length, in the same
turns: side by side each variant makes its step before any makes the next one, in an order that is drawn. The
rate alone is a variant's own. It follows from what that variant kept, so it is a part of what is measured. A
grid that all share would spend most steps far from each variant's capacity.

**The interval** is not that of the distribution, which trusts the curve. Each block gives one figure, and
intervals are over blocks, as with every response. `benches/capacity.py` simulates how often they are wrong,
and how many steps a fixed grid of rates needs to be as near.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache

from dbdyno.driver.tally import Tally
from dbdyno.errors import DynoError
from dbdyno.records.capacity import Capacity, TriedRate
from dbdyno.records.metrics import FAILED_SHARE, OBSERVED_ABOVE, RETRIES, SHARES_ABOVE, number_text
from dbdyno.study.nouns import Guard

LOWEST, HIGHEST = 0.01, 4.0
"""The span of what a capacity can be, in multiples of the throughput in closed loop."""
STEP = 0.01
"""How far apart the logarithms of neighbouring rates are."""
SLOPE = 0.04
"""How wide the band of rates is, as a logarithm, in which chance decides."""
LAPSE = 0.08
"""How often a step far from the capacity lies: the host stalled, or was lucky."""
DONE_SHARE_LEAST, WAIT_SHARE_MOST = 0.95, 0.05
"""What of the offered transactions a server does at least that keeps up, or else how much of a step half of
them may take."""
NEAR = 1.1
"""A rate up to so many times the capacity bears on it."""
RATE = "rate"
"""What is broken where transactions that were due were not done."""


def tried_rate(rate_per_s: float, tally: Tally, promise: Sequence[Guard]) -> TriedRate:
    """What a rate came to. A rate that the server does not keep up with breaks any promise: what waits in a
    growing queue at the end of the step has no latency that a longer one would not make longer."""
    seen = {_named(one): value_of(one.metric, tally) for one in promise}
    broke = [name for one in promise if not _holds(one, seen[name := _named(one)])]
    if falls_behind(tally):
        broke.append(RATE)
    return TriedRate(
        rate_per_s=rate_per_s,
        kept=not broke,
        broke=tuple(broke),
        seen={name: value for name, value in seen.items() if value is not None},
        by_driver=bool(tally.saturated),
    )


def falls_behind(tally: Tally) -> bool:
    """Whether the server does not keep up with a rate. In a short step the driver's own word comes too late,
    because what waits in a growing queue looks like what is honestly under way for so long. So a step in
    which less is done than is offered, while half of it waits for a good part of the step, is no kept one."""
    offered, waited_us = tally.open_loop, tally.latency_us.p50
    if offered is None or not offered.kept:
        return offered is not None
    waits = waited_us is None or waited_us > WAIT_SHARE_MOST * 1e6 * tally.duration_s
    return waits and offered.achieved_per_s < DONE_SHARE_LEAST * offered.offered_per_s


def value_of(metric: str, tally: Tally) -> float | None:
    """A metric of a promise: a share, or a latency in ms, however few transactions lie above it. None where
    nothing was done."""
    if metric == FAILED_SHARE:
        return tally.failed_share
    if metric == RETRIES:
        return tally.retries / tally.work if tally.work else None
    value: float | None = getattr(tally.latency_us, metric.removesuffix("_ms"))
    return None if value is None else value / 1000.0


def _named(one: Guard) -> str:
    """What the study calls the metric that it bounds."""
    return one.text.partition("<=")[0].strip()


def _holds(one: Guard, value: float | None) -> bool:
    assert one.bound is not None, "a promise has bounds"
    return value is not None and value <= one.bound


def next_rate(closed_per_s: float, tried: Sequence[TriedRate]) -> float:
    """Where the next step is made, after `closed_per_s` transactions per second in closed loop."""
    return closed_per_s * math.exp(_median(_known(closed_per_s, tried)))


def capacity_of(closed_per_s: float, tried: Sequence[TriedRate], promise: Sequence[Guard]) -> Capacity:
    """What a trial's rates came to. Raises DynoError where none of them kept the promise."""
    kept = [one for one in tried if one.kept]
    if not kept:
        raise _never_kept(tried, promise)
    highest = max(kept, key=lambda one: one.rate_per_s)
    if len(kept) == len(tried):
        why = f"all rates kept the promise, up to {number_text(highest.rate_per_s)} per second"
        return Capacity(per_s=highest.rate_per_s, at_least=True, why=why)
    per_s = next_rate(closed_per_s, tried)
    near = [one for one in tried if one.by_driver and not one.kept and one.rate_per_s <= NEAR * per_s]
    if near:
        rate = number_text(min(one.rate_per_s for one in near))
        why = f"at {rate} per second the driver had no CPU time left, so the promise broke by it"
        return Capacity(per_s=min(per_s, highest.rate_per_s), at_least=True, why=why)
    return Capacity(per_s=per_s)


def few_above(found: Capacity, step_s: float, promise: Sequence[Guard]) -> str:
    """Which percentile of the promise is not observed in a step at the capacity; empty where all are."""
    for one in promise:
        share = SHARES_ABOVE.get(one.metric.removesuffix("_ms"))
        above = found.per_s * step_s * (share or 1.0)
        if share is not None and above < OBSERVED_ABOVE:
            needed_s = math.ceil(OBSERVED_ABOVE / share / found.per_s)
            return (
                f"{one.metric} rests on {number_text(above)} transactions above it in a step of {step_s:g} s"
                f" at {number_text(found.per_s)} per second, and needs {OBSERVED_ABOVE}: {needed_s} s"
            )
    return ""


def _never_kept(tried: Sequence[TriedRate], promise: Sequence[Guard]) -> DynoError:
    lowest = min(tried, key=lambda one: one.rate_per_s)
    seen = ", ".join(f"{name} = {number_text(value)}" for name, value in lowest.seen.items())
    asked = ", ".join(one.text for one in promise)
    told = f"the promise ({asked}) held at none of {len(tried)} rates"
    at = f"at the lowest, {number_text(lowest.rate_per_s)} per second, {seen or 'nothing was answered'}"
    return DynoError(f"{told}; {at}", "promise less: the bounds stand in `promise` under [goal]")


@cache
def _places() -> tuple[float, ...]:
    """The logarithms of all rates over the throughput in closed loop."""
    low, high = math.log(LOWEST), math.log(HIGHEST)
    return tuple(low + STEP * index for index in range(round((high - low) / STEP) + 1))


def _known(closed_per_s: float, tried: Sequence[TriedRate]) -> tuple[float, ...]:
    """How likely each place is after the steps, up to a factor."""
    return _after(tuple((math.log(one.rate_per_s / closed_per_s), one.kept) for one in tried))


@lru_cache(maxsize=64)
def _after(steps: tuple[tuple[float, bool], ...]) -> tuple[float, ...]:
    """The same after steps at these places, each with whether it kept the promise. Those before the last one
    are known from when the last one was chosen."""
    if not steps:
        return (1.0,) * len(_places())
    at, kept = steps[-1]
    keeps = (LAPSE + (1.0 - 2.0 * LAPSE) / (1.0 + math.exp(_bounded(at - place))) for place in _places())
    shares = (share if kept else 1.0 - share for share in keeps)
    return tuple(weight * share for weight, share in zip(_after(steps[:-1]), shares, strict=True))


def _bounded(distance: float) -> float:
    """A distance in slopes, which the exponential function can take."""
    return min(50.0, max(-50.0, distance / SLOPE))


def _median(weights: Sequence[float]) -> float:
    half, below = sum(weights) / 2.0, 0.0
    for place, weight in zip(_places(), weights, strict=True):
        if below + weight >= half:
            return place + STEP * ((half - below) / weight - 0.5)
        below += weight
    raise AssertionError("half of the weights lie below their sum")
