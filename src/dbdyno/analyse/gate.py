"""A run held against another, so that a pipeline can stop by it: the baseline's variant of both.

Measured side by side, the two runs take turns block by block. They share each block's disturbances, so they
are paired by block and judged like a variant within a study.

Against a stored run of another day the run is the unit, because blocks of one run share its day and its data.
A run's value is the mean of the logs of its trials. It is held against the mean of the m runs of the
reference's setup; of equal setups the difference has the variance s^2 (1 + 1/m) and Student's law (Biometrika
6, 1908). The spread s is that of the reference's own runs where there are three or more. Where there are
fewer, other setups have to tell it: pooled over all, with sum(k_i - 1) degrees of freedom from k_i runs of
setup i, or that of the noisiest setup, whichever reaches farther, because setups differ in their spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby
from statistics import mean
from typing import Any

import numpy as np

from dbdyno.analyse.effects import result_as_told, variant_result
from dbdyno.analyse.estimate import Trials
from dbdyno.analyse.intervals import (
    bounded_exp,
    judge,
    one_sided,
    share_interval,
    usable,
    welch,
    with_narrower,
)
from dbdyno.analyse.model import Analysis, Kept, Method, Ratio, Reason, Role, VariantResult, Verdict
from dbdyno.analyse.quantiles import BLOCKS_LEAST, blocks_least, confidence_each, t_quantile
from dbdyno.frozen import Frozen, absent
from dbdyno.records import metrics
from dbdyno.records.run import Run
from dbdyno.study.trials import Variant

RUNS_LEAST = BLOCKS_LEAST
"""A spread of several setups that rests on fewer runs tells nothing of one more setup."""
RUNS_OWN_LEAST = 3
"""Runs of one setup that tell its own spread."""

COSTS = ("p99_ms", "server_cpu_us_per_op", "driver_cpu_us_per_op")


class GateWay(StrEnum):
    """How two runs were held against each other."""

    SIDE_BY_SIDE = "side by side"
    STORED = "stored"


class PastRun(Frozen):
    """A run as history knows it. Runs of one `setup` measured the same variant of the same engine's build;
    `log_mean` is the mean of the logs of its baseline's responses."""

    run: str
    setup: str
    began_unix_s: float
    log_mean: float


class Source(StrEnum):
    """Whose runs tell how far two of one setup lie apart: the reference's own, all setups together, or the
    noisiest setup."""

    OWN = "own"
    POOLED = "pooled"
    NOISIEST = "noisiest"


class NoiseFloor(Frozen):
    """How far runs of one setup lie apart on this host, by its `source`. `runs` are those of setups that were
    looked at, each with two or more, `degrees` of freedom is what the spread rests on, `log_sd` that spread.
    Two runs of one setup differ by less than the factor `ratio` with the confidence of the study."""

    source: Source = Source.POOLED
    runs: int
    setups: int
    degrees: int
    log_sd: float
    ratio: float
    since_unix_s: float
    until_unix_s: float

    @property
    def enough(self) -> bool:
        """Whether a verdict can rest on it."""
        return self.source is Source.OWN or self.runs - self.setups + 1 >= RUNS_LEAST


class FalseAlarms(Frozen):
    """How often this host's history called runs of one setup different, in the same `way` and by the same
    rule. The 95 % interval of the true share is Clopper and Pearson's (Biometrika 26, 1934)."""

    comparisons: int = 0
    called: int = 0
    promised: float
    share_low: float = 0.0
    share_high: float = 1.0


class Gate(Frozen):
    """The verdict on a run's baseline variant against that of `reference`, which was named `against`. `title`
    is that of the run's study.

    Every ratio is run / reference. `result.effect.pairs` counts blocks, or, against a stored run, the runs
    that the spread rests on.
    """

    title: str = ""
    against: str
    run: Run
    reference: Run
    way: GateWay
    method: Method
    reference_result: VariantResult
    result: VariantResult
    floor: NoiseFloor | None = None
    alarms: FalseAlarms


class HeldAnalysis(Analysis):
    """A run that was held against another one: what that found comes before what it says of its variants."""

    gate: Gate | None = absent(None)


def side_by_side(
    against: str, run: Analysis, reference: Analysis, earlier: Iterable[tuple[Analysis, Analysis]] = ()
) -> Gate:
    """Two runs that took turns. `earlier` are pairs of runs of one setup that did so: each one that was told
    apart was a false alarm."""
    method = _method(run)
    verdicts = [_paired(*pair, method).verdict for pair in earlier]
    return Gate(
        title=run.study.title,
        against=against,
        run=run.run,
        reference=reference.run,
        way=GateWay.SIDE_BY_SIDE,
        method=method,
        reference_result=reference.baseline,
        result=_paired(run, reference, method),
        alarms=_alarms(verdicts, method),
    )


