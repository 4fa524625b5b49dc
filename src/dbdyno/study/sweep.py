"""Numbers of clients written as a sweep: "1..256 x2" doubles from 1 to 256, "8..64 +8" adds eight."""

from __future__ import annotations

import re
from typing import Any

from dbdyno.study.values import Fault, shown

SWEEP = r"^([0-9]{1,6})\.\.([0-9]{1,6}) ?([x+])([0-9]{1,6})$"
SWEEP_FORMS = '"1..256 x2" or "8..64 +8"'
LEVELS_MAX = 64


def is_sweep(value: Any) -> bool:
    """Whether a value is meant as a sweep: a text with two points in a row."""
    return isinstance(value, str) and ".." in value


def sweep(text: str) -> list[int]:
    """The numbers of a sweep, rising from the first; the end is the last of them only where a step meets it.

    Raises Fault for a text that is no sweep, and for one of fewer than two or of too many numbers.
    """
    found = re.match(SWEEP, text)
    if found is None:
        raise Fault(f"{shown(text)} is no sweep", f"write {SWEEP_FORMS}")
    first, last, step = (int(found[part]) for part in (1, 2, 4))
    times = found[3] == "x"
    if first < 1 or step < (2 if times else 1):
        raise Fault(f"{shown(text)} does not rise", f"write {SWEEP_FORMS}")
    levels = [first]
    while (following := levels[-1] * step if times else levels[-1] + step) <= last:
        levels.append(following)
        if len(levels) > LEVELS_MAX:
            raise Fault(f"{shown(text)} has more than {LEVELS_MAX} levels", "take a larger step")
    if len(levels) < 2:
        raise Fault(f"{shown(text)} has one level", "a factor needs two or more")
    return levels
