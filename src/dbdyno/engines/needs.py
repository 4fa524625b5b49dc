"""What settings need of other settings: without it a level cannot matter, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.engines.values import as_text, same_value
from dbdyno.frozen import Level


@dataclass(frozen=True)
class Need:
    """`settings` do nothing while `other` has one of the levels `off`. Where nothing sets `other`, the engine
    gives it the level `unset`. `why` says what is missing then."""

    settings: tuple[str, ...]
    other: str
    off: tuple[str, ...]
    unset: str
    why: str


def unmet(needs: Sequence[Need], settings: Mapping[str, Level]) -> dict[str, str]:
    """Those of the settings that cannot matter beside the others, each with the reason."""
    found: dict[str, str] = {}
    for need in needs:
        level = settings.get(need.other, need.unset)
        if any(same_value(level, off) for off in need.off):
            reason = f"{need.other} is {as_text(level)}, {need.why}"
            found |= {name: reason for name in need.settings if name in settings and name not in found}
    return found
