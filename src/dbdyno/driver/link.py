"""What is known of a load host and of the way to it: a part of the record of each phase that it drove."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from dbdyno.frozen import Frozen, absent

Moment = Literal["before", "between", "after"]
"""When the link was measured: before the load, between two slices, or after it. Nothing was timed then."""


class Stamps(Frozen):
    """The four moments of one request, each in unix time by the clock of whoever notes it: it is sent here,
    received there, the answer is sent there, and received here (RFC 5905, section 8)."""

    sent_s: float
    received_s: float
    answered_s: float
    returned_s: float

    @property
    def round_trip_s(self) -> float:
        """How long the request was on its way, there and back."""
        return (self.returned_s - self.sent_s) - (self.answered_s - self.received_s)

    @property
    def offset_s(self) -> float:
        """How far the clock there is ahead of the one here, to within half of the round trip."""
        return ((self.received_s - self.sent_s) + (self.answered_s - self.returned_s)) / 2


class RoundTrips(Frozen):
    """Round trips in seconds: how many, the shortest, the median and the longest."""

    count: int
    min_s: float
    median_s: float
    max_s: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> RoundTrips:
        """Of one round trip or more."""
        return cls(
            count=len(seconds), min_s=min(seconds), median_s=statistics.median(seconds), max_s=max(seconds)
        )


class Bandwidth(Frozen):
    """What the network carried in each direction by itself, in bytes per second."""

    to_server_bytes_per_s: float
    from_server_bytes_per_s: float


class LinkReading(Frozen):
    """The link at one moment. `network` are connections that the load host opened to the server's port, each
    of which takes one round trip. `control` are requests over SSH. The load host's clock is ahead by
    `clock_offset_s`, to within `clock_within_s`. Before and after a load the network's `bandwidth` is known
    as well."""

    unix_s: float
    moment: Moment
    network: RoundTrips
    control: RoundTrips
    clock_offset_s: float
    clock_within_s: float
    bandwidth: Bandwidth | None = absent(None)

    @classmethod
    def of(cls, moment: Moment, connects_s: Sequence[float], stamps: Sequence[Stamps]) -> LinkReading:
        """Of one connection and one request or more. The request with the shortest way tells the offset,
        because its bound is the closest."""
        best = min(stamps, key=lambda one: one.round_trip_s)
        return cls(
            unix_s=best.sent_s,
            moment=moment,
            network=RoundTrips.of(connects_s),
            control=RoundTrips.of([one.round_trip_s for one in stamps]),
            clock_offset_s=best.offset_s,
            clock_within_s=best.round_trip_s / 2,
        )


class LoadHost(Frozen):
    """The host that a phase was driven from, by the name under which the study knows it.

    It reached the server at `address`, `encrypted` or not. `driver` is the hash of the driver's file there.
    Over the `load_s` seconds of the load its CPUs were busy for `busy_s`, the hypervisor took `steal_s`, and
    the driver's process used `driver_s`, each summed over its CPUs. Where the load had slices, its warm-up is
    no part of that. Of the `segments_sent` by TCP, `segments_resent` were sent again, because nobody
    acknowledged them. `readings` are of the link, in their order. Where several hosts shared the load, this
    one had so many `clients` of it, which did so many `operations`, and began `late_s` after the first host.
    """

    name: str
    address: str
    encrypted: bool
    driver: str
    machine: str
    kernel: str
    cpu: str
    cpus: int
    python: str
    load_s: float
    busy_s: float
    steal_s: float
    driver_s: float
    segments_sent: float
    segments_resent: float
    clients: int | None = absent(None)
    operations: int | None = absent(None)
    late_s: float | None = absent(None)
    readings: tuple[LinkReading, ...]

    @property
    def round_trip_s(self) -> float:
        """The median of the network's round trips, over all readings; 0 without one."""
        return statistics.median(one.network.median_s for one in self.readings) if self.readings else 0.0

    @property
    def round_trip_max_s(self) -> float:
        """The longest round trip of the network; 0 without a reading."""
        return max((one.network.max_s for one in self.readings), default=0.0)

    @property
    def bandwidths(self) -> tuple[Bandwidth, ...]:
        """Those of all readings that have one."""
        return tuple(one.bandwidth for one in self.readings if one.bandwidth is not None)

    @property
    def resent_share(self) -> float:
        """The share of segments that were sent again; 0 where none was sent."""
        every = self.segments_sent + self.segments_resent
        return self.segments_resent / every if every else 0.0

    @property
    def clock(self) -> LinkReading | None:
        """The reading that bounds the clocks' offset most closely."""
        return min(self.readings, key=lambda one: one.clock_within_s, default=None)

    def share(self, seconds: float) -> float:
        """What CPU seconds are of all that the load host's CPUs had during the load."""
        capacity_s = self.load_s * self.cpus
        return seconds / capacity_s if capacity_s > 0 else 0.0
