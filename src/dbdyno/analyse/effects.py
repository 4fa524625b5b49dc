"""Each variant against the baseline: ratios, guards, verdict, and whether that verdict stands for good.

Ratios at equal load of others, or at equal places: what a covariate explains is taken off in each block.

The log ratio of a block is taken to follow the difference of a covariate between the two servers; the ratio
is the line's value where that difference is nothing. Blocks lay variants out at random, so the line's slope
favours none (B. L. Welch, On the z-test in randomized blocks, 1937; the control variates of A. Deng et al.,
2013). No variant can touch a covariate.

**Other CPU**, where a study asks for it: the CPU time that processes of others used in the slices of both. It
holds no time of servers, driver, Dyno or the kernel's threads. Steal is not used, because a server that wants
more CPU has more of it stolen.

**The place** in the block, where trials follow one another: a host that drifts favours whoever comes first.
Pairs of blocks are mirrored, so that this cancels in the mean, but it stays in the spread of blocks. Of 12
blocks and five variants on a host that loses as much from trial to trial as a trial varies by, the interval
is half as wide, and a third as wide where it loses twice as much; without a drift it is wider by 1 % (4,000
simulated runs each, 4.4 to 5.9 % of intervals missed).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from dbdyno.analyse.columns import Block, BlockValues, Fact, merged_latencies
from dbdyno.analyse.estimate import (
    Contrasts,
    Trials,
    around_means,
    contrasts_of,
    estimated_ratio,
    paired_by_block,
    ratio_between,
    summary_of,
    units_of,
    verdict_of_endings,
    with_lost,
)
from dbdyno.analyse.floor import Outlook, could_be_layout, outlook
from dbdyno.analyse.guards import fails_more, guard_result
from dbdyno.analyse.intervals import (
    as_told,
    beyond,
    bounded_exp,
    judge,
    one_sided,
    usable,
    with_narrower,
)
from dbdyno.analyse.latency import curve
from dbdyno.analyse.model import (
    BlockRatio,
    Dropped,
    GuardResult,
    Kept,
    Method,
    Percentile,
    Ratio,
    Reason,
    Role,
    Unit,
    VariantResult,
    Verdict,
)
from dbdyno.analyse.quantiles import BLOCKS_LEAST, t_quantile
from dbdyno.records.binary import CodeBeside
from dbdyno.records.metrics import FAILED_SHARE, FAILED_SHARE_MAX, RETRIES
from dbdyno.records.record import Outcome
from dbdyno.study import Goal, Interval
from dbdyno.study.designs import changed_levels
from dbdyno.study.nouns import Adjustment

COVARIATE = "other_cpu_s"
Covariate = Mapping[Block, float]


def other_cpu(trials: Trials) -> Covariate:
    """The CPU time of others beside each trial, in seconds."""
    return trials.values(COVARIATE)


def place(trials: Trials) -> Covariate:
    """When each trial had its turn: its number, and the mean of those of copies. Only differences within a
    block count."""
    found: dict[Block, list[float]] = {}
    for one in trials.each:
        for block, number in zip(one.rows.blocks, one.rows.columns.trials(one.rows.places), strict=True):
            found.setdefault(block, []).append(float(number))
    return {block: fmean(numbers) for block, numbers in found.items()}


def adjusted(
    metric: str,
    trials: Trials,
    baseline: Trials,
    confidence: float,
    method: Method,
    covariate: Callable[[Trials], Covariate],
) -> Ratio | None:
    """The ratio trials / baseline where the covariate is the same beside both, with Student's interval of
    one degree of freedom less. None where fewer blocks than that needs have all values, where the covariate
    never differed, and for intervals of another kind."""
    if method.unit is not Unit.BLOCK or method.interval is not Interval.STUDENT:
        return None
    ours, theirs = covariate(trials), covariate(baseline)
    pairs = paired_by_block(trials, baseline, metric)
    found = [
        (ours[block] - theirs[block], log_ratio)
        for block, log_ratio in zip(pairs.blocks, pairs.logs.tolist(), strict=True)
        if block in ours and block in theirs
    ]
    if len(found) <= BLOCKS_LEAST:
        return None
    # In the order of values, so that the figure does not depend on the order of records.
    beside, logs = np.array(sorted(found)).T
    about = beside - beside.mean()
    squares = float(about @ about)
    if not squares:
        return None
    slope = float(about @ logs) / squares
    left = logs - logs.mean() - slope * about
    freedom = len(logs) - 2
    centre = float(logs.mean() - slope * beside.mean())
    residual_sd = math.sqrt(float(left @ left) / freedom)
    error = residual_sd * math.sqrt(1.0 / len(logs) + beside.mean() ** 2 / squares)
    half, inner = (t_quantile(each, freedom + 1) * error for each in (confidence, one_sided(confidence)))
    ratio = Ratio(
        metric=metric,
        pairs=len(logs),
        ratio=math.exp(centre),
        low=bounded_exp(centre - half),
        high=bounded_exp(centre + half),
        log_sd=residual_sd,
        confidence=confidence,
    )
    return with_narrower(ratio, bounded_exp(centre - inner), bounded_exp(centre + inner))


LOSING = (Outcome.FAILED, Outcome.MEASURED)
"""Ends of a trial without a speed that may have to do with how fast it was. One that is blocked never ran."""
FAILURES_FOR_GOOD = 3
"""A server that did not start once may start the next time."""

BLOCK_RATIOS = TypeAdapter(tuple[BlockRatio, ...], config=ConfigDict(defer_build=True))

HAS_CODE = Fact("has_code", lambda record: record.code is not None)
IDLE = Fact("idle", lambda record: tuple((one.factor, one.idle) for one in record.evidence))
"""What the evidence of each factor says of why it could not matter; empty where it could."""


def variant_result(
    trials: Trials, baseline: Trials, goal: Goal, method: Method, costs: Sequence[str]
) -> VariantResult:
    """All facts of one variant. Twin and placebos stand outside the family: their intervals are not
    adjusted."""
    outside = trials.role in (Role.TWIN, Role.PLACEBO)
    each = goal.confidence if outside else method.confidence_each
    summaries = tuple(
        summary
        for name in dict.fromkeys((goal.response, *costs, *_failing(trials)))
        if (summary := summary_of(name, trials.values(name), goal.confidence)) is not None
    )
    result = VariantResult(
        name=trials.variant.name,
        role=trials.role,
        levels=trials.variant.levels,
        changed=changed_levels(trials.variant.levels, baseline.variant.levels),
        outcomes={outcome: count for outcome in Outcome if (count := trials.count(outcome))},
        response=next((summary for summary in summaries if summary.metric == goal.response), None),
        summaries=summaries,
        warnings=trials.rows.columns.warned(trials.rows.places),
        latency=_latency(trials),
        code=_code(trials),
    )
    if trials.role is Role.BASELINE:
        return result.but(**verdict_of_endings(trials))
    result = result.but(**_compared(trials, baseline, goal, method, each, costs))
    if outside:
        return result.but(**verdict_of_endings(trials))
    idle = _idle(result, trials, baseline)
    return result_as_told(result.but(**_verdict(result, trials, baseline, method), idle=idle), method)


def result_as_told(result: VariantResult, method: Method) -> VariantResult:
    """The narrower interval is told where the verdict rests on it."""
    if result.effect is None or result.effect.narrower is None:
        return result
    return result.but(effect=as_told(result.effect, result.verdict is Verdict.NO_EFFECT, method.margin))


def _failing(trials: Trials) -> tuple[str, ...]:
    """The shares of what failed and of what was tried again, where they are large enough to be told."""
    return tuple(
        name
        for name in (FAILED_SHARE, RETRIES)
        if max(trials.values(name).values(), default=0.0) > FAILED_SHARE_MAX
    )


def decided_result(trials: Trials, baseline: Trials, goal: Goal, method: Method) -> VariantResult | None:
    """A candidate's verdict with its ratio, if it stands whatever may follow. Nothing is made that only a
    report shows."""
    result = VariantResult(
        name=trials.variant.name,
        role=trials.role,
        levels=trials.variant.levels,
        changed=changed_levels(trials.variant.levels, baseline.variant.levels),
        outcomes={},
        effect=ratio_between(goal.response, trials, baseline, method.confidence_each, method, judged=True),
        guards=_guards(trials, baseline, goal, method),
    )
    judged = result_as_told(
        result.but(**(verdict_of_endings(trials) or _of_comparison(result, trials, baseline, method))), method
    )
    return judged if _decided(judged, trials, baseline, method) else None


def _idle(result: VariantResult, trials: Trials, baseline: Trials) -> str:
    """Why nothing that the variant changes could matter: the evidence of every measured trial says so of each
    factor, on both sides. Empty where one of them could."""
    measured = [
        dict(found)
        for side in (trials, baseline)
        for one in side.each
        for found in one.rows.columns.seen(IDLE, one.rows.ended(Outcome.MEASURED))
    ]
    reasons: dict[str, None] = {}
    for factor in result.changed:
        idle = [found.get(factor, "") for found in measured]
        if not idle or not all(idle):
            return ""
        reasons |= dict.fromkeys(idle)
    return "; ".join(reasons)


def _code(trials: Trials) -> CodeBeside | None:
    """How the code of its build differs from the baseline's, as the first trial tells it."""
    for one in trials.each:
        told = one.rows.columns.having(HAS_CODE, one.rows.places, True)
        if len(told):
            return next(one.rows.columns.records(told[:1].tolist())).code
    return None


