"""What the driver found of a workload's invariants, as the checks of a trial."""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.driver.load import Invariant
from dbdyno.records.record import Check


def checks_of(invariants: Iterable[Invariant], after: str = "") -> tuple[Check, ...]:
    """A check for each, whose name says `after` what it was made."""
    suffix = f"_after_{after}" if after else ""
    return tuple(Check(name=f"{one.name}{suffix}", holds=one.holds, detail=one.detail) for one in invariants)
