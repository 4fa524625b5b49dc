"""What the hosts of a fleet say of a variant, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.analyse.estimate import HOSTS_LEAST
from dbdyno.analyse.found import HostEffect, HostsCompared, OnHosts, RatioPosition
from dbdyno.analyse.model import Analysis
from dbdyno.frozen import listed
from dbdyno.records import metrics
from dbdyno.report.words.numbers import between_text, plural, ratio_text, rough_share_text
from dbdyno.report.words.safe import clean

NAMED_MOST = 4


def on_hosts(analysis: Analysis, variant: str) -> OnHosts | None:
    """A variant on each host; None in a run of one host."""
    of_hosts = analysis.hosts.variants if analysis.hosts is not None else ()
    return next((one for one in of_hosts if one.variant == variant), None)


def beside(analysis: Analysis, variant: str) -> str:
    """The hosts that contradict a variant that is told faster or slower; empty where none does."""
    found = on_hosts(analysis, variant)
    if found is None or not found.contrary:
        return ""
    return f", but {told_text(analysis, contrary_told(found))} on {enumerated(found.contrary)}"


def contrary_told(found: OnHosts) -> RatioPosition:
    """What the hosts say that contradict the others."""
    return next(one.told for one in found.each if one.host in found.contrary)


def told_text(analysis: Analysis, told: RatioPosition) -> str:
    """What one host by itself says of a variant."""
    if told is RatioPosition.OPEN:
        return "open"
    if told is RatioPosition.LEVEL:
        return "no effect"
    higher = metrics.find(analysis.method.response).higher_is_better
    return "faster" if (told is RatioPosition.ABOVE) == higher else "slower"


def hosts_text(analysis: Analysis, found: OnHosts) -> str:
    """How many hosts by themselves say what: 5 faster, 1 slower."""
    told = [told_text(analysis, one.told) for one in found.each]
    words = ("faster", "slower", "no effect", "open")
    return ", ".join(f"{told.count(word)} {word}" for word in words if word in told)


def enumerated(hosts: Sequence[str]) -> str:
    """The first few by name, the rest by number."""
    return listed([*map(clean, hosts)], NAMED_MOST)


def interval_of(one: HostEffect) -> str:
    """The interval of one host; what there is instead where it has a single block."""
    if one.low is None or one.high is None:
        return "one block"
    return between_text(one.low, one.high)


def further_text(found: OnHosts) -> str:
    """Where the ratio of a further host lies; empty where there are too few hosts to say."""
    if found.further_low is None or found.further_high is None:
        return ""
    return between_text(found.further_low, found.further_high)


def spread_text(found: OnHosts) -> str:
    """How far hosts differ beyond what their blocks explain; empty where that is not known."""
    if found.between_log_sd is None:
        return ""
    if not found.between_log_sd:
        return "hosts differ no more than their blocks explain"
    share = rough_share_text(math.expm1(found.between_log_sd))
    return f"hosts differ by {share} (one standard deviation) beyond what their blocks explain"


def method_text(compared: HostsCompared) -> str:
    """What the intervals of a fleet rest on."""
    count = plural(len(compared.hosts), "host")
    if not compared.over_hosts:
        return (
            f"Hosts: {count}; variants were compared within each. An interval over hosts needs at least"
            f" {HOSTS_LEAST}, and Student’s. So the intervals are over blocks, and about these very hosts."
        )
    return (
        f"Hosts: {count}; variants were compared within each. The interval of a variant is Student’s over the"
        " means of hosts, each of which counts as much (Ibragimov and Müller, JBES 28, 2010). So it is about"
        " hosts like these. Intervals of single hosts are over their own blocks. Effects of factors and"
        " shares of a gap are over the blocks of all hosts."
    )


def span_text(found: OnHosts) -> tuple[str, str]:
    """The hosts with the lowest and the highest ratio."""
    low, high = (choose(found.each, key=lambda one: one.ratio) for choose in (min, max))
    return _at(low), _at(high)


def _at(one: HostEffect) -> str:
    return f"{ratio_text(one.ratio)} {clean(one.host)}"
