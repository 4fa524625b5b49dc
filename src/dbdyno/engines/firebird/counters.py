"""Firebird's own counters: embedded, it has none that last."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask

exercised = embedded.exercised


def status(_ask: Ask) -> dict[str, float]:
    """None. The counters of an embedded database begin anew when its last attachment ends, which is
    before anyone could read them after a load."""
    return {}


def view(_gained: Mapping[str, float]) -> dict[str, float]:
    return {}