def _block_ratios(trials: Trials, baseline: Trials, metric: str) -> tuple[BlockRatio, ...]:
    found = paired_by_block(trials, baseline, metric)
    ratios = map(math.exp, found.logs.tolist())
    each = zip(found.blocks, trials.rows.trials_of(found).tolist(), ratios, strict=True)
    # All at once, which takes a third of the time.
    return BLOCK_RATIOS.validate_python(
        [{"block": block, "trial": trial, "ratio": ratio} for (_, block), trial, ratio in each]
    )


def _compared(
    trials: Trials, baseline: Trials, goal: Goal, method: Method, each: float, costs: Sequence[str]
) -> dict[str, object]:
    judged = trials.role is Role.CANDIDATE
    plain = ratio_between(goal.response, trials, baseline, each, method, judged)
    taken_off = None
    # Luck with a host or an image is larger than what is taken off, and no interval over blocks holds it.
    if not (plain and (plain.hosts or plain.images)) and (covariate := _covariate(goal, method)):
        taken_off = adjusted(goal.response, trials, baseline, each, method, covariate)
    return {
        "block_ratios": _block_ratios(trials, baseline, goal.response),
        "effect": taken_off or plain,
        "unadjusted": plain.but(narrower=None) if plain and taken_off else None,
        "mean": _mean_beside(trials, baseline, goal.response, each, method),
        "costs": tuple(
            ratio
            for name in costs
            if name != goal.response
            and (ratio := ratio_between(name, trials, baseline, goal.confidence, method))
        ),
        "guards": _guards(trials, baseline, goal, method),
        "dropped": () if method.unit is Unit.REPETITION else _dropped(trials, baseline, goal.response),
    }


