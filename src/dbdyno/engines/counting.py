"""What engines that count by themselves share: their counters as a view, and as a proof of use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dbdyno.records.record import Reading

View = Mapping[str, tuple[float, tuple[str, ...]]]
"""Title with its unit -> a factor, and the counters whose sum it multiplies."""

Proofs = Mapping[str, tuple[str, ...]]
"""Setting -> the counters that show that its part of the server was at work."""


def numbers(rows: Iterable[Sequence[str | float | None]]) -> dict[str, float]:
    """The counters of rows that hold a name and a value; what is no number is left out."""
    counted: dict[str, float] = {}
    for name, value, *_ in rows:
        try:
            counted[str(name)] = float(value if value is not None else "")
        except ValueError:
            continue
    return counted


def viewed(view: View, gained: Mapping[str, float]) -> dict[str, float]:
    """The lines of a view that have a counter; one that stood still is left out."""
    return {
        title: round(factor * sum(gained.get(name, 0.0) for name in names), 6)
        for title, (factor, names) in view.items()
        if any(name in gained for name in names)
    }


def proved(
    proofs: Proofs, name: str, before: Mapping[str, float], after: Mapping[str, float], source: str
) -> Reading | None:
    """How much each counter of a setting gained, read from `source`; None when it has none."""
    counters = [one for one in proofs.get(name, ()) if one in before and one in after]
    if not counters:
        return None
    gains = [f"{one} {after[one] - before[one]:+.0f}" for one in counters]
    return Reading(value=", ".join(gains), source=f"{source}, after the load less before it")


def unmoved(
    proofs: Proofs,
    partial: frozenset[str],
    name: str,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> str:
    """That each counter of a setting stood still; empty where one moved, where it has none, or where they see
    but a part of its use (`partial`).
    """
    counters = [one for one in proofs.get(name, ()) if one in before and one in after]
    if not counters or name in partial or any(after[one] != before[one] for one in counters):
        return ""
    return f"{', '.join(counters)} did not move during the load"
