"""What single factors give up, from what whole variants do: no layer is asked."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.analyse.model import Factorial, Gap
from dbdyno.frozen import Level
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.space import Promise

GivenUp = Mapping[str, tuple[Promise, ...]]
"""What variants give up that the baseline keeps, by name, without those that keep all."""


def given_up_at(study: Study, given_up: GivenUp, factor: str, level: Level) -> tuple[Promise, ...]:
    """What all variants with a level of a factor give up, without what all others do as well."""
    sides: tuple[list[set[Promise]], list[set[Promise]]] = ([], [])
    for variant in variants_of(study):
        sides[variant.levels.get(factor) != level].append(set(given_up.get(variant.name, ())))
    there, elsewhere = (set.intersection(*side) if side else set() for side in sides)
    return tuple(sorted(there - elsewhere))


def gap_with_losses(gap: Gap | None, study: Study, given_up: GivenUp | None) -> Gap | None:
    """A gap whose shares say what the fast level of their factor gives up."""
    if gap is None or not given_up:
        return gap
    shares = tuple(one.but(gives_up=given_up_at(study, given_up, one.factor, one.fast)) for one in gap.shares)
    return gap.but(shares=shares)


def factorial_with_losses(
    found: Factorial | None, study: Study, given_up: GivenUp | None
) -> Factorial | None:
    """A factorial whose main effects say what their level gives up."""
    if found is None or not given_up:
        return found
    main = tuple(one.but(gives_up=given_up_at(study, given_up, one.factor, one.level)) for one in found.main)
    return found.but(main=main)
