"""A soak: whether a setup stands, rung by rung, and what of it drifts.

A drift is the slope of a gauge under the sustained load (`drift.py`) less that of a control: the same server
with as many connections that ask nothing. What grows with the transactions is judged along them, so that a
load which slows down hides no growth. Where other clients disturb the load, the control is the sustained
load itself, and what rises there only as high as that load took it may be filling up again: it is no drift.
What falls is no reason to expect growth, so such a control counts as level. The interval of the
difference is made of those of the two slopes (G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008). A
variant is held against the baseline on the same rung as well, by the million of its transactions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from statistics import median

import numpy as np
from pydantic import Field

from dbdyno.analyse.quantiles import confidence_each
from dbdyno.analyse.steady import (
    Rate,
    Slope,
    Standing,
    Values,
    room_of,
    settles_s,
    slope_of,
    standing_beside,
    standing_under_load,
)
from dbdyno.driver.tally import Tally
from dbdyno.frozen import Frozen, absent
from dbdyno.records import metrics
from dbdyno.records.metrics import CACHE, GAUGES, P99, SHARED
from dbdyno.records.record import Doubt, Guested, Limit, Outcome, PhaseRecord, Record, Recovery, Watched
from dbdyno.records.run import SoakRun
from dbdyno.study import BASELINE, Study
from dbdyno.study.designs import size_of_study
from dbdyno.study.soak import Disturbance, Soak
from dbdyno.study.trials import CONTROL, SUSTAINED

MILLION, THOUSAND = 1e6, 1e3
COME_AND_GO = (Disturbance.CHURN.value, Disturbance.KILLED.value)
"""Guests who open connections all the time."""
FILLED_BY: Mapping[str, tuple[str, ...]] = {"resident_bytes": (CACHE, SHARED), "private_bytes": (CACHE,)}
"""Gauges that grow while memory of a fixed size fills, and the gauges of that."""
POINTS_SHOWN = 300
"""Of a curve in a figure."""


class SoakVerdict(StrEnum):
    """What may be said of a rung, the worst first. `OPEN`: of a gauge nobody knows yet."""

    BROKEN = "broken"
    FAILED = "failed"
    BLOCKED = "blocked"
    DRIFTS = "drifts"
    OPEN = "open"
    STANDS = "stands"


class Drift(Frozen):
    """One gauge in a phase of a rung. `slope` is as measured. `per_s` is that less the control's, where there
    is one; `per_million` is the same by transactions, and `per_thousand` by connections, where others came
    and went. `beyond_baseline` is what of `per_million` the baseline has not on the same rung. `hours` is how
    long a rise takes from the last level to the limit. `room` is by how much it may grow. `settles_s` is how
    long a load is likely to settle what is open."""

    gauge: str
    phase: str
    standing: Standing
    slope: Slope
    control: Slope | None
    per_s: Rate
    per_million: Rate | None
    per_thousand: Rate | None = None
    beyond_baseline: Rate | None = None
    limit: Limit | None = None
    hours: float | None = None
    room: float = math.inf
    settles_s: float | None = None

    @property
    def open(self) -> bool:
        """Whether it is unknown if a fault grows here. Beside others the load is too short for a bound."""
        standings = OPEN if self.phase == SUSTAINED else OPEN_BESIDE
        return self.fault and self.standing in standings

    @property
    def fault(self) -> bool:
        """Whether a rise of this gauge speaks against the setup."""
        return GAUGES[self.gauge].fault


OPEN = frozenset((Standing.UNSURE, Standing.FILLING, Standing.EARLY, Standing.BRIEF))
OPEN_BESIDE = frozenset((Standing.FILLING, Standing.EARLY))


class Curve(Frozen):
    """A gauge over the phases of a rung: seconds since the rung began, and the values then."""

    gauge: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


class PhaseSeen(Frozen):
    """One phase of a rung. There is no throughput where it rested, or where something was done to the
    server. `broken` is what speaks against the setup: checks that did not hold, and a loss that its settings
    do not permit. `log` holds the doubtful lines of the server's log."""

    name: str
    clients: int
    began_s: float
    operations: int = 0
    throughput_per_s: float | None = None
    p99_ms: float | None = None
    errors: dict[str, int] = Field(default_factory=dict)
    clients_lost: int = 0
    broken: tuple[str, ...] = ()
    log: str = ""
    guests: tuple[Guested, ...] = ()
    recovery: Recovery | None = None


