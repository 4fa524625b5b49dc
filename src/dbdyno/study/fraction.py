"""Regular fractions of a two-level factorial: which variants they hold, and what they cannot tell apart.

With more factors than all combinations can be measured of, the first ones are combined freely and each
further factor takes the product of some of them as its sign. What that costs is known beforehand: effects
whose signs agree in every variant are one figure. The generators are those of the tables in Box, Hunter and
Hunter, Statistics for Experimenters (2nd edition, 2005, chapter 6), and Montgomery, Design and Analysis of
Experiments (8th edition, 2013, table 8.14 and appendix): of the highest resolution with at most 32
variants. A factor is then clear of every interaction of two factors.

A generator of even length gets a minus, so that the baseline, all factors low, is a variant of the fraction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cache

from dbdyno.frozen import Frozen

GENERATORS: Mapping[int, tuple[str, ...]] = {
    5: ("ABCD",),
    6: ("ABCDE",),
    7: ("ABCD", "ABDE"),
    8: ("ABC", "ABD", "BCDE"),
    9: ("BCDE", "ACDE", "ABDE", "ABCE"),
    10: ("ABCD", "ABCE", "ABDE", "ACDE", "BCDE"),
    11: ("ABC", "BCD", "CDE", "ACD", "ADE", "BDE"),
    12: ("ACE", "ACD", "ABD", "ABE", "CDE", "ABCDE", "ADE"),
}
"""By the number of factors: the signs of the last ones, as products of the first ones."""

FACTORS_LEAST, FACTORS_MOST = min(GENERATORS), max(GENERATORS)
LETTERS = "ABCDEFGHJKLM"
"""The factors in the study's order. I is left out, as everywhere: it stands for the mean."""

Signs = tuple[int, ...]
"""-1 for a factor's first level and 1 for its second, in the order of the factors."""


class Together(Frozen):
    """Interactions that are one figure in a fraction: each the numbers of its factors, and the sign with
    which it goes into the figure; the first goes in with 1.
    """

    interactions: tuple[tuple[int, ...], ...]
    signs: Signs

    @property
    def text(self) -> str:
        """As textbooks write it: `A×B + C×D`."""
        names = ["×".join(LETTERS[index] for index in one) for one in self.interactions]
        rest = zip(names[1:], self.signs[1:], strict=True)
        return names[0] + "".join(f" {'+' if sign > 0 else '−'} {name}" for name, sign in rest)


@cache
def fraction(factors: int) -> tuple[Signs, ...]:
    """The variants of the fraction, the baseline first."""
    words = GENERATORS[factors]
    rows = []
    for free in itertools.product((-1, 1), repeat=factors - len(words)):
        made = [
            math.prod(free[LETTERS.index(letter)] for letter in word) * (1 if len(word) % 2 else -1)
            for word in words
        ]
        rows.append((*free, *made))
    return tuple(rows)


def points(factors: int) -> tuple[Signs, ...]:
    """What is measured: the fraction, and the variant with every factor high where it is not of the fraction,
    so that the whole gap is measured and not computed.
    """
    rows, fast = fraction(factors), (1,) * factors
    return rows if fast in rows else (*rows, fast)


def column(rows: tuple[Signs, ...], interaction: tuple[int, ...]) -> Signs:
    """The signs of an interaction (or of one factor) over the variants."""
    return tuple(math.prod(row[index] for index in interaction) for row in rows)


@cache
def resolution(factors: int) -> int:
    """The fewest factors whose signs multiply to the same in every variant."""
    rows = fraction(factors)
    sizes = range(1, factors + 1)
    return next(
        size
        for size in sizes
        for word in itertools.combinations(range(factors), size)
        if len(set(column(rows, word))) == 1
    )


@cache
def together(factors: int, size: int = 2) -> tuple[Together, ...]:
    """All interactions of `size` factors, those that cannot be told apart put together."""
    rows = fraction(factors)
    groups: dict[Signs, list[tuple[tuple[int, ...], int]]] = {}
    for one in itertools.combinations(range(factors), size):
        signs = column(rows, one)
        sign = signs[0]
        groups.setdefault(tuple(sign * each for each in signs), []).append((one, sign))
    return tuple(
        Together(
            interactions=tuple(one for one, _ in group),
            signs=tuple(sign * group[0][1] for _, sign in group),
        )
        for group in groups.values()
    )


@cache
def within(factors: int, index: int) -> Together | None:
    """The interactions of three factors that a factor's effect holds besides; None where there is none. Signs
    are those with which they go into the effect.
    """
    rows = fraction(factors)
    own = column(rows, (index,))
    found = [
        (group, 1 if column(rows, group.interactions[0]) == own else -1)
        for group in together(factors, 3)
        if column(rows, group.interactions[0]) in (own, tuple(-sign for sign in own))
    ]
    if not found:
        return None
    group, sign = found[0]
    return group.but(signs=tuple(sign * each for each in group.signs))


NUMERALS = {3: "III", 4: "IV", 5: "V", 6: "VI"}


def description(factors: int) -> list[str]:
    """What the fraction of so many factors can tell, and what not, line by line."""
    height = resolution(factors)
    runs, all_runs = len(fraction(factors)), 2**factors
    clear_of = "two factors" if height == 4 else f"two to {height - 2} factors"
    lines = [
        f"{runs} of {all_runs:,} variants, resolution {NUMERALS[height]}: each factor is clear of all"
        f" interactions of {clear_of}."
    ]
    if len(points(factors)) > runs:
        lines.append("The variant with every factor at its second level is measured beside them.")
    mixed = [group for group in together(factors) if len(group.interactions) > 1]
    if mixed:
        lines.append("Interactions that cannot be told apart, by the factors' letters:")
        lines += [f"  {group.text}" for group in mixed]
    else:
        lines.append("All interactions of two factors can be told apart.")
    return lines
