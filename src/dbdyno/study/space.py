"""The space of a search: when a factor varies, what levels may not go together, and what may be given up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from dbdyno.frozen import Frozen, Level, absent, level_text

SIZE_LETTERS = "KMGT"


class Promise(StrEnum):
    """What a level can give up for its speed. A search keeps all of them but those that its study allows."""

    DURABILITY = "durability"
    INTEGRITY = "integrity"
    ISOLATION = "isolation"
    SECURITY = "security"


class Condition(Frozen):
    """A factor varies only where another one, which stands before it, has one of these levels."""

    factor: str
    levels: tuple[Level, ...]

    def holds(self, levels: Mapping[str, Level]) -> bool:
        return level_text(levels[self.factor]) in {level_text(level) for level in self.levels}


class Term(Frozen):
    """So many times the amount of a factor's level; without a factor, so much."""

    times: float
    factor: str = ""

    def value(self, levels: Mapping[str, Level]) -> float:
        return self.times * (amount(levels[self.factor]) if self.factor else 1.0)


class Constraint(Frozen):
    """The sum of terms on the left is at most the sum of those on the right."""

    text: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(term.factor for term in (*self.left, *self.right) if term.factor)

    def holds(self, levels: Mapping[str, Level]) -> bool:
        return sum(term.value(levels) for term in self.left) <= sum(term.value(levels) for term in self.right)


class Search(Frozen):
    """How a study of the design `search` looks: for how long, under which constraints, which promises a level
    may give up, and below which share bad starts of the winner have to be shown to be."""

    time_s: float = 1800.0
    allow: tuple[Promise, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    bad_starts: float | None = absent(None)

    def keeps(self, levels: Mapping[str, Level]) -> bool:
        """Whether levels keep all constraints."""
        return all(one.holds(levels) for one in self.constraints)


def amount(level: Level) -> float:
    """What a level counts in a sum: its number, in bytes where it is a size. Raises ValueError for a level
    that is no amount."""
    if isinstance(level, int | float) and not isinstance(level, bool):
        return float(level)
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?) ?([A-Za-z]*)", level_text(level).strip())
    if found is None:
        raise ValueError(level_text(level))
    return float(found[1]) * (size_unit_bytes(found[2]) or 1)


def size_unit_bytes(unit: str) -> int:
    """How many bytes a unit of sizes has (`M`, `MB`, `MiB`, `kB`); 0 for another unit."""
    if not re.fullmatch(r"[kmgt](i?b)?", unit, re.IGNORECASE):
        return 0
    return int(1024 ** (1 + SIZE_LETTERS.index(unit[0].upper())))
