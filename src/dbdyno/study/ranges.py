"""From a range to its levels: steps that a person would write, from one end to the other.

A search needs few levels that are easy to read and not every number between two ends: a cache of 1487M is not
better than one of 1536M. On a log scale a size has four steps to each doubling, another number ten to each
power of ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from dbdyno.frozen import Level
from dbdyno.study.nouns import SIZE_LETTERS, amount, size_unit_bytes
from dbdyno.study.values import INT_MAX, ValueFault, shown

STEPS_MOST = 40
"""About as many levels has a linear range that names no step."""
LEVELS_MAX = 1_000
BINARY_STEPS = (1.0, 1.25, 1.5, 1.75)
DECIMAL_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


class Scale(StrEnum):
    """How far apart the levels of a range are: by the same difference, or by about the same ratio."""

    LINEAR = "linear"
    LOG = "log"


class _Unit(NamedTuple):
    """How the levels of a range are written. `worth` is what one of the unit counts; `whole` says that no
    level has a fraction of it."""

    text: str
    worth: float
    whole: bool
    is_size: bool = False


def rising_levels(low: Level, high: Level, scale: Scale, step: Level | None = None) -> tuple[Level, ...]:
    """The levels from `low` to `high`, both included. `step` is the difference of a linear range.

    Raises ValueFault for ends that make no range, and for a step that does not go with them.
    """
    unit = _shared_unit(low, high)
    first, last = _amount(low) / unit.worth, _amount(high) / unit.worth
    if not first < last:
        raise ValueFault(f"goes from {shown(low)} to {shown(high)}", "`from` is the smaller one")
    if scale is Scale.LOG:
        if step is not None:
            raise ValueFault("has a step and a log scale", "leave one of the two out")
        if first <= 0:
            raise ValueFault(
                f"begins at {shown(low)} on a log scale", "begin above 0, or use the linear scale"
            )
        inner = _log_steps(first, last, unit)
    else:
        inner = _linear_steps(first, last, unit, _step(step, unit))
    between = [number for number in inner if first < number < last]
    if len(between) + 2 > LEVELS_MAX:
        raise ValueFault(f"has {len(between) + 2:,} levels", f"at most {LEVELS_MAX:,}: make the step larger")
    return (low, *(_written(number, unit) for number in between), high)


def with_level(rising: tuple[Level, ...], level: Level) -> tuple[Level, ...]:
    """The levels with one more in its place, unless one of them is equal to it. Raises ValueFault for a level
    beyond their ends."""
    number, amounts = _amount(level), [_amount(one) for one in rising]
    if number in amounts:
        place = amounts.index(number)
        return (*rising[:place], level, *rising[place + 1 :])
    if not amounts[0] < number < amounts[-1]:
        raise ValueFault(
            f"the baseline {shown(level)} lies beyond {shown(rising[0])} to {shown(rising[-1])}",
            "widen the range, so that the search can come back to it",
        )
    place = sum(one < number for one in amounts)
    return (*rising[:place], level, *rising[place:])


def _amount(level: Any) -> float:
    try:
        return amount(level)
    except ValueError:
        raise ValueFault(
            f"cannot hold {shown(level)}", 'write a number, or one with its unit: 200, 0.5, "64M", "10ms"'
        ) from None


def _shared_unit(low: Level, high: Level) -> _Unit:
    """The unit of both ends. Two sizes may differ in it; levels are then whole in the unit of the first."""
    units = [re.sub(r"[-\d. ]", "", end) if isinstance(end, str) else "" for end in (low, high)]
    _amount(low), _amount(high)
    sizes = [size_unit_bytes(unit) for unit in units]
    if all(sizes):
        return _Unit(units[0], float(sizes[0]), whole=True, is_size=True)
    if units[0] != units[1]:
        raise ValueFault(f"has {shown(low)} and {shown(high)} as its ends", "write both in the same unit")
    texts = isinstance(low, str) or isinstance(high, str)
    whole = all(float(_amount(end)).is_integer() and not isinstance(end, float) for end in (low, high))
    return _Unit(units[0] if texts else "", 1.0, whole)


def _step(step: Level | None, unit: _Unit) -> float | None:
    if step is None:
        return None
    own = _shared_unit(step, step)
    if own.is_size != unit.is_size or (not own.is_size and own.text != unit.text):
        raise ValueFault(f"has the step {shown(step)} in another unit", "write it in the unit of `from`")
    number = _amount(step) / unit.worth
    if number <= 0 or (unit.whole and not number.is_integer()):
        raise ValueFault(f"has the step {shown(step)}", "a step is above 0, and whole where the ends are")
    return number


def _log_steps(first: float, last: float, unit: _Unit) -> Iterator[float]:
    base, steps = (2.0, BINARY_STEPS) if unit.is_size else (10.0, DECIMAL_STEPS)
    power = math.floor(math.log(first, base)) - 1
    while base**power <= last:
        for step in steps:
            number = _tidy(step * base**power)
            if not unit.whole or number.is_integer():
                yield number
        power += 1


def _linear_steps(first: float, last: float, unit: _Unit, step: float | None) -> Iterator[float]:
    if step is None:
        each = _round_step((last - first) / STEPS_MOST, unit)
        begin = math.floor(first / each) * each
    else:
        begin, each = first, step
    if (last - begin) / each > LEVELS_MAX + 2:
        raise ValueFault(f"has about {(last - begin) / each:,.0f} levels", f"at most {LEVELS_MAX:,}")
    for number in range(1, int((last - begin) / each) + 1):
        yield _tidy(begin + number * each)


def _round_step(least: float, unit: _Unit) -> float:
    """The smallest step of at least so much that is easy to read: 1, 2 or 5 times a power of ten, a power of
    two for sizes."""
    if unit.is_size:
        return float(max(1.0, 2.0 ** math.ceil(math.log2(least))))
    power = 10.0 ** math.floor(math.log10(least))
    found = next(_tidy(times * power) for times in (1.0, 2.0, 5.0, 10.0) if times * power >= least * 0.999)
    return max(1.0, found) if unit.whole else found


def _tidy(number: float) -> float:
    """Without what the arithmetic of binary fractions adds."""
    return float(f"{number:.9g}") if abs(number) < 1e9 else number


def _written(number: float, unit: _Unit) -> Level:
    if unit.is_size:
        return _size(int(number * unit.worth), unit.text)
    if unit.text:
        return f"{_plain(number)}{unit.text}"
    return int(number) if unit.whole and abs(number) <= INT_MAX else number


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _size(size_bytes: int, like: str) -> str:
    """A size in the largest unit in which it is whole, in the spelling of another: `1280M`, `2GB`, `64kB`."""
    ending = like[1:]
    for letter in reversed(SIZE_LETTERS):
        worth = size_unit_bytes(letter)
        if size_bytes % worth == 0:
            # Beside `MB`, the unit below is spelled `kB` by whoever minds.
            spelled = "k" if letter == "K" and ending == "B" else letter
            return f"{size_bytes // worth}{spelled.lower() if like.islower() else spelled}{ending}"
    raise AssertionError("levels are whole in the unit of the range's first end")
