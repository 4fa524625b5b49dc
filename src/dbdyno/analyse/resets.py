"""Whether the pristine data came back by one way wherever they should have.

A way of reset leaves its mark on a trial: a copy leaves the data in the page cache, shared extents are
unshared by the first writes. Trials that have the same storage must therefore have the same way.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dbdyno.analyse.columns import OUTCOME, Columns, Fact
from dbdyno.frozen import level_text
from dbdyno.records.record import Outcome, Record

WAY = Fact(
    "way", lambda record: (_storage(record), str(record.reset["way"])) if "way" in record.reset else None
)
"""By which way the data came back, with what that may depend on."""


def mixed_resets(columns: Columns) -> dict[int, str]:
    """Trials whose data came back by another way than those of most trials with the same storage and host,
    and what the ways were."""
    codes, table = columns.fact(WAY)
    measured = columns.having(OUTCOME, columns.places, Outcome.MEASURED.value)
    counts = np.bincount(codes[measured], minlength=len(table)).tolist()
    ways: dict[tuple[str, ...], Counter[str]] = {}
    for found, count in zip(table, counts, strict=True):
        if found is not None and count:
            ways.setdefault(found[0], Counter())[found[1]] += count
    told: dict[int, str] = {}
    for code, found in enumerate(table):
        if found is not None and counts[code] and (usual := _usual(ways[found[0]])) != found[1]:
            trials = columns.trials(measured[codes[measured] == code]).tolist()
            told |= dict.fromkeys(trials, f"by {found[1]}, where most came by {usual}")
    return told


def _storage(record: Record) -> tuple[str, ...]:
    """The host and the levels of storage: what the way may depend on."""
    levels = sorted(f"{name}={level_text(level)}" for name, level in record.levels.items())
    return (record.host, *(level for level in levels if level.startswith("storage.")))


def _usual(ways: Counter[str]) -> str:
    """The way of most trials; of ways with as many, the first by name."""
    return min(ways, key=lambda way: (-ways[way], way))