class Rung(Frozen):
    """One variant with so many clients. `cause` and `remedy` are those of a rung that did not end well.
    `unjudged` gauges were watched, and read too rarely for a slope."""

    variant: str
    clients: int
    verdict: SoakVerdict
    cause: str
    remedy: str
    took_s: float
    phases: tuple[PhaseSeen, ...]
    drifts: tuple[Drift, ...]
    unjudged: tuple[str, ...] = ()
    curves: tuple[Curve, ...]

    @property
    def operations(self) -> int:
        return sum(phase.operations for phase in self.phases)


class SoakResult(Frozen):
    """A soak as far as it went. `rungs_left` are those that have no trial: they are to come, or left out
    above one that a variant did not come through. All intervals hold together with `confidence`. `versions`
    are those that servers answered with, which of a build need not be that of the installed engine."""

    title: str
    run: SoakRun
    verdict: SoakVerdict
    confidence: float
    rungs: tuple[Rung, ...]
    rungs_left: int
    versions: tuple[str, ...] = absent(())


def soaked(study: Study, run: SoakRun, records: Sequence[Record]) -> SoakResult:
    """What a soak's records say."""
    each = confidence_each(study.goal.confidence, sum(map(_judged, records)))
    whole = sorted(records, key=lambda record: record.trial)
    grown = whole if run.soak.tells_growth else ()
    drifts = {record.trial: () for record in whole} | {
        record.trial: _drifts(record, each, run.soak) for record in grown
    }
    at_baseline = {record.block: drifts[record.trial] for record in whole if record.variant == BASELINE}
    rungs = tuple(
        _rung(record, run.soak, _beyond(drifts[record.trial], record, at_baseline)) for record in whole
    )
    worst = min((rung.verdict for rung in rungs), key=list(SoakVerdict).index, default=SoakVerdict.OPEN)
    return SoakResult(
        title=study.title,
        run=run,
        verdict=worst,
        confidence=study.goal.confidence,
        rungs=rungs,
        rungs_left=size_of_study(study).trials - len(rungs),
        versions=tuple(sorted({record.engine_version for record in whole if record.engine_version})),
    )


def _phase(record: Record, name: str) -> PhaseRecord | None:
    return next((phase for phase in record.phases if phase.name == name), None)


def _judged(record: Record) -> int:
    """How many slopes a rung may have."""
    return sum(len(phase.watched.series) + 1 for phase in record.phases if phase.watched and phase.tally)


def _drifts(record: Record, confidence: float, soak: Soak) -> tuple[Drift, ...]:
    """The drift of each gauge whose series is long enough: under the sustained load, and beyond that where
    others were there."""
    sustained, control = _phase(record, SUSTAINED), _phase(record, CONTROL)
    if sustained is None or sustained.tally is None:
        return ()
    at_rest = _slopes(_measured(control), confidence) if control else {}
    alone = _measured(sustained)
    loaded = _slopes(alone, confidence)
    found = [_drift(gauge, slope, at_rest.get(gauge), sustained, soak) for gauge, slope in loaded.items()]
    reached = {gauge: median(values) for gauge, (_, values) in alone.items()}
    for phase in filter(_disturbed, record.phases):
        beside = _measured(phase)
        for gauge, slope in _slopes(beside, confidence).items():
            within = max(beside[gauge][1]) <= reached.get(gauge, -math.inf)
            found.append(_drift(gauge, slope, loaded.get(gauge), phase, soak, within))
    return tuple(found)


def _disturbed(phase: PhaseRecord) -> bool:
    """Whether clients misbehaved beside the load. Another workload fills caches with data of its own."""
    names = {guest.name for guest in phase.guests}
    return phase.tally is not None and bool(names) and names <= set(Disturbance)


def _slopes(measured: Mapping[str, Series], confidence: float) -> dict[str, Slope]:
    """The slope of each gauge whose series is long enough."""
    made = {
        gauge: slope_of(values, interval_s, confidence) for gauge, (interval_s, values) in measured.items()
    }
    return {gauge: slope for gauge, slope in made.items() if slope is not None}


def _measured(phase: PhaseRecord) -> dict[str, Series]:
    """Each gauge in the measured part of a phase's load, or in all of its rest."""
    windows = phase.tally.windows if phase.tally else ((-math.inf, math.inf),)
    return dict(_series(phase, *windows[-1]))


Series = tuple[float, list[float]]
"""An interval in seconds, and a value in each."""


def _series(phase: PhaseRecord, start_unix_s: float, end_unix_s: float) -> Iterator[tuple[str, Series]]:
    """Each gauge between two moments."""
    watched = phase.watched
    for gauge in watched.series if watched else ():
        tally = phase.tally if GAUGES[gauge].counted else None
        if watched and (series := _even(watched, gauge, start_unix_s, end_unix_s, tally)) is not None:
            yield gauge, series
    seconds = phase.tally.series if phase.tally else ()
    latencies = [point.p99_us for point in seconds if point.phase == "measured" and point.operations]
    if latencies:
        yield P99, (1.0, latencies)


