"""A profile as folded stacks, the lines that flame graph tools read: frames from the root with semicolons
between, then the CPU time in nanoseconds per operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dbdyno.analyse.profile import Profile
from dbdyno.report.words import safe


def folded(profiles: Sequence[Profile]) -> str:
    """One line for each stack, in the order of their names, ending in a newline.

    With a second profile a line has two figures, as tools for differences read them: first what the second
    profile spends, then the first.
    """
    counted = [_counted(profile) for profile in profiles]
    stacks = sorted(set().union(*counted))
    return "".join(
        f"{stack} {' '.join(str(count[stack]) for count in reversed(counted))}\n" for stack in stacks
    )


def _counted(profile: Profile) -> Counter[str]:
    """Nanoseconds per operation by stack; what rounds to none is left out."""
    exact: dict[str, float] = {}
    for stack in profile.stacks:
        name = ";".join(_frame(frame) for frame in stack.frames)
        exact[name] = exact.get(name, 0.0) + stack.us * 1000.0
    return Counter({name: round(ns) for name, ns in exact.items() if round(ns)})


def _frame(frame: str) -> str:
    """A function's name without what parts frames and lines."""
    return safe.clean(frame).replace(";", ":")
