"""Placebos: the baseline's code at other addresses, and how far mere luck of layout goes.

Where a function lies decides which cache lines and branch predictors it shares. So a speed changes by some
per cent with the order of linking, though no instruction does (T. Mytkowicz, A. Diwan, M. Hauswirth and P. F.
Sweeney, Producing wrong data without doing anything obviously wrong!, ASPLOS 2009). Placebos measure that. A
build without an effect draws its luck as they do, so of it and k placebos it goes furthest in one of k + 1
cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dbdyno.analyse.blocks import Trials, ending, ratio_between, with_copies
from dbdyno.analyse.intervals import beyond
from dbdyno.analyse.model import LayoutSpread, Method, Ratio, Role
from dbdyno.study.builds import of_build


def layout_spread(trials: Sequence[Trials], method: Method) -> LayoutSpread | None:
    """How far the placebos of a run lie from its baseline; None without one that was measured in as many
    blocks as a verdict needs."""
    baseline = with_copies(trials)
    placebos = [each for each in trials if each.role is Role.PLACEBO and not ending(each)]
    ratios = (ratio_between(method.response, each, baseline, method.confidence, method) for each in placebos)
    enough = (ratio for ratio in ratios if ratio is not None and ratio.pairs >= method.blocks_least)
    distances = [abs(math.log(ratio.ratio)) for ratio in enough]
    if not distances:
        return None
    return LayoutSpread(placebos=len(distances), difference=math.expm1(max(distances)))


def could_be_layout(changed: Iterable[str], effect: Ratio, method: Method) -> bool:
    """Whether the effect of a build reaches into the placebos' spread. A variant that changes these factors
    may be none."""
    spread = method.layout
    return spread is not None and any(map(of_build, changed)) and not beyond(effect, spread.difference)
