"""What other nodes of a cluster show of the commits that clients have been told of, while the load goes on.

Each look asks a node for the latest row of each client. The node says when its statement began. So a client
that was told of a later row before that moment, and reads on this node, would not see its own commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from dbdyno.engines.nodes import Node
from dbdyno.errors import DriverFailed
from dbdyno.trial.acts.ledger import NS, Entry, Ledger

BETWEEN_S = 0.02
NOBODY = -1
"""No client has this number."""


class Look(NamedTuple):
    """The latest row of each client that the node with a number showed to a statement that began at `at_ns`,
    of the monotonic clock."""

    number: int
    at_ns: int
    latest: dict[int, int]


class Staleness(NamedTuple):
    """How many clients' latest commits were looked for, how many of those were not there yet, and how long
    ago the client of the oldest one had been told of it."""

    looks: int
    stale: int
    stale_ms: float


class Looks:
    """Looks at each node in turn until `end`, in a thread of its own, where `now` is what a node calls the
    start of its statement."""

    def __init__(self, ledger: Ledger, nodes: Sequence[Node], now: str) -> None:
        self.made: list[Look] = []
        self._nodes = nodes
        # The time is told by a row of its own, because a node may have none of any client yet.
        self._sql = (
            f"SELECT {NOBODY}, 0, {now} UNION ALL"
            f" SELECT client, MAX(entry), 0 FROM dyno_ledger WHERE cut = {ledger.cut} GROUP BY client"
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(BETWEEN_S):
            for node in self._nodes:
                # A node that gives no answer gives no stale one.
                with suppress(DriverFailed):
                    self._look_at(node)

    def _look_at(self, node: Node) -> None:
        rows = node.ask(self._sql)
        ahead_ns = time.time_ns() - time.monotonic_ns()
        at_ns = max(round(float(row[2] or 0) * NS) for row in rows) - ahead_ns
        latest = {int(float(row[0] or 0)): int(float(row[1] or 0)) for row in rows}
        self.made.append(Look(node.site.peer.number, at_ns, latest))


def staleness(looks: Iterable[Look], entries: Iterable[Entry], homes: Sequence[int]) -> Staleness:
    """What the looks missed of that which clients had been told of by then. Clients are dealt out in turn
    over the nodes with the numbers of `homes`, and a look on a client's own node does not count."""
    by_client: dict[int, list[Entry]] = {}
    for entry in entries:
        by_client.setdefault(entry.client, []).append(entry)
    found = stale = 0
    oldest_ns = 0
    for look in looks:
        for client, told in by_client.items():
            if look.number == homes[client % len(homes)]:
                continue
            before = [entry for entry in told if entry.told_ns < look.at_ns]
            missed = [entry.told_ns for entry in before if entry.number > look.latest.get(client, -1)]
            found += bool(before)
            stale += bool(missed)
            oldest_ns = max([oldest_ns, *(look.at_ns - told_ns for told_ns in missed)])
    return Staleness(found, stale, oldest_ns / 1e6)
