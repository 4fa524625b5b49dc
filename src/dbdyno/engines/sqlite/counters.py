"""SQLite's own counters, which tell of the file's size alone."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask

CACHE_MISSES = ""
exercised = embedded.exercised
held = embedded.held
unmoved = embedded.unmoved


def status(ask: Ask) -> dict[str, float]:
    return {name: float(ask(f"PRAGMA {name}")[0][0] or 0) for name in ("page_count", "freelist_count")}


def view(_gained: Mapping[str, float]) -> dict[str, float]:
    """Nothing: a size is no time."""
    return {}
