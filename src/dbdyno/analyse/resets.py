"""Whether the pristine data came back by one way wherever they should have.

A way of reset leaves its mark on a trial: a copy leaves the data in the page cache, shared extents are
unshared by the first writes. Trials that have the same storage must therefore have the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dbdyno.frozen import level_text
from dbdyno.records.record import Outcome, Record


def mixed_resets(records: Sequence[Record]) -> dict[int, str]:
    """Trials whose data came back by another way than those of most trials with the same storage and host,
    and what the ways were."""
    ways: dict[tuple[str, ...], Counter[str]] = {}
    measured = [one for one in records if one.outcome is Outcome.MEASURED and "way" in one.reset]
    for record in measured:
        ways.setdefault(_storage(record), Counter())[str(record.reset["way"])] += 1
    return {
        record.trial: f"by {record.reset['way']}, where most came by {usual}"
        for record in measured
        if (usual := _usual(ways[_storage(record)])) != record.reset["way"]
    }


def _storage(record: Record) -> tuple[str, ...]:
    """The host and the levels of storage: what the way may depend on."""
    levels = sorted(f"{name}={level_text(level)}" for name, level in record.levels.items())
    return (record.host, *(level for level in levels if level.startswith("storage.")))


def _usual(ways: Counter[str]) -> str:
    """The way of most trials; of ways with as many, the first by name."""
    return min(ways, key=lambda way: (-ways[way], way))