def _covariate(goal: Goal, method: Method) -> Callable[[Trials], Covariate] | None:
    """What is taken off each block; the plan alone says so."""
    if goal.adjust is Adjustment.OTHER_CPU:
        return other_cpu
    return place if method.by_place else None


def _guards(trials: Trials, baseline: Trials, goal: Goal, method: Method) -> tuple[GuardResult, ...]:
    results = (guard_result(guard, trials, baseline, method) for guard in goal.guards)
    return tuple(result for result in results if result is not None)


def _verdict(result: VariantResult, trials: Trials, baseline: Trials, method: Method) -> dict[str, object]:
    """The verdict of a candidate, whether further blocks could change it, and how many would settle it."""
    found = verdict_of_endings(trials) or _of_comparison(result, trials, baseline, method)
    judged = result.but(**found)
    # Nobody can add a block to logs.
    open_still = judged.reason in (Reason.SPREAD, Reason.TOO_FEW_PAIRS) and method.unit is Unit.BLOCK
    # More blocks of the same hosts or images do not narrow an interval over these.
    open_still = open_still and not (result.effect and (result.effect.hosts or result.effect.images))
    more = outlook(result.effect, method) if open_still and result.effect is not None else Outlook()
    logs = paired_by_block(trials, baseline, method.response).logs if method.unit is Unit.BLOCK else ()
    few = _carried_by(judged, list(logs), method)
    return {
        **found,
        "decided": _decided(judged, trials, baseline, method),
        "blocks_more": more.likely,
        "blocks_more_even": more.even,
        **({"carried_by": few} if few else {}),
    }


