"""How to use a given time well: how many blocks, and how long each trial measures.

More blocks narrow an interval by their number, and by Student's quantile where they are few; but each
trial costs a warm-up and an overhead that measure nothing. So the number of blocks is chosen that makes the
interval narrowest for the spread that trials are taken to have.

What a trial takes beside its load is assumed at first, and known after the first block. Then the number of
blocks is chosen anew, for the variants that could be put into effect; their length stays, so that all trials
are alike.

All comparisons rest on the baseline. So a budget also chooses how often a block measures it, where the study
leaves that open: of k candidates and b baselines the time of an interval goes with (k + b)(1 + 1/b), which is
least where b is the root of k (C. W. Dunnett, JASA 50, 1955, 1096-1121).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from statistics import median

from dbdyno.analyse.quantiles import (
    BLOCKS_LEAST,
    SHORTEST_S,
    Costs,
    Spreads,
    claims,
    confidence_each,
    t_quantile,
)
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.plan.blocks import Order, next_trials
from dbdyno.records.record import Record, blocked_at_first, inert_in
from dbdyno.records.run import Run
from dbdyno.study import BASELINE, TRIALS_MAX, Arrangement, Design, Interval, Study
from dbdyno.study.designs import trial_count, variants_of
from dbdyno.study.trials import Trial, phases_of

BESIDE_GUESSED = Spreads(starts=0.02, seconds=0.10)
AFTER_GUESSED = Spreads(starts=0.05, seconds=0.10)
"""They weigh blocks against length where nothing was measured, and no precision that is printed rests on
them. Trials that follow one another differ by what the host does meanwhile as well."""
GAIN_LEAST = 0.99
"""One more baseline is a server more, so the interval is to be narrower by a per cent at least."""


class Precision(Frozen):
    """Half of an interval's width, as a share of the ratio, where log ratios have this spread from block to
    block."""

    spread: float
    half_width: float


def guessed(study: Study) -> Spreads:
    """How speeds are taken to spread where nothing of this load was measured here."""
    return BESIDE_GUESSED if study.arrangement is Arrangement.SIDE_BY_SIDE else AFTER_GUESSED


def costs_of(study: Study, overhead_s: float) -> Costs:
    """What the blocks of a study take, where a trial has `overhead_s` beside its load."""
    phase = phases_of(study)[0]
    longest_s = study.workload.duration_s
    return Costs(
        variants=len(variants_of(study)),
        fixed_s=study.workload.ramp_s + study.workload.warmup_s + overhead_s,
        # Each slice settles before it is measured.
        each_s=1.0 + (phase.slices or 0) * phase.settle_s / phase.duration_s,
        shortest_s=min(SHORTEST_S, longest_s),
        longest_s=longest_s,
        confidence=confidence_each(study.goal.confidence, _compared(study)),
        baselines=study.baselines_each,
    )


def baselines_worth(study: Study) -> int:
    """The most baselines that a block of it may be worth where it names no number. One where a main effect
    rests on all variants alike, and where the interval is one of ranks."""
    of_one = study.design in (Design.FACTORIAL, Design.FRACTIONAL, Design.SEARCH)
    if study.baselines is not None or of_one or study.goal.interval is Interval.SIGNED_RANK:
        return study.baselines_each
    candidates = sum(variant.candidate for variant in variants_of(study)[1:])
    return max(1, math.ceil(math.sqrt(candidates)))


def fitted_to_budget(
    study: Study,
    budget_s: float,
    overhead_s: float,
    spreads: Spreads | None = None,
    baselines_most: int = 1,
) -> Study:
    """The study with blocks, a measured part and up to so many baselines that fill the budget with the
    narrowest intervals. The measured part is never longer than the study's own, and the warm-up stays.
    Without `spreads` they are guessed.

    Raises UserError when the budget is too small for the fewest and shortest trials.
    """
    spreads = spreads or guessed(study)
    found = _fit(study, budget_s, overhead_s, spreads)
    if study.baselines is not None:
        return found
    for baselines in range(2, baselines_most + 1):
        more = study.but(baselines=baselines)
        with suppress(UserError):
            fit = _fit(more, budget_s, overhead_s, spreads)
            if _width(fit, overhead_s, spreads) < GAIN_LEAST * _width(found, overhead_s, spreads):
                found = fit
    return found


def _width(study: Study, overhead_s: float, spreads: Spreads) -> float:
    """Half of an interval's, of log ratios."""
    return costs_of(study, overhead_s).half_width(study.blocks, study.workload.duration_s, spreads)