def _without_filling(watched: Watched, gauge: str) -> Sequence[float | None]:
    """The values of a gauge. Those of memory are as if what has a fixed size had been from the start as full
    as it became: memory that was once touched stays with the server."""
    values: Sequence[float | None] = watched.series.get(gauge, ())
    for name in FILLED_BY.get(gauge, ()):
        filled = watched.series.get(name, ())
        values = _as_if_full(values, filled) if filled else values
    return values


def _as_if_full(values: Sequence[float | None], filled: Sequence[float | None]) -> list[float | None]:
    most = list(accumulate((held or 0.0 for held in filled), max))
    return [
        None if value is None or held is None else value + most[-1] - full
        for value, held, full in zip(values, filled, most, strict=True)
    ]


def _even(
    watched: Watched, gauge: str, start_unix_s: float, end_unix_s: float, tally: Tally | None
) -> Series | None:
    """A gauge at even times of a load, of as many as were read between two moments; None with fewer than
    two."""
    points = [
        (watched.started_unix_s + second, value)
        for second, value in zip(watched.seconds, _without_filling(watched, gauge), strict=False)
        if value is not None and start_unix_s <= watched.started_unix_s + second <= end_unix_s
    ]
    if len(points) < 2:
        return None
    unix_s, values = map(np.asarray, zip(*points, strict=True))
    seconds = _paced(unix_s - start_unix_s, tally) if tally else unix_s - unix_s[0]
    if seconds[-1] <= seconds[0]:
        return None
    even = np.linspace(seconds[0], seconds[-1], len(seconds))
    return float(even[1] - even[0]), np.interp(even, seconds, values).tolist()


def _paced(seconds: Values, tally: Tally) -> Values:
    """Moments of a load, in seconds since it was first measured, as if all its transactions had followed one
    another evenly. What grows by the transaction then grows evenly as well, though others take the CPU for a
    while."""
    counts = [second.operations for second in tally.series if second.phase == "measured"]
    if not any(counts):
        return seconds
    done = np.cumsum([0, *counts])
    ends = np.minimum(np.arange(len(done)), tally.duration_s)
    paced: Values = np.interp(seconds, ends, done * (tally.duration_s / done[-1]))
    return paced


def _drift(
    gauge: str, slope: Slope, control: Slope | None, phase: PhaseRecord, soak: Soak, within: bool = False
) -> Drift:
    """One gauge in a phase, where it stayed `within` what the load alone had reached or went beyond it."""
    per_s = _rate(slope) if control is None else _rate(slope).less(_rate(control).above_zero())
    limit = phase.watched.limits.get(gauge) if phase.watched else None
    room = room_of(gauge, slope, limit, soak)
    if phase.name == SUSTAINED:
        standing = standing_under_load(gauge, per_s, slope, room, soak)
    else:
        standing = standing_beside(gauge, per_s, slope, room, within)
    hours = None
    if limit is not None and standing is Standing.RISING:
        # What the control has as well fills the rest of the room, too.
        hours = max(limit.most - slope.last, 0.0) / slope.per_s / 3600.0
    counted, tally = GAUGES[gauge].counted, phase.tally
    operations = tally.work if tally else 0.0
    came = sum(guest.rounds * guest.clients for guest in phase.guests if guest.name in COME_AND_GO)
    time_s = tally.duration_s if tally else 0.0
    drift = Drift(
        gauge=gauge,
        phase=phase.name,
        standing=standing,
        slope=slope,
        control=control,
        per_s=per_s,
        per_million=per_s.times(MILLION * time_s / operations) if operations and counted else None,
        per_thousand=per_s.times(THOUSAND * time_s / came) if came and counted else None,
        limit=limit,
        hours=hours,
        room=room,
    )
    if not drift.open or phase.name != SUSTAINED:
        return drift
    return drift.but(settles_s=settles_s(gauge, standing, slope, room, soak))


def _rate(slope: Slope) -> Rate:
    return Rate(value=slope.per_s, low=slope.low, high=slope.high)


