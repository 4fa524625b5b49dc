"""Ratios at equal load of others: what other processes' CPU time explains is taken off within each block.

The log ratio of a block is taken to follow the difference of the CPU time that processes of others used in
the slices of the two servers; the ratio is the line's value where that difference is nothing. Blocks lay
variants out at random, so the line's slope favours none (B. L. Welch, On the z-test in randomized blocks,
1937; the control variates of A. Deng et al., 2013). No variant can touch the covariate: it holds no time of
servers, driver, Dyno or the kernel's threads. Steal is not used, because a server that wants more CPU has
more of it stolen.
"""

from __future__ import annotations

import math

import numpy as np

from dbdyno.analyse.blocks import Trials, paired_by_block
from dbdyno.analyse.intervals import bounded_exp
from dbdyno.analyse.model import Method, Ratio, Unit
from dbdyno.analyse.quantiles import BLOCKS_LEAST, t_quantile
from dbdyno.study import Interval

COVARIATE = "other_cpu_s"


def adjusted(
    metric: str, trials: Trials, baseline: Trials, confidence: float, method: Method
) -> Ratio | None:
    """The ratio trials / baseline where others used as much CPU time beside both, with Student's interval of
    one degree of freedom less. None where fewer blocks than that needs have all values, where others never
    differed, and for intervals of another kind."""
    if method.unit is not Unit.BLOCK or method.interval is not Interval.STUDENT:
        return None
    ours, theirs = trials.values(COVARIATE), baseline.values(COVARIATE)
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