CARRIED_SHARE_MOST = 0.25
"""More blocks than this share are not a few."""


def _carried_by(result: VariantResult, logs: Sequence[float], method: Method) -> int:
    """Without how few of its blocks the interval of a faster or slower variant would hold 1: a stall in one
    of them can be all that there is. 0 where it takes more than a few."""
    effect = result.effect
    if effect is None or result.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return 0
    most_first = sorted(logs, reverse=effect.ratio > 1.0)
    for few in range(1, int(CARRIED_SHARE_MOST * len(logs)) + 1):
        left = estimated_ratio(effect.metric, Contrasts.apart(most_first[few:]), effect.confidence, method)
        if left is not None and left.low and left.high and left.low <= 1.0 <= left.high:
            return few
    return 0


def _of_comparison(
    result: VariantResult, trials: Trials, baseline: Trials, method: Method
) -> dict[str, object]:
    """The verdict of what was measured on both sides. Faster needs every guard: one that is undecided, or
    that could not be read, leaves it inconclusive. So does failing more than the baseline.
    """
    if result.effect is None:
        return {"verdict": Verdict.INCONCLUSIVE, "reason": _why_no_pair(trials, baseline, method.response)}
    if verdict_of_endings(baseline):
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.BASELINE_BROKEN}
    states = {guard.state for guard in result.guards}
    if Kept.BROKEN in states:
        return {"verdict": Verdict.BROKEN}
    verdict, reason = judge(result.effect, method)
    if _rests_on_luck(verdict, result, trials, baseline, method):
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.LOST}
    if verdict is Verdict.FASTER and fails_more(method.response, trials, baseline, method):
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.FAILS_MORE}
    if verdict is Verdict.FASTER and states - {Kept.KEPT}:
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.GUARD}
    if result.mean is not None and _disagree(verdict, result.effect, result.mean, method):
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.MEAN}
    told = verdict in (Verdict.FASTER, Verdict.SLOWER)
    if told and could_be_layout(result.changed, result.effect, method):
        return {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.LAYOUT}
    return {"verdict": verdict, "reason": reason}


def _rests_on_luck(
    verdict: Verdict, result: VariantResult, trials: Trials, baseline: Trials, method: Method
) -> bool:
    """Whether a verdict would be another if the blocks that a failure took from either side had been the
    worst of all for that side: a server that fails when it is slow leaves the blocks in which it was fast.
    Over the means of hosts or images each lost block counts as one of these."""
    if verdict is Verdict.INCONCLUSIVE or method.unit is not Unit.BLOCK:
        return False
    lost = [drop for drop in _dropped(trials, baseline, method.response) if drop.outcome in LOSING]
    if not lost:
        return False
    found = paired_by_block(trials, baseline, method.response)
    worst = with_lost(
        units_of(contrasts_of(trials.rows, found), result.effect).tolist(),
        ours=sum(drop.variant == trials.variant.name for drop in lost),
        theirs=sum(drop.variant != trials.variant.name for drop in lost),
        higher_is_better=method.higher_is_better,
    )
    effect = estimated_ratio(
        method.response, Contrasts.apart(worst), method.confidence_each, method, judged=True
    )
    return effect is None or judge(effect, method)[0] is not verdict


def _mean_beside(
    trials: Trials, baseline: Trials, metric: str, confidence: float, method: Method
) -> Ratio | None:
    """The mean that stands beside a signed-rank estimate; other intervals are around it."""
    if method.interval is not Interval.SIGNED_RANK:
        return None
    return ratio_between(metric, trials, baseline, confidence, around_means(method))