def against_stored(
    against: str, run: Analysis, reference: Analysis, setup: str, past: Sequence[PastRun]
) -> Gate:
    """A run against one that was measured before. `setup` is the reference's; `past` are all runs of this
    load on this host but the run itself."""
    method = _method(run)
    alone = variant_result(_of(run, Role.CANDIDATE), _nothing(reference), run.study.goal, method, COSTS)
    now = log_mean(run)
    effect = None if now is None else _against_runs(now, setup, past, method)
    return Gate(
        title=run.study.title,
        against=against,
        run=run.run,
        reference=reference.run,
        way=GateWay.STORED,
        method=method,
        reference_result=reference.baseline,
        result=_judged(alone, effect, run, reference, method),
        alarms=_alarms(_replayed(past, method), method),
    )


def with_floor(gate: Gate, setup: str, past: Sequence[PastRun]) -> Gate:
    """The gate with what the host's history says of the noise of the reference's setup."""
    return gate.but(floor=noise_floor(past, setup, gate.method.confidence))


def log_mean(analysis: Analysis) -> float | None:
    """The mean of the logs of the baseline's responses; None without one."""
    logs = [
        math.log(trial.response)
        for trial in analysis.trials
        if trial.record.variant == analysis.baseline.name
        and trial.response is not None
        and usable(trial.response)
    ]
    return math.fsum(logs) / len(logs) if logs else None


def noise_floor(past: Sequence[PastRun], setup: str, confidence: float) -> NoiseFloor | None:
    """The spread of runs of a setup; None where no setup has two runs."""
    groups = [group for group in _by_setup(past) if len(group) > 1]
    own = next((group for group in groups if group[0].setup == setup), [])
    if len(own) >= RUNS_OWN_LEAST:
        return _floor_of(Source.OWN, [own], [own], confidence)
    if not groups:
        return None
    alone = [[group] for group in groups if len(group) >= RUNS_OWN_LEAST]
    each = [_floor_of(Source.NOISIEST, one, groups, confidence) for one in alone]
    return max([_floor_of(Source.POOLED, groups, groups, confidence), *each], key=lambda one: one.ratio)


def _floor_of(
    source: Source, groups: Sequence[Sequence[PastRun]], of: Sequence[Sequence[PastRun]], confidence: float
) -> NoiseFloor:
    """By the pooled spread of some setups, out of those that were looked at."""
    degrees = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.var([one.log_mean for one in group])) * len(group) for group in groups)
    log_sd = math.sqrt(squares / degrees)
    times = [one.began_unix_s for group in of for one in group]
    return NoiseFloor(
        source=source,
        runs=len(times),
        setups=len(of),
        degrees=degrees,
        log_sd=log_sd,
        ratio=bounded_exp(t_quantile(confidence, degrees + 1) * log_sd * math.sqrt(2.0)),
        since_unix_s=min(times),
        until_unix_s=max(times),
    )


def _by_setup(past: Iterable[PastRun]) -> list[list[PastRun]]:
    ordered = sorted(past, key=lambda one: (one.setup, one.began_unix_s, one.run))
    return [list(group) for _, group in groupby(ordered, key=lambda one: one.setup)]


def _against_runs(now: float, setup: str, past: Sequence[PastRun], method: Method) -> Ratio | None:
    """The ratio of a run to the mean of the runs of a setup; without an interval where no spread is known."""
    same = [one.log_mean for one in past if one.setup == setup]
    if not same:
        return None
    difference = now - math.fsum(same) / len(same)
    ratio = Ratio(
        metric=method.response, pairs=1, ratio=math.exp(difference), confidence=method.confidence_each
    )
    floor = noise_floor(past, setup, method.confidence_each)
    if floor is None or not floor.enough:
        return ratio
    error = floor.log_sd * math.sqrt(1.0 + 1.0 / len(same))
    each = (method.confidence_each, one_sided(method.confidence_each))
    half, inner = (t_quantile(one, floor.degrees + 1) * error for one in each)
    told = ratio.but(
        pairs=floor.degrees + 1,
        low=bounded_exp(difference - half),
        high=bounded_exp(difference + half),
        log_sd=floor.log_sd,
    )
    return with_narrower(told, bounded_exp(difference - inner), bounded_exp(difference + inner))


