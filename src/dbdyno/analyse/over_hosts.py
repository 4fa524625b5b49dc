"""The interval of a ratio over the hosts of a fleet.

A block belongs to one host, and variants are compared within it. A host favours a variant in all of its
blocks, so its blocks are not independent of each other. The means of hosts are, and Student's interval over
these holds, also where hosts differ in their noise (R. Ibragimov and U. K. Müller, Journal of Business &
Economic Statistics 28, 2010). It is about hosts like these: each is a draw from them, and counts as much as
any other, however noisy it is (random effects).

Fewer than `HOSTS_LEAST` give no such interval. Then it is over blocks, and about these very hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dbdyno.analyse.columns import Fact, Floats, Pairs, Rows
from dbdyno.analyse.intervals import ratio_over
from dbdyno.analyse.model import Ratio

FLEET_HOST = Fact("fleet_host", lambda record: record.fleet_host)
HOSTS_LEAST = 3


def over_hosts(metric: str, rows: Rows, pairs: Pairs, confidence: float) -> Ratio | None:
    """The ratio over the means of the hosts that these trials ran on; None where blocks stand for
    themselves."""
    means = means_of_hosts(logs_by_host(rows, pairs))
    if means is None:
        return None
    return ratio_over(metric, means, pairs.logs, confidence).but(hosts=len(means))


def logs_by_host(rows: Rows, pairs: Pairs) -> dict[str, Floats]:
    """The log ratios of each host of a fleet, in the order of their values, so that no figure depends on the
    order of records; empty for a run of one host."""
    codes, table = rows.told(FLEET_HOST, pairs)
    return {
        table[code]: np.sort(pairs.logs[codes == code])
        for code in sorted(set(codes.tolist()), key=lambda one: str(table[one]))
        if table[code]
    }


def means_of_hosts(logs: dict[str, Floats]) -> Floats | None:
    """The mean log ratio of each host; None where there are too few hosts."""
    if len(logs) < HOSTS_LEAST:
        return None
    return np.array([values.mean() for values in logs.values()])


def widest(ratios: Sequence[Ratio | None]) -> Ratio | None:
    """The first ratio, with an interval that holds those of all others: each holds what another one does
    not. None without one."""
    found = [one for one in ratios if one is not None]
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    return found[0].but(low=min(lows, default=None), high=max(highs, default=None)) if found else None
