"""Ratios at equal load of others, or at equal places: what a covariate explains is taken off in each block.

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
from collections.abc import Callable, Mapping
from statistics import fmean

import numpy as np

from dbdyno.analyse.blocks import Trials, paired_by_block
from dbdyno.analyse.columns import Block
from dbdyno.analyse.intervals import bounded_exp
from dbdyno.analyse.model import Method, Ratio, Unit
from dbdyno.analyse.quantiles import BLOCKS_LEAST, t_quantile
from dbdyno.study import Interval

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
    half = residual_sd * math.sqrt(1.0 / len(logs) + beside.mean() ** 2 / squares)
    half *= t_quantile(confidence, freedom + 1)
    return Ratio(
        metric=metric,
        pairs=len(logs),
        ratio=math.exp(centre),
        low=bounded_exp(centre - half),
        high=bounded_exp(centre + half),
        log_sd=residual_sd,
        confidence=confidence,
    )
