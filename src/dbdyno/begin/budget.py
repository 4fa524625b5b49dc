"""What is told of a budget: what it gives, and how small a difference that can tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dbdyno.analyse.quantiles import BLOCKS_LEAST
from dbdyno.plan.budget import Replan, costs_of, precision
from dbdyno.report.words import numbers
from dbdyno.study import Study

if TYPE_CHECKING:
    # A plan without a budget reads no runs.
    from dbdyno.begin.basis import Basis


def budget_text(study: Study, basis: Basis) -> str:
    """What was made of a budget, what the intervals can tell apart, and what that rests on."""
    given = f"the budget gives {study.blocks} blocks of {study.workload.duration_s:g} s measured per trial"
    if not basis.measured:
        return f"{given}; {_reached(study)} ({basis.words})"
    half = costs_of(study, basis.overhead_s).half_width(
        study.blocks, study.workload.duration_s, basis.spreads
    )
    return f"{given}; half of an interval's width: about ±{math.expm1(half):.1%} ({basis.words})"


def replan_text(study: Study, replan: Replan) -> str:
    """What the first block showed, and what the rest of the budget gives."""
    blocked = (
        f", {numbers.plural(len(replan.left_out), 'blocked variant')} left out" if replan.left_out else ""
    )
    seen = f"the first block took {replan.overhead_s:.1f} s per trial beside the load{blocked}"
    if replan.blocks == 1:
        need = f"{BLOCKS_LEAST} blocks need {replan.enough_s:.0f} s"
        return f"{seen}: no second block fits, and one gives no interval; {need}"
    settled = study.but(blocks=replan.blocks)
    return f"{seen}: the budget gives {replan.blocks} blocks; {_reached(settled, replan.left_out)}"


def _reached(study: Study, left_out: frozenset[str] = frozenset()) -> str:
    reached = (precision(study, spread, left_out) for spread in (0.02, 0.05, 0.10))
    told = ", ".join(f"±{each.half_width:.1%} if ratios vary by {each.spread:.0%}" for each in reached)
    return f"half of an interval's width: {told} from block to block"
