"""Each variant against the baseline: pairs by block, ratios, guards, verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analyse.intervals import blocks_more, judge, ratio_of, t_quantile, usable
from dbdyno.analyse.latency import added, curve, decode
from dbdyno.analyse.model import (
    BlockRatio,
    Dropped,
    GuardResult,
    Kept,
    Method,
    Percentile,
    Reason,
    Role,
    Summary,
    TrialResult,
    VariantResult,
    Verdict,
)
from dbdyno.frozen import level_text
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome
from dbdyno.study import Goal, Guard
from dbdyno.study.trials import Variant

Block = tuple[str, int]
"""A block is a host and a number: only trials of one host can be paired."""

WITHOUT_SPEED = (Outcome.FAILED, Outcome.BLOCKED, Outcome.INERT)
"""Outcomes that become a variant's verdict when it has no measured trial, the gravest first."""


@dataclass(frozen=True)
class Trials:
    """The trials of one variant, by block."""

    variant: Variant
    role: Role
    by_block: Mapping[Block, TrialResult]

    def values(self, metric: str) -> dict[Block, float]:
        """A metric by block, over the measured trials that have it."""
        found = metrics.find(metric)
        readings = {
            block: found.read(trial.record)
            for block, trial in self.by_block.items()
            if trial.record.outcome is Outcome.MEASURED
        }
        return {
            block: value for block, value in readings.items() if value is not None and math.isfinite(value)
        }

    def with_outcome(self, outcome: Outcome) -> list[TrialResult]:
        return [trial for trial in self.by_block.values() if trial.record.outcome is outcome]

    @property
    def limited_by_driver(self) -> bool:
        """Whether the driver, not the server, set the pace of one of them."""
        failed = self.with_outcome(Outcome.FAILED)
        return any(Doubt.DRIVER_SATURATED in trial.record.warnings for trial in failed)


def variant_result(
    trials: Trials, baseline: Trials, goal: Goal, method: Method, costs: Sequence[str]
) -> VariantResult:
    """All facts of one variant. The twin stands outside the family: its interval is not adjusted."""
    each = goal.confidence if trials.role is Role.TWIN else method.confidence_each
    summaries = tuple(
        summary
        for name in dict.fromkeys((goal.response, *costs))
        if (summary := summary_of(name, trials.values(name), goal.confidence)) is not None
    )
    result = VariantResult(
        name=trials.variant.name,
        role=trials.role,
        levels=trials.variant.levels,
        changed={
            factor: level
            for factor, level in trials.variant.levels.items()
            if factor not in baseline.variant.levels
            or level_text(baseline.variant.levels[factor]) != level_text(level)
        },
        outcomes={outcome: count for outcome in Outcome if (count := len(trials.with_outcome(outcome)))},
        response=next((summary for summary in summaries if summary.metric == goal.response), None),
        summaries=summaries,
        warnings=_warnings(trials),
        latency=_latency(trials),
    )
    if trials.role is Role.BASELINE:
        return result.model_copy(update=_ending(trials))
    result = result.model_copy(update=_compared(trials, baseline, goal, method, each, costs))
    if trials.role is Role.TWIN:
        return result.model_copy(update=_ending(trials))
    return result.model_copy(update=_verdict(result, trials, baseline, method))


def pairs(trials: Trials, baseline: Trials, metric: str) -> list[float]:
    """The log ratios variant / baseline, one per block in which both have a value above zero, in the order
    of blocks.
    """
    return list(_paired(trials, baseline, metric).values())


def _paired(trials: Trials, baseline: Trials, metric: str) -> dict[Block, float]:
    return log_ratios(trials.values(metric), baseline.values(metric))


def log_ratios(ours: Mapping[Block, float], theirs: Mapping[Block, float]) -> dict[Block, float]:
    """The log ratios ours / theirs by block, of the blocks in which both are above zero."""
    return {
        block: math.log(ours[block]) - math.log(theirs[block])
        for block in sorted(ours.keys() & theirs.keys())
        if usable(ours[block]) and usable(theirs[block])
    }


def _block_ratios(trials: Trials, baseline: Trials, metric: str) -> tuple[BlockRatio, ...]:
    return tuple(
        BlockRatio(block=block[1], trial=trials.by_block[block].record.trial, ratio=math.exp(log_ratio))
        for block, log_ratio in _paired(trials, baseline, metric).items()
    )


def _compared(
    trials: Trials, baseline: Trials, goal: Goal, method: Method, each: float, costs: Sequence[str]
) -> dict[str, object]:
    return {
        "block_ratios": _block_ratios(trials, baseline, goal.response),
        "effect": ratio_of(
            goal.response, pairs(trials, baseline, goal.response), each, anytime=method.sequential
        ),
        "costs": tuple(
            ratio
            for name in costs
            if name != goal.response
            and (ratio := ratio_of(name, pairs(trials, baseline, name), goal.confidence)) is not None
        ),
        "guards": tuple(
            result for guard in goal.guards if (result := _guard(guard, trials, baseline, goal)) is not None
        ),
        "dropped": _dropped(trials, baseline, goal.response),
    }


def _ending(trials: Trials) -> dict[str, object]:
    """The verdict that the trials' ends alone decide: one broken trial breaks a variant, and one in which the
    driver was the limit leaves it without a speed, as the others were only the slower ones; other ends decide
    when none was measured.
    """
    without_speed = trials.limited_by_driver or not trials.with_outcome(Outcome.MEASURED)
    endings = (Outcome.BROKEN, *(WITHOUT_SPEED if without_speed else ()))
    for outcome in endings:
        ended = trials.with_outcome(outcome)
        if ended:
            record = ended[0].record
            return {"verdict": Verdict(outcome.value), "cause": record.cause, "remedy": record.remedy}
    return {}


