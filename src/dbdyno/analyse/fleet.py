"""What an analysis holds of a fleet's hosts; `hosts.py` finds it."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.analyse.noise import Floor
from dbdyno.frozen import Frozen


class Told(StrEnum):
    """Where the interval of a ratio lies: on one side of 1 and beyond the margin, within the margin, or none
    of these."""

    ABOVE = "above"
    BELOW = "below"
    LEVEL = "level"
    OPEN = "open"


class HostEffect(Frozen):
    """The response's ratio variant / baseline on one host: the geometric mean over its `blocks`, with the
    interval, which is absent with a single block. `told` is what this host by itself says."""

    host: str
    blocks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    told: Told = Told.OPEN


class OnHosts(Frozen):
    """A variant on each host that compared it. Where the variant is told faster or slower, `contrary` are the
    hosts that by themselves say the opposite. `between_log_sd` is how far hosts differ beyond what their
    blocks explain, as the standard deviation of log ratios; None where a host has too few blocks. A further
    host would show a ratio between `further_low` and `further_high` in as many blocks; None with too few
    hosts."""

    variant: str
    each: tuple[HostEffect, ...]
    contrary: tuple[str, ...] = ()
    between_log_sd: float | None = None
    further_low: float | None = None
    further_high: float | None = None


class OneHost(Frozen):
    """A host of a fleet, by its name there, with how many blocks have a trial of it. Its `floor` is what its
    blocks by themselves cannot tell; None while there are too few."""

    name: str
    blocks: int
    floor: Floor | None = None


class HostsCompared(Frozen):
    """The hosts of a fleet beside each other. The intervals of a host's effects have `confidence_each`, so
    that those of all hosts and variants hold together with the study's. Where intervals of variants are
    `over_hosts`, their unit is the host."""

    hosts: tuple[OneHost, ...]
    over_hosts: bool
    confidence_each: float
    variants: tuple[OnHosts, ...]
