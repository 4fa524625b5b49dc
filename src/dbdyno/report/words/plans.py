"""What is said of plans that changed beside a variant's effect. It names no cause."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.found import PlanChange, PlansCompared
from dbdyno.analyse.model import Analysis
from dbdyno.frozen import listed
from dbdyno.records.record import NO_PLAN_NEEDED
from dbdyno.report.words.numbers import plural
from dbdyno.report.words.safe import clean

CHANGE_MOST = 120
NAMED_MOST = 3


def beside(analysis: Analysis, variant: str) -> str:
    """The end of a sentence about a variant; empty where no plan changed but those that flip in the baseline
    as well, which tell nothing of a variant."""
    if analysis.plans is None:
        return ""
    flip = _flipping(analysis)
    changes = [
        one for one in analysis.plans.of(variant) if one.statement not in flip or one.changed == one.blocks
    ]
    if not changes:
        return ""
    first = changes[0]
    text = f", and the plan of `{clean(first.statement)}` changed{blocks(first)}: {_short(first.change)}"
    rest = len(changes) - 1
    return f"{text} (and {rest} more)" if rest else text


def flipping(analysis: Analysis) -> str:
    """The statements whose plan is not the same in all blocks of the baseline; empty where there are none."""
    return listed([f"`{clean(name)}`" for name in _flipping(analysis)], NAMED_MOST)


def _flipping(analysis: Analysis) -> list[str]:
    flips = analysis.plans.flips if analysis.plans is not None else ()
    return [flip.statement for flip in flips if flip.variant == analysis.baseline.name]


def blocks(change: PlanChange) -> str:
    """In which share of the blocks it changed; empty where it did in all."""
    return "" if change.changed == change.blocks else f" in {change.changed} of {change.blocks} blocks"


def unchanged(found: PlansCompared) -> str:
    """The short line where no plan differs from the baseline's; empty where one does, or none is known."""
    if any(one.changes for one in found.variants) or not found.statements:
        return ""
    if not found.variants:
        return f"Plans are known of {plural(found.statements, 'statement')}."
    return "Query plans: the same in all variants."


def _short(text: str) -> str:
    text = clean(text)
    return text if len(text) <= CHANGE_MOST else f"{text[: CHANGE_MOST - 1]}…"


def remarks(found: PlansCompared, most: int = 8) -> list[str]:
    """What else is to be known: plans that flip within one variant, and statements without a plan."""
    lines = [
        f"The plan of `{clean(flip.statement)}` flips between blocks of {clean(flip.variant)}: "
        + "; ".join(
            f"{clean(form.summary)} in {form.blocks} of {sum(one.blocks for one in flip.forms)} blocks"
            for form in flip.forms
        )
        + "."
        for flip in found.flips
    ]
    lines += [
        f"No plan of `{clean(one.name)}` is known: {clean(one.why)}."
        for one in found.unexplained
        if one.why != NO_PLAN_NEEDED
    ]
    return [*lines[:most], *_more(lines[most:])]


def _more(lines: Sequence[str]) -> list[str]:
    return (
        [f"And {plural(len(lines), 'remark')} more: `dyno report RUN TRIAL` has them all."] if lines else []
    )
