"""What a study's factors say of builds: which of them make one, and which change nothing but its layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbdyno.frozen import Level, level_text

BUILD_LAYERS = frozenset(("source", "build"))
LAYOUT = "build.layout"
"""The factor whose levels move the code and change none of it: placebos."""


def changed_levels(levels: Mapping[str, Level], baseline: Mapping[str, Level]) -> dict[str, Level]:
    """The levels that differ from the baseline's."""
    return {
        factor: level
        for factor, level in levels.items()
        if factor not in baseline or level_text(baseline[factor]) != level_text(level)
    }


def of_build(factor: str) -> bool:
    """Whether the levels of a factor are builds."""
    return factor.partition(".")[0] in BUILD_LAYERS


def is_placebo(changed: Iterable[str]) -> bool:
    """Whether a variant that changes these factors has the baseline's code at other addresses."""
    return set(changed) == {LAYOUT}
