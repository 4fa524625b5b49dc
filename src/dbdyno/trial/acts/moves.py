"""How far each node of a cluster comes from moment to moment, and so how long one of them stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

from dbdyno.engines.nodes import Node
from dbdyno.errors import DriverFailed

BETWEEN_S = 0.02
Moment = tuple[float, float]
"""Seconds of the monotonic clock, and how far a node had come by then."""


class Moves:
    """Asks nodes in turn how far they have come, by the statement's answer, until the end of a `with` block.
    `made` holds the moments by a node's name."""

    def __init__(self, nodes: Iterable[Node], sql: str) -> None:
        self._nodes, self._sql = tuple(nodes), sql
        self.made: dict[str, list[Moment]] = {node.name: [] for node in self._nodes}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Moves:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def still_s(self, name: str) -> float | None:
        """The longest time in which a node came no further; None for one that was not asked."""
        return longest_still_s(self.made[name]) if name in self.made else None

    def _ask(self) -> None:
        while not self._over.wait(BETWEEN_S):
            for node in self._nodes:
                # A node that gives no answer is asked again.
                with suppress(DriverFailed):
                    come = float(node.ask(self._sql)[0][-1] or 0)
                    self.made[node.name].append((time.monotonic(), come))


def longest_still_s(moments: Sequence[Moment]) -> float:
    """The longest time between two moves of moments in their order. The first and the last moment count as
    moves."""
    moved = [after for before, after in pairwise(moments) if after[1] != before[1]]
    ends = [*moments[:1], *moved, *moments[-1:]]
    return max((after[0] - before[0] for before, after in pairwise(ends)), default=0.0)