def _verdict(result: VariantResult, trials: Trials, baseline: Trials, method: Method) -> dict[str, object]:
    ending = _ending(trials)
    if ending:
        return ending
    if any(guard.state is Kept.BROKEN for guard in result.guards):
        return {"verdict": Verdict.BROKEN}
    if result.effect is None:
        return {"verdict": Verdict.INCONCLUSIVE, "reason": _why_no_pair(trials, baseline, method.response)}
    verdict, reason = judge(result.effect, method)
    settled_by = blocks_more(result.effect, method.margin) if reason is Reason.SPREAD else None
    return {"verdict": verdict, "reason": reason, "blocks_more": settled_by}


def _why_no_pair(trials: Trials, baseline: Trials, response: str) -> Reason:
    if not trials.by_block:
        return Reason.NOT_RUN
    if not any(usable(value) for value in baseline.values(response).values()):
        return Reason.NO_BASELINE
    if not any(usable(value) for value in trials.values(response).values()):
        return Reason.NO_RESPONSE
    return Reason.TOO_FEW_PAIRS


def _dropped(trials: Trials, baseline: Trials, response: str) -> tuple[Dropped, ...]:
    """The blocks that gave no pair though at least one of the two trials was run, and whose trial it was."""
    sides = [(side, side.values(response)) for side in (baseline, trials)]
    lacking = {
        block: next((side for side, values in sides if not usable(values.get(block))), None)
        for block in sorted(trials.by_block.keys() | baseline.by_block.keys())
    }
    return tuple(_drop(block, side) for block, side in lacking.items() if side is not None)


def _drop(block: Block, side: Trials) -> Dropped:
    trial = side.by_block.get(block)
    return Dropped(
        block=block[1],
        variant=side.variant.name,
        outcome=trial.record.outcome if trial else None,
        cause=trial.record.cause if trial else "",
    )


def summary_of(metric: str, values: Mapping[Block, float], confidence: float) -> Summary | None:
    """The mean over trials and its t interval, on logs where all values are above zero. One trial: its value
    alone.
    """
    if not values:
        return None
    numbers = sorted(values.values())
    if all(usable(number) for number in numbers):
        ratio = ratio_of(metric, [math.log(number) for number in numbers], confidence)
        assert ratio is not None  # there is at least one value
        return Summary(
            metric=metric,
            trials=len(numbers),
            mean=ratio.ratio,
            low=ratio.ratio if ratio.low is None else ratio.low,
            high=ratio.ratio if ratio.high is None else ratio.high,
        )
    mean = math.fsum(numbers) / len(numbers)
    half = 0.0
    if len(numbers) > 1:
        spread = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))
        half = t_quantile(confidence, len(numbers)) * spread / math.sqrt(len(numbers))
    return Summary(
        metric=metric, trials=len(numbers), mean=mean, low=mean - half, high=mean + half, geometric=False
    )


def _guard(guard: Guard, trials: Trials, baseline: Trials, goal: Goal) -> GuardResult | None:
    """A guard on one variant. It is broken or kept when the whole interval lies on one side of the bound.

    Intervals of guards are not adjusted for the number of comparisons: a guard errs towards raising its
    hand. A single trial is taken at its value. None when the guard is not a metric's, or has no reading
    here.
    """
    if guard.bound is None:
        return None
    values = trials.values(guard.metric)
    if guard.relative:
        ratio = ratio_of(guard.metric, pairs(trials, baseline, guard.metric), goal.confidence)
        if ratio is None:
            return None
        middle, low, high, count = ratio.ratio, ratio.low, ratio.high, ratio.pairs
    else:
        summary = summary_of(guard.metric, values, goal.confidence)
        if summary is None:
            return None
        middle, low, high, count = summary.mean, summary.low, summary.high, summary.trials
    return GuardResult(
        text=guard.text,
        metric=guard.metric,
        state=_side(guard, middle if low is None else low, middle if high is None else high),
        value=middle,
        low=low,
        high=high,
        bound=guard.bound,
        relative=guard.relative,
        trials=count,
    )


def _side(guard: Guard, low: float, high: float) -> Kept:
    assert guard.bound is not None
    if not guard.at_most:
        low, high, bound = -high, -low, -guard.bound
    else:
        bound = guard.bound
    if high <= bound:
        return Kept.KEPT
    return Kept.BROKEN if low > bound else Kept.UNDECIDED


def _latency(trials: Trials) -> tuple[Percentile, ...]:
    """The distribution over all measured trials; empty where a tally holds no histogram that can be read."""
    tallies = [trial.record.tally or {} for trial in trials.with_outcome(Outcome.MEASURED)]
    units = {tally.get("histogram_unit", "us") for tally in tallies}
    texts = [tally["histogram"] for tally in tallies if tally.get("histogram")]
    try:
        return curve(added(decode(text) for text in texts), *units) if len(units) == 1 else ()
    except (ValueError, KeyError):
        return ()


def _warnings(trials: Trials) -> dict[Doubt, int]:
    """How many trials carry each warning."""
    return {
        warning: count
        for warning in Doubt
        if (count := sum(warning in trial.warnings for trial in trials.by_block.values()))
    }
