"""What the instrument says of itself: its twins, the smallest effect that blocks could show, its spreads."""

from __future__ import annotations

from dbdyno.analyse.analysis import Basis, first_blocks
from dbdyno.analyse.blocks import pairs, with_copies
from dbdyno.analyse.components import components
from dbdyno.analyse.floor import floor
from dbdyno.analyse.found import Components, Floor, SecondResponse
from dbdyno.analyse.model import AaCheck, Role
from dbdyno.analyse.second import aa_check, second_response


def find_aa(basis: Basis) -> AaCheck | None:
    """The instrument against itself, where the study has a twin of its baseline."""
    twins = [each for each in basis.trials if each.role is Role.TWIN]
    if not twins:
        return None
    response = basis.study.goal.response
    log_ratios = [ratio for twin in twins for ratio in pairs(twin, basis.trials[0], response)]
    return aa_check(response, log_ratios, basis.confidence)


def find_floor(basis: Basis) -> Floor | None:
    """The smallest effect that the blocks could show."""
    return floor(basis.trials, basis.method)


def find_components(basis: Basis) -> Components | None:
    """How much of the spread lies within trials and between them."""
    return components(first_blocks(basis.trials))


def find_second(basis: Basis) -> SecondResponse | None:
    """What a transaction costs the server's CPUs."""
    return second_response(basis.trials, with_copies(basis.trials), basis.method)
