"""Placebos: the baseline's code at other addresses, and how far mere luck of layout goes.

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
from collections.abc import Iterable, Sequence

from dbdyno.analyse.blocks import Trials, ending, ratio_between, with_copies
from dbdyno.analyse.found import LayoutSpread
from dbdyno.analyse.intervals import bounded_exp
from dbdyno.analyse.model import Method, Ratio, Role
from dbdyno.analyse.quantiles import confidence_each, t_quantile
from dbdyno.records.record import Outcome
from dbdyno.study.builds import changed_levels, of_build


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