MEAN_LEAST = 0.5
"""A mean less than so many times as far from 1 as the middle says something else."""


def _disagree(verdict: Verdict, middle: Ratio, mean: Ratio, method: Method) -> bool:
    """Whether the mean denies what the signed-rank interval says of the middle of the blocks: a few blocks
    far off on one side move the mean alone, and the work that gets done goes with the mean."""
    if verdict is Verdict.NO_EFFECT:
        return abs(math.log(mean.ratio)) > math.log1p(method.margin)
    if verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return False
    return math.log(mean.ratio) / math.log(middle.ratio) < MEAN_LEAST


def _decided(result: VariantResult, trials: Trials, baseline: Trials, method: Method) -> bool:
    """Whether a sequential run leaves the variant out from here on.

    A speed is decided when its whole interval lies within the margin or beyond it: a user who asks for 2 %
    does not want to read "faster, perhaps by less". A level that is not available stays so, and one violated
    invariant is proof; a server that failed gets another chance.
    """
    if result.effect is not None and result.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return beyond(result.effect, method.margin)
    if result.verdict is Verdict.INCONCLUSIVE:
        return _within_layout(result, method) or _ended_for_good(baseline)
    return result.verdict is not Verdict.FAILED or _ended_for_good(trials)


def _within_layout(result: VariantResult, method: Method) -> bool:
    """Whether more blocks could not tell a build from luck of layout, because its limits hold the whole
    interval."""
    spread, effect = method.layout, result.effect
    if result.reason is not Reason.LAYOUT or spread is None or effect is None:
        return False
    return (
        effect.low is not None
        and effect.high is not None
        and (spread.low <= effect.low and effect.high <= spread.high)
    )


def _ended_for_good(trials: Trials) -> bool:
    if not (ended := verdict_of_endings(trials)):
        return False
    return ended["verdict"] is not Verdict.FAILED or trials.count(Outcome.FAILED) >= FAILURES_FOR_GOOD


def _why_no_pair(trials: Trials, baseline: Trials, response: str) -> Reason:
    if not trials.by_block:
        return Reason.NOT_RUN
    if not baseline.values(response).usable.any():
        return Reason.NO_BASELINE
    if not trials.values(response).usable.any():
        return Reason.NO_RESPONSE
    return Reason.TOO_FEW_PAIRS


def _dropped(trials: Trials, baseline: Trials, response: str) -> tuple[Dropped, ...]:
    """The blocks that gave no pair though at least one of the two trials was run, and whose trial it was."""
    sides = [(side, side.values(response)) for side in (baseline, trials)]
    if not _lacks_any(trials, baseline, sides[0][1], sides[1][1]):
        # Which is most of the time, and then no block has to be looked at.
        return ()
    run = {*trials.rows.blocks, *baseline.rows.blocks}
    lacking = {
        block: next((side for side, values in sides if not usable(values.get(block))), None)
        for block in sorted(run)
    }
    return tuple(_drop(block, side) for block, side in lacking.items() if side is not None)


def _lacks_any(trials: Trials, baseline: Trials, *sides: BlockValues) -> bool:
    """Whether a block of the two lacks a value above zero of either."""
    if trials.rows.hosts != baseline.rows.hosts:
        return True
    if not np.array_equal(np.sort(trials.rows.block_keys), np.sort(baseline.rows.block_keys)):
        return True
    return any(len(values) != len(trials.rows) or not values.usable.all() for values in sides)


def _drop(block: Block, side: Trials) -> Dropped:
    record = side.rows.record(block)
    return Dropped(
        block=block[1],
        variant=side.variant.name,
        outcome=record.outcome if record else None,
        cause=record.cause if record else "",
    )


def _latency(trials: Trials) -> tuple[Percentile, ...]:
    """The distribution over all measured trials; empty where a tally holds no histogram that can be read."""
    each = [one.rows.columns.distribution(one.rows.ended(Outcome.MEASURED)) for one in trials.each]
    units, histogram = merged_latencies(each)
    try:
        return curve(histogram, *units) if histogram is not None and len(units) == 1 else ()
    except KeyError:
        return ()