def _beyond(
    drifts: Iterable[Drift], record: Record, at_baseline: dict[int, tuple[Drift, ...]]
) -> tuple[Drift, ...]:
    """The drifts of a variant, held against those of the baseline on the same rung."""
    if record.variant == BASELINE:
        return tuple(drifts)
    there = at_baseline.get(record.block, ())
    baseline = {(one.phase, one.gauge): one.per_million for one in there}
    return tuple(
        one.but(beyond_baseline=one.per_million.less(other))
        if one.per_million is not None and (other := baseline.get((one.phase, one.gauge))) is not None
        else one
        for one in drifts
    )


OF_OUTCOME = {
    Outcome.BROKEN: SoakVerdict.BROKEN,
    Outcome.FAILED: SoakVerdict.FAILED,
    Outcome.BLOCKED: SoakVerdict.BLOCKED,
    Outcome.INERT: SoakVerdict.BLOCKED,
}


def _rung(record: Record, soak: Soak, drifts: tuple[Drift, ...]) -> Rung:
    clients = soak.clients[record.block]
    unjudged = tuple(_unjudged(record, drifts)) if soak.tells_growth else ()
    whole = record.whole and not unjudged
    passed = _verdict(drifts, whole) if soak.tells_growth else _came_back(record)
    return Rung(
        variant=record.variant,
        clients=clients,
        verdict=OF_OUTCOME.get(record.outcome) or passed,
        cause=record.cause,
        remedy=record.remedy,
        took_s=record.took_s,
        phases=tuple(_seen(phase, clients, record.started_unix_s) for phase in record.phases),
        drifts=drifts,
        unjudged=unjudged,
        curves=tuple(_curves(record)),
    )


def _unjudged(record: Record, drifts: Sequence[Drift]) -> Iterator[str]:
    """The gauges whose rise would speak against the setup, and of which nothing is known under the sustained
    load."""
    sustained = _phase(record, SUSTAINED)
    if sustained is None or sustained.tally is None or sustained.watched is None:
        return
    judged = {drift.gauge for drift in drifts if drift.phase == SUSTAINED}
    for gauge in sustained.watched.series:
        if gauge not in judged and GAUGES[gauge].fault:
            yield gauge


def _verdict(drifts: Sequence[Drift], whole: bool) -> SoakVerdict:
    """Of a rung whose phases all went well, and of which all is known where it is `whole`."""
    faults = [one for one in drifts if one.fault]
    if any(one.standing is Standing.RISING for one in faults):
        return SoakVerdict.DRIFTS
    known = any(one.phase == SUSTAINED for one in faults) and not any(one.open for one in faults)
    return SoakVerdict.STANDS if whole and known else SoakVerdict.OPEN


def _came_back(record: Record) -> SoakVerdict:
    """Of a rung whose load was too short to tell of growth: all its phases went well, as far as they went."""
    return SoakVerdict.STANDS if record.whole else SoakVerdict.OPEN


def _seen(phase: PhaseRecord, clients: int, began_unix_s: float) -> PhaseSeen:
    tally = phase.tally
    started_unix_s = phase.watched.started_unix_s if phase.watched else began_unix_s
    seen = PhaseSeen(
        name=phase.name,
        clients=clients if phase.clients is None else phase.clients,
        began_s=started_unix_s - began_unix_s,
        broken=_broken(phase),
        log=phase.doubts.get(Doubt.SERVER_LOG, ""),
        guests=phase.guests,
        recovery=phase.recovery,
    )
    if tally is None:
        return seen
    return seen.but(
        operations=tally.operations,
        throughput_per_s=tally.throughput_per_s if tally.duration_s else None,
        p99_ms=metrics.latency_ms(tally.latency_us, "p99"),
        errors=tally.errors,
        clients_lost=tally.clients_lost,
    )


def _broken(phase: PhaseRecord) -> tuple[str, ...]:
    """What of a phase speaks against the setup. Damage that its settings permit does not."""
    recovery = phase.recovery
    if recovery is not None and recovery.fault:
        return (recovery.fault,)
    if recovery is not None and recovery.damage:
        return ()
    return tuple(f"{check.name}: {check.detail}" for check in phase.checks if not check.holds)


def _curves(record: Record) -> Iterator[Curve]:
    """Each gauge over all phases that were watched, thinned evenly."""
    for gauge in GAUGES:
        points = [
            (phase.watched.started_unix_s + second - record.started_unix_s, value)
            for phase in record.phases
            if phase.watched is not None
            for second, value in zip(phase.watched.seconds, phase.watched.series.get(gauge, ()), strict=False)
            if value is not None
        ]
        points = points[:: max(1, -(-len(points) // POINTS_SHOWN))]
        if points:
            seconds, values = zip(*points, strict=True)
            yield Curve(gauge=gauge, seconds=tuple(round(one, 2) for one in seconds), values=values)
