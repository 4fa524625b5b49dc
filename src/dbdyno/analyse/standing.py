"""What may be said of one gauge of a soak: whether it keeps within its room for the time that was asked.

The room of a gauge is what it may gain: up to its limit, and by no more than the share that the study allows.
It *stands* where the upper bound of its growth, carried on in a straight line over the horizon, fits into the
room. It *rises* only where the growth that was seen has used the room up, because half a period of a slow
sawtooth looks like a leak until then. All else is open, with the length of load that is likely to settle it.
"""

from __future__ import annotations

import math
from enum import StrEnum

from dbdyno.analyse.drift import Slope
from dbdyno.frozen import Frozen
from dbdyno.records.gauges import GAUGES
from dbdyno.records.record import Limit
from dbdyno.study.soak import Soak

POWERED = 1.43
"""By how much narrower than the room an interval must be so that it lies within it in 80 of 100 cases: the
quantiles of 80 % and of 97.5 % of the normal law together, by the latter. More confidence needs less."""
MORE = 1.25
"""So much of the room: it grows with the level, and what has just used it up is not seen to have done so."""
SLOWER = 0.4
"""By so much of half its interval a slope may be less than it seems: about one standard error."""


class Standing(StrEnum):
    """What may be said of one gauge. `STEADY`: whatever it gains within the horizon fits into its room.
    `NEGLIGIBLE`: so it does, and it rises beyond doubt. `UNSURE`: no rise is shown, and none that would be
    too large is excluded. `WITHIN`: beside other clients it rises, and only as high as the load alone took it
    before them. `RISING`: it has used its room up. `FILLING`: it rises, and more slowly the longer it lasts,
    so that nobody knows where it ends. `EARLY`: it rises, and has not gained enough yet to tell whether that
    goes on. `BRIEF`: it rises, as it does at the beginning of any load, and the load was no longer than that.
    """

    STEADY = "steady"
    NEGLIGIBLE = "negligible"
    UNSURE = "unsure"
    WITHIN = "no higher than under the load alone"
    RISING = "rising"
    FILLING = "still filling"
    EARLY = "too early to tell"
    BRIEF = "as at the beginning of any load"


class Rate(Frozen):
    """A growth, each second or by the million transactions, with its interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Rate:
        return Rate(value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def less(self, other: Rate) -> Rate:
        """The difference of two rates that were measured apart."""
        value = self.value - other.value
        down = math.hypot(self.value - self.low, other.high - other.value)
        up = math.hypot(self.high - self.value, other.value - other.low)
        return Rate(value=value, low=value - down, high=value + up)

    def above_zero(self) -> Rate:
        return Rate(value=max(self.value, 0.0), low=max(self.low, 0.0), high=max(self.high, 0.0))


def room_of(gauge: str, slope: Slope, limit: Limit | None, soak: Soak) -> float:
    """By how much a gauge may grow beyond its last level."""
    allowed = max(soak.rise * abs(slope.last), GAUGES[gauge].harmless - slope.last)
    return max(min(allowed, limit.most - slope.last), 0.0) if limit else allowed


def standing_under_load(gauge: str, per_s: Rate, slope: Slope, room: float, soak: Soak) -> Standing:
    """Under the sustained load alone. `per_s` is the slope less that of the control. The bound is that of the
    slope as measured, because what grows at rest as well fills the room, too."""
    if slope.high * soak.horizon_s <= room:
        return Standing.NEGLIGIBLE if per_s.low > 0.0 else Standing.STEADY
    return _rise(gauge, per_s, slope, room) if per_s.low > 0.0 else Standing.UNSURE


def standing_beside(gauge: str, per_s: Rate, slope: Slope, room: float, within: bool) -> Standing:
    """Beside other clients, for a short time: only a rise is judged, and what stayed `within` is none."""
    if per_s.low <= 0.0:
        return Standing.STEADY
    return Standing.WITHIN if within else _rise(gauge, per_s, slope, room)


def _rise(gauge: str, per_s: Rate, slope: Slope, room: float) -> Standing:
    if slope.until_s < GAUGES[gauge].judged_after_s:
        return Standing.BRIEF
    if slope.slowing:
        return Standing.FILLING
    return Standing.RISING if per_s.low * (slope.until_s - slope.since_s) >= room else Standing.EARLY


def settles_s(gauge: str, standing: Standing, slope: Slope, room: float, soak: Soak) -> float:
    """How long a load is likely to settle an open gauge, in seconds: the horizon at most, because a load of
    that length shows what it asks."""
    least_s = max(slope.until_s, GAUGES[gauge].judged_after_s)
    allowed = room / soak.horizon_s
    if standing is Standing.FILLING:
        length_s = 2.0 * least_s
    elif slope.per_s < allowed:
        length_s = _narrows_s(slope, allowed - max(slope.per_s, 0.0))
    else:
        # Where no rise is shown, it may be luck that the slope looks too large.
        length_s = max(
            _narrows_s(slope, allowed) if slope.low <= 0.0 else 0.0, _gains_s(slope, room, allowed)
        )
    return min(max(length_s, least_s), max(soak.horizon_s, least_s))


def _narrows_s(slope: Slope, spare: float) -> float:
    """The length of a load whose interval is likely to reach no further than `spare` above its middle.
    Intervals of a slope narrow with the length of a load at the least, those of a random walk with its root.
    """
    if spare <= 0.0:
        return math.inf
    narrower = POWERED * (slope.high - slope.per_s) / spare
    return slope.until_s * (narrower**2 if slope.walks else narrower)


def _gains_s(slope: Slope, room: float, allowed: float) -> float:
    """The length of a load in which a rise like this is likely to be seen to use the room up."""
    half, needed = slope.per_s - slope.low, MORE * room
    per_s = max(slope.per_s - SLOWER * half, allowed)
    if not slope.walks:
        return slope.since_s + (needed + half * slope.until_s) / per_s
    root = half * math.sqrt(slope.until_s)
    return slope.since_s + ((root + math.sqrt(root**2 + 4.0 * per_s * needed)) / 2.0 / per_s) ** 2
