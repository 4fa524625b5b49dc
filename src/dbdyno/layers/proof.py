"""What a layer's reading of the running system proves of one level."""

from __future__ import annotations

from dbdyno.records.record import Evidence, Reading


def proof(
    factor: str, level: str, found: Reading, in_effect: bool, accepted: str, remedy: str = ""
) -> Evidence:
    """The evidence of one reading. `accepted` says who took the level, `remedy` what would allow one that is
    not in effect."""
    return Evidence(
        factor=factor,
        requested=level,
        accepted=Reading(value=level, source=accepted),
        effective=found,
        in_effect=in_effect,
        reason="" if in_effect else f"asked for {level}, found {found.value}",
        remedy="" if in_effect else remedy,
    )
