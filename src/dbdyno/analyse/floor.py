"""The floor of a run: how far two runs of one variant differ here, and what comparing within blocks is worth.

The floor is half the width that the interval of two equal variants has, from as many blocks as the run has.
A true difference of that size is told in every second run, and a smaller one is mostly missed. A twin gives
the spread of such a ratio directly. Without one it comes from what neither variant nor block explains of the
log responses, the residual of the randomised block design (R. A. Fisher, The Design of Experiments, 1935); a
variant that is noisier than the others raises it.

Blocking is judged by the efficiency of that design relative to one without blocks (F. Yates, Complex
experiments, Suppl. J. R. Stat. Soc. 2, 1935; W. G. Cochran and G. M. Cox, Experimental Designs, 2nd edition,
1957, section 4.37). Its interval follows from the F ratio of blocks to residual.

Placebos: the baseline's code at other addresses, and how far mere luck of layout goes.

Where a function lies decides which cache lines and branch predictors it shares. So a speed changes by some
per cent with the order of linking, though no instruction does (T. Mytkowicz, A. Diwan, M. Hauswirth and P. F.
Sweeney, Producing wrong data without doing anything obviously wrong!, ASPLOS 2009). Placebos measure that.

A build without an effect draws its luck as the baseline and its placebos do. So the logs of their speeds are
a sample of layouts, and one more lies within its prediction limit: mean +- t sd sqrt(1 + 1/n), with n - 1
degrees of freedom (G. J. Hahn and W. Q. Meeker, Statistical Intervals, 1991, chapter 4). The limit holds for
all builds of a run together (Šidák).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np

from dbdyno.analyse.columns import Floats, Places, Values
from dbdyno.analyse.estimate import Trials, ending, pairs, ratio_between, with_copies
from dbdyno.analyse.found import Blocking, Floor, LayoutSpread
from dbdyno.analyse.intervals import bounded_exp, quantile_of
from dbdyno.analyse.model import Method, Ratio, Role
from dbdyno.analyse.quantiles import confidence_each, f_quantile, t_quantile
from dbdyno.frozen import Frozen
from dbdyno.records.record import Outcome
from dbdyno.study import Interval
from dbdyno.study.designs import changed_levels, of_build


def layout_spread(trials: Sequence[Trials], method: Method) -> LayoutSpread | None:
    """How far the placebos of a run lie from its baseline, and how far one more layout may; None without one
    that was measured in as many blocks as a verdict needs."""
    baseline = with_copies(trials)
    placebos = [each for each in trials if each.role is Role.PLACEBO and not ending(each)]
    ratios = (ratio_between(method.response, each, baseline, method.confidence, method) for each in placebos)
    enough = (ratio for ratio in ratios if ratio is not None and ratio.pairs >= method.blocks_least)
    logs = [math.log(ratio.ratio) for ratio in enough]
    return spread_of(logs, _builds(trials, method), method.confidence) if logs else None


def _builds(trials: Sequence[Trials], method: Method) -> int:
    """How many candidates are held against the placebos. A run that stops by what it saw must not let that
    decide their number."""
    baseline = trials[0].variant.levels
    return sum(
        each.role is Role.CANDIDATE
        and any(map(of_build, changed_levels(each.variant.levels, baseline)))
        and (method.sequential or bool(each.count(Outcome.MEASURED)))
        for each in trials
    )


def spread_of(logs: Sequence[float], builds: int, confidence: float) -> LayoutSpread:
    """The limits from the logs of the ratios placebo / baseline, for so many builds together. The baseline is
    a layout as well: the one whose log is 0."""
    layouts = [0.0, *logs]
    reach = t_quantile(confidence_each(confidence, builds), len(layouts)) * statistics.stdev(layouts)
    mean, half = statistics.fmean(layouts), reach * math.sqrt(1.0 + 1.0 / len(layouts))
    return LayoutSpread(
        placebos=len(logs),
        difference=math.expm1(max(map(abs, logs))),
        builds=builds,
        low=bounded_exp(mean - half),
        high=bounded_exp(mean + half),
        apart=bounded_exp(reach * math.sqrt(2.0)),
    )


def could_be_layout(changed: Iterable[str], effect: Ratio, method: Method) -> bool:
    """Whether luck of layout may be all of a build's effect against the baseline. A variant that changes
    these factors may be none."""
    spread = method.layout
    return spread is not None and _reaches(changed, effect, spread.low, spread.high)


def apart_by_layout(changed: Iterable[str], ratio: Ratio, method: Method) -> bool:
    """Whether luck of layout may be all that lies between two variants, neither of which is the baseline."""
    spread = method.layout
    return spread is not None and _reaches(changed, ratio, 1.0 / spread.apart, spread.apart)


def _reaches(changed: Iterable[str], ratio: Ratio, low: float, high: float) -> bool:
    """Whether the interval of builds reaches into the limits."""
    outside = ratio.low is not None and ratio.high is not None and (ratio.low > high or ratio.high < low)
    return not outside and any(map(of_build, changed))


CONFIDENCE = 0.95
ORDERS = 499
"""Of the blocks that are drawn: they tell the spread of a correlation to 3 %."""
HIGH_Z = 1.645
"""Of a one-sided limit of 95 %."""
ALIKE_MOST = 0.95


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
    return Floor(
        neighbours=alike.correlation,
        neighbours_p=alike.p,
        neighbours_high=alike.high,
        twin=of_twins is not None,
        blocks=found.blocks,
        log_sd=log_sd,
        difference=math.expm1(half_width),
        confidence=method.confidence_each,
        blocking=blocking(found),
    )


class Neighbours(NamedTuple):
    """The correlation of blocks that follow one another, the chance of one as high where they are
    independent, and how high it may be (95 %, one-sided)."""

    correlation: float
    p: float
    high: float


def neighbours(ratios: Sequence[Sequence[float]]) -> Neighbours:
    """The first-order autocorrelation of log ratios in the order of blocks, the mean over variants, without
    the bias that taking off a mean brings (M. S. Bartlett, Suppl. J. R. Stat. Soc. 8, 1946).

    Its error is that of other orders of the same blocks (R. A. Fisher, The Design of Experiments, 1935). All
    variants of a block stay together, because they share the baseline. A correlation is told too low, the
    more the higher it is (M. G. Kendall, Biometrika 41, 1954), so its limit is raised by as much.
    """
    rows = [np.asarray(each) - np.mean(each) for each in ratios if len(each) > ALIKE_LEAST]
    # Rows that lack a block have other neighbours, so they tell nothing of the others' orders.
    longest = max(map(len, rows), default=0)
    table = np.array([row for row in rows if len(row) == longest and row.any()])
    if not len(table):
        return Neighbours(0.0, 1.0, ALIKE_MOST)
    own = float(_correlations(table).mean())
    orders = _orders(longest)
    error = float(np.mean([_correlations(row[orders]) for row in table], axis=0).std())
    p = 0.5 * math.erfc(own / error / math.sqrt(2.0)) if error else 1.0
    high = (own + HIGH_Z * error) * longest / (longest - ALIKE_LEAST)
    return Neighbours(own, p, min(high, ALIKE_MOST))


ALIKE_LEAST = 4
"""Fewer blocks tell nothing of their neighbours."""


def _correlations(table: Floats) -> Floats:
    """Of each row."""
    found: Floats = (table[:, 1:] * table[:, :-1]).sum(axis=1) / (table**2).sum(axis=1)
    return found + 1.0 / len(table[0])


@lru_cache(maxsize=4)
def _orders(count: int) -> Places:
    """Other orders of so many blocks."""
    draw = np.random.default_rng(1)
    return np.array([draw.permutation(count) for _ in range(ORDERS)])


def widened(correlation: float) -> float:
    """How many times as wide an interval over blocks that correlate so with their neighbours, and with others
    accordingly less, would have to be."""
    return math.sqrt((1.0 + correlation) / (1.0 - correlation)) if correlation > 0.0 else 1.0


def unseen_share(blocks: int) -> float:
    """What strikes a smaller share of blocks than this can be in none of so many (95 %, binomial law)."""
    return float(1.0 - (1.0 - CONFIDENCE) ** (1.0 / blocks))


def smallest(effects: Iterable[Ratio | None]) -> float | None:
    """The smallest difference (a share) that a run can see: half the width of an interval whose spread is
    pooled over all comparisons. Such a difference is found in every second run. The narrowest of several
    intervals is narrow by chance, so what it promises is found less often. None without an interval."""
    halves = [half for one in effects if (half := _half(one)) is not None]
    if not halves:
        return None
    return math.expm1(math.sqrt(math.fsum(half**2 for half in halves) / len(halves)))


def noisier(effects: Mapping[str, Ratio | None]) -> list[str]:
    """The comparisons that spread more than the middle one does, by more than chance (F ratio, 95 % for all
    together): one that waits for the disk is noisier than one that does not."""
    halves = {name: half for name, one in effects.items() if (half := _half(one)) is not None}
    if len(halves) < 2:
        return []
    middle = median(halves.values())
    pairs = min(one.pairs for name, one in effects.items() if one is not None and name in halves) - 1
    limit = f_quantile(1.0 - (1.0 - CONFIDENCE) / len(halves), pairs, pairs) if pairs else math.inf
    return [name for name, half in halves.items() if half**2 > limit * middle**2]


def _half(effect: Ratio | None) -> float | None:
    if effect is None or not effect.low or not effect.high:
        return None
    return (math.log(effect.high) - math.log(effect.low)) / 2.0


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
    blocks, variants = found.blocks, found.variants
    freedom = blocks - 1, (blocks - 1) * (variants - 1)
    low, high = (f_quantile(0.5 + side * CONFIDENCE / 2.0, *freedom) for side in (-1.0, 1.0))
    within = blocks * (variants - 1) / (blocks * variants - 1)
    efficiency = [within + (1.0 - within) * found.between / found.residual / by for by in (1.0, high, low)]
    return Blocking(efficiency=efficiency[0], low=efficiency[1], high=efficiency[2])