def _fit(study: Study, budget_s: float, overhead_s: float, spreads: Spreads) -> Study:
    costs = costs_of(study, overhead_s)
    variants, trial_s = costs.variants, costs.trial_s
    least_s = variants * BLOCKS_LEAST * trial_s
    if budget_s < least_s:
        raise UserError(
            f"{budget_s:.0f} s are too few for {BLOCKS_LEAST} blocks of {variants} variants, "
            f"{trial_s:.0f} s each",
            f"give at least {math.ceil(least_s)} s, or leave out some levels",
        )
    # What is left of the division may be a rounding error.
    most = max(BLOCKS_LEAST, min(int(budget_s / (variants * trial_s)), TRIALS_MAX // variants))

    def width(blocks: int) -> float:
        return costs.half_width(blocks, costs.measured_s(blocks, budget_s), spreads)

    blocks = min(range(BLOCKS_LEAST, most + 1), key=width)
    # Rounded down, so that the sum of all trials stays within the budget.
    duration_s = max(costs.shortest_s, math.floor(costs.measured_s(blocks, budget_s) * 10) / 10)
    workload = study.workload.but(duration_s=duration_s)
    return study.but(blocks=blocks, workload=workload)


class Replan(Frozen):
    """What a budget still gives once its first block is over: blocks, the first included, of the variants
    that are not `left_out`. `overhead_s` is what a trial took beside its load (median), `enough_s` what the
    fewest blocks that give an interval worth having would take."""

    blocks: int
    left_out: frozenset[str]
    overhead_s: float
    enough_s: float

    def trials(self, study: Study) -> int:
        """How many trials that makes in all."""
        return trial_count(study.but(blocks=self.blocks), len(self.left_out))


def ask(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """The first block of all variants, then as many as what is left of the run's budget gives."""
    replan = replanned(study, run, records)
    if replan is None:
        return next_trials(study, Order.of(run), records)
    left_out = replan.left_out
    refitted = study.but(blocks=replan.blocks)
    return next_trials(refitted, Order.of(run), records, lambda earlier: left_out)


def replanned(study: Study, run: Run, records: Sequence[Record]) -> Replan | None:
    """Fills what is left of the run's budget, from the records of the first block alone: a run that is
    resumed comes to the same. None where the run has no budget, before that block is over, and where blocks
    were added to it: the budget is spent then."""
    first = [record for record in records if record.block == 0]
    variants = variants_of(study)
    if run.budget_s is None or run.sequential or len(first) < len(variants):
        return None
    left_out = blocked_at_first(first) | inert_in(first)
    going_on = [variant.name for variant in variants if variant.name not in left_out]
    used_s = sum(record.took_s for record in first)
    # The median: the trial that made the data for all others took longer than any later one will.
    overhead_s = median([record.beside_load_s for record in first if record.variant in going_on] or [0.0])
    block_s = len(going_on) * (study.workload.warmup_s + study.workload.duration_s + overhead_s)
    comparable = BASELINE in going_on and len(going_on) > 1
    more = max(0, int((run.budget_s - used_s) / block_s)) if comparable else 0
    return Replan(
        blocks=min(1 + more, max(1, TRIALS_MAX // len(variants))),
        left_out=left_out,
        overhead_s=overhead_s,
        enough_s=used_s + (BLOCKS_LEAST - 1) * block_s,
    )


def precision(study: Study, spread: float, left_out: frozenset[str] = frozenset()) -> Precision:
    """What the study's blocks can tell apart, if log ratios spread so from block to block."""
    each = confidence_each(study.goal.confidence, _compared(study, left_out))
    half = t_quantile(each, study.blocks) * spread / math.sqrt(study.blocks) if study.blocks > 1 else math.inf
    return Precision(spread=spread, half_width=math.expm1(min(half, 700.0)))


def _compared(study: Study, left_out: frozenset[str] = frozenset()) -> int:
    """How many intervals hold together; the baseline's twin and placebos have none of them."""
    candidates = [variant for variant in variants_of(study)[1:] if variant.candidate]
    return claims(study, sum(variant.name not in left_out for variant in candidates))
