"""The floor of a run: how far two runs of one variant differ here, and what comparing within blocks is worth.

The floor is half the width that the interval of two equal variants has, from as many blocks as the run has.
A true difference of that size is told in every second run, and a smaller one is mostly missed. A twin gives
the spread of such a ratio directly. Without one it comes from what neither variant nor block explains of the
log responses, the residual of the randomised block design (R. A. Fisher, The Design of Experiments, 1935); a
variant that is noisier than the others raises it.

Blocking is judged by the efficiency of that design relative to one without blocks (F. Yates, Complex
experiments, Suppl. J. R. Stat. Soc. 2, 1935; W. G. Cochran and G. M. Cox, Experimental Designs, 2nd edition,
1957, section 4.37). Its interval follows from the F ratio of blocks to residual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analyse.blocks import Trials, pairs
from dbdyno.analyse.columns import Values
from dbdyno.analyse.intervals import quantile_of
from dbdyno.analyse.model import Method, Role
from dbdyno.analyse.noise import Blocking, Floor
from dbdyno.frozen import Frozen
from dbdyno.study import Interval

CONFIDENCE, Z_95 = 0.95, 1.96


class Variances(Frozen):
    """The mean squares of log responses between blocks, and what is left of them beside blocks and variants;
    with the number of both."""

    between: float
    residual: float
    blocks: int
    variants: int


def floor(trials: Sequence[Trials], method: Method) -> Floor | None:
    """The floor of a run's response; None while there are fewer blocks than a verdict needs."""
    found = variances([each.values(method.response) for each in trials])
    if found is None or found.blocks < method.blocks_least or not found.residual:
        return None
    of_twins = _spread_of_twins(trials, method)
    log_sd = of_twins or math.sqrt(2.0 * found.residual)
    # The mean of several baselines wanders less than one.
    log_sd *= math.sqrt((1.0 + 1.0 / (1 + sum(each.variant.shares for each in trials))) / 2.0)
    interval = method.interval if method.sequential else Interval.STUDENT
    quantile = quantile_of(interval, method.confidence_each, found.blocks, method.blocks_most)
    half_width = quantile * log_sd / math.sqrt(found.blocks)
    if math.isinf(half_width):
        return None
    alike = neighbours([pairs(each, trials[0], method.response) for each in trials[1:]])
    reach = Z_95 / math.sqrt(found.blocks)
    return Floor(
        neighbours=alike,
        neighbours_low=max(alike - reach, -1.0),
        neighbours_high=min(alike + reach, 1.0),
        twin=of_twins is not None,
        blocks=found.blocks,
        log_sd=log_sd,
        difference=math.expm1(half_width),
        confidence=method.confidence_each,
        blocking=blocking(found),
    )


def neighbours(ratios: Sequence[Sequence[float]]) -> float:
    """The first-order autocorrelation of log ratios in the order of blocks, the mean over variants, without
    the bias that taking off a mean brings (M. S. Bartlett, Suppl. J. R. Stat. Soc. 8, 1946)."""
    found = []
    for each in ratios:
        values = np.asarray(each) - np.mean(each) if len(each) > 2 else np.zeros(0)
        if power := float(values @ values):
            found.append(float(values[1:] @ values[:-1]) / power + 1.0 / len(values))
    return float(np.mean(found)) if found else 0.0


def _spread_of_twins(trials: Sequence[Trials], method: Method) -> float | None:
    """Of the log ratios twin / baseline, about zero, because both are one variant; None where too few are."""
    twins = [each for each in trials if each.role is Role.TWIN]
    ratios = [ratio for twin in twins for ratio in pairs(twin, trials[0], method.response)]
    if len(ratios) < method.blocks_least:
        return None
    return math.sqrt(math.fsum(ratio * ratio for ratio in ratios) / len(ratios)) or None


def variances(values: Sequence[Values]) -> Variances | None:
    """From each variant's values, the baseline's first. Of the others only those count that have a value in
    each of its blocks. None without two variants and two blocks."""
    blocks = np.sort(values[0].block_keys[values[0].usable])
    columns = [each.at(values[0].hosts, blocks) for each in values]
    whole = [column for column in columns if column is not None]
    if len(blocks) < 2 or len(whole) < 2:
        return None
    logs = np.log(np.array(whole).T.copy())
    rest = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
    return Variances(
        between=len(whole) * float(logs.mean(axis=1).var(ddof=1)),
        residual=float((rest**2).sum()) / ((len(blocks) - 1) * (len(whole) - 1)),
        blocks=len(blocks),
        variants=len(whole),
    )


def blocking(found: Variances) -> Blocking:
    """How many times as many trials the same precision takes without blocks."""
    # Here, because it takes longer to import than most commands run.
    from scipy import stats

    blocks, variants = found.blocks, found.variants
    freedom = blocks - 1, (blocks - 1) * (variants - 1)
    low, high = (float(stats.f.ppf(0.5 + side * CONFIDENCE / 2.0, *freedom)) for side in (-1.0, 1.0))
    within = blocks * (variants - 1) / (blocks * variants - 1)
    efficiency = [within + (1.0 - within) * found.between / found.residual / by for by in (1.0, high, low)]
    return Blocking(efficiency=efficiency[0], low=efficiency[1], high=efficiency[2])