def _replayed(past: Sequence[PastRun], method: Method) -> list[Verdict | None]:
    """What this rule would have said of each past run, when it came, against those of its setup before it."""
    by_runs = method.but(blocks_least=RUNS_OWN_LEAST)
    ordered = sorted(past, key=lambda one: (one.began_unix_s, one.run))
    effects = [
        _against_runs(one.log_mean, one.setup, ordered[:place], method) for place, one in enumerate(ordered)
    ]
    return [judge(effect, by_runs)[0] for effect in effects if effect is not None and effect.low is not None]


def _alarms(verdicts: Sequence[Verdict | None], method: Method) -> FalseAlarms:
    called = sum(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in verdicts)
    low, high = share_interval(called, len(verdicts))
    return FalseAlarms(
        comparisons=len(verdicts),
        called=called,
        promised=round(1.0 - method.confidence_each, 12),
        share_low=low,
        share_high=high,
    )


def _method(run: Analysis) -> Method:
    """The run's method, for one comparison and its guards."""
    goal = run.study.goal
    each = confidence_each(goal.confidence, goal.comparisons(1))
    changed: dict[str, Any] = {
        "comparisons": goal.comparisons(1),
        "confidence_each": each,
        "blocks_least": blocks_least(each, run.method.interval),
    }
    return run.method.but(**changed)


def _paired(run: Analysis, reference: Analysis, method: Method) -> VariantResult:
    ours, theirs = _of(run, Role.CANDIDATE), _of(reference, Role.BASELINE)
    return variant_result(ours, theirs, run.study.goal, method, COSTS)


def _of(analysis: Analysis, role: Role) -> Trials:
    """The trials of an analysis' baseline variant."""
    baseline = analysis.baseline
    return Trials(
        variant=Variant(name=baseline.name, levels=baseline.levels),
        role=role,
        survivor=next((one for one in analysis.survivors if one.variant == baseline.name), None),
        by_block={
            (trial.record.host, trial.record.block): trial
            for trial in analysis.trials
            if trial.record.variant == baseline.name
        },
    )


def _nothing(analysis: Analysis) -> Trials:
    """The baseline variant without its trials: blocks of different days are never paired."""
    baseline = analysis.baseline
    return Trials(Variant(name=baseline.name, levels=baseline.levels), Role.BASELINE, {})


def _judged(
    alone: VariantResult, effect: Ratio | None, run: Analysis, reference: Analysis, method: Method
) -> VariantResult:
    """What was found of the run by itself, or else the verdict of the runs' ratio."""
    found: dict[str, Any] = {"effect": effect, "dropped": (), "reason": None, "blocks_more": None}
    found["blocks_more_even"] = None
    states = {guard.state for guard in alone.guards}
    if alone.verdict is not Verdict.INCONCLUSIVE:
        return result_as_told(alone.but(effect=effect, dropped=()), method)
    if reference.answer.baseline_broken:
        found |= {"reason": Reason.BASELINE_BROKEN}
    elif effect is None:
        missing = Reason.NO_RESPONSE if run.baseline.response is None else Reason.NO_BASELINE
        found |= {"reason": missing}
    elif Kept.BROKEN in states:
        found |= {"verdict": Verdict.BROKEN}
    else:
        verdict, reason = judge(effect, method.but(blocks_least=RUNS_OWN_LEAST))
        found |= {"verdict": verdict, "reason": reason}
        if verdict is Verdict.FASTER and _fails_more(run, reference, method):
            found |= {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.FAILS_MORE}
        elif verdict is Verdict.FASTER and states - {Kept.KEPT}:
            found |= {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.GUARD}
    return result_as_told(alone.but(**found), method)


def _fails_more(run: Analysis, reference: Analysis, method: Method) -> bool:
    """Whether the figure is one of the transactions that succeeded, and more of the run's failed than of the
    reference's: by more than one in 10,000, and by more than trials of one run differ in."""
    if not metrics.find(method.response).of_successes:
        return False
    ours, theirs = (
        _of(one, role).values(metrics.FAILED_SHARE).numbers.tolist()
        for one, role in ((run, Role.CANDIDATE), (reference, Role.BASELINE))
    )
    if not ours or not theirs or mean(ours) - mean(theirs) <= metrics.FAILED_SHARE_MAX:
        return False
    # A difference of shares is told as its exponential, which is above 1 where it is above 0.
    low = welch(metrics.FAILED_SHARE, ours, theirs, method.confidence_each).low
    return low is None or low > 1.0
