"""A second response: what a transaction costs the server's CPUs.

A host that wanders takes time from a server and little of the CPU time that its work needs. So the same
blocks can tell apart what variants cost where they cannot tell apart how fast they are. It is told of every
run that read it, because one that is told only where it happens to repeat well has intervals that are too
narrow: of equal variants 18 to 26 % were told apart.

The instrument against itself: twin and baseline are the same variant, so any difference called is a false
alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from dbdyno.analyse.estimate import Trials, ratio_between
from dbdyno.analyse.found import CostRatio, SecondResponse
from dbdyno.analyse.intervals import ratio_of, share_interval
from dbdyno.analyse.model import AaCheck, Method, Role, Unit
from dbdyno.analyse.quantiles import BLOCKS_LEAST, confidence_each

BLOCKS_PER_COMPARISON = BLOCKS_LEAST


def aa_check(metric: str, log_ratios: Sequence[float], confidence: float) -> AaCheck:
    """The share of A/A comparisons called different, from the log ratios twin / baseline in the order of
    blocks.

    Consecutive blocks form disjoint groups of six, the last one larger where they do not divide, and each
    group is judged as a study of its own: its unadjusted t interval excludes 1, or not. Consecutive, since
    that is what a short study would have measured; drift between blocks shows as too many alarms. One
    promises 1 - confidence; what so few comparisons tell of the true share is its Clopper-Pearson interval
    (Biometrika 26, 1934).
    """
    groups = _groups(log_ratios)
    judged = [ratio_of(metric, group, confidence) for group in groups]
    called = sum(
        1
        for ratio in judged
        if ratio is not None
        and ratio.low is not None
        and ratio.high is not None
        and not ratio.low <= 1.0 <= ratio.high
    )
    return _check(
        AaCheck(
            effect=ratio_of(metric, log_ratios, confidence),
            pairs=len(log_ratios),
            blocks_per_comparison=BLOCKS_PER_COMPARISON,
            comparisons=len(groups),
            called=called,
            promised=1.0 - confidence,
        )
    )


def pooled(checks: Sequence[AaCheck]) -> AaCheck:
    """The checks of several runs counted together; they must have promised the same. Raises ValueError
    otherwise.
    """
    if len({check.promised for check in checks}) != 1:
        raise ValueError("A/A checks can be pooled only when all of them promised the same share")
    return _check(
        AaCheck(
            effect=None,
            pairs=sum(check.pairs for check in checks),
            blocks_per_comparison=BLOCKS_PER_COMPARISON,
            comparisons=sum(check.comparisons for check in checks),
            called=sum(check.called for check in checks),
            promised=checks[0].promised,
        )
    )


def _check(counted: AaCheck) -> AaCheck:
    low, high = share_interval(counted.called, counted.comparisons)
    return counted.but(share_low=low, share_high=high)


def _groups(log_ratios: Sequence[float]) -> list[Sequence[float]]:
    """Disjoint groups of consecutive blocks; fewer than a study needs for a verdict are none."""
    count = len(log_ratios)
    if count < BLOCKS_PER_COMPARISON:
        return []
    groups = count // BLOCKS_PER_COMPARISON
    bounds = [index * BLOCKS_PER_COMPARISON for index in range(groups)] + [count]
    return [log_ratios[start:stop] for start, stop in pairwise(bounds)]


METRIC = "server_cpu_us_per_op"
OF_CPU = frozenset({METRIC, "server_cpu_user_us_per_op", "driver_cpu_us_per_op"})


def second_response(trials: Sequence[Trials], baseline: Trials, method: Method) -> SecondResponse | None:
    """Of all candidates, whose intervals hold together; None where one of the two was not read."""
    candidates = [each for each in trials if each.role is Role.CANDIDATE]
    if not candidates or method.unit is not Unit.BLOCK or method.response in OF_CPU:
        return None
    each = confidence_each(method.confidence, len(candidates))
    ratios, shares, blocks = list[CostRatio](), list[float](), list[int]()
    for one in candidates:
        time = ratio_between(method.response, one, baseline, each, method)
        cpu = ratio_between(METRIC, one, baseline, each, method)
        if (
            not time
            or not cpu
            or not time.log_sd
            or cpu.log_sd is None
            or cpu.low is None
            or cpu.high is None
        ):
            continue
        ratios.append(CostRatio(variant=one.variant.name, ratio=cpu.ratio, low=cpu.low, high=cpu.high))
        shares.append(cpu.log_sd / time.log_sd)
        blocks.append(min(time.pairs, cpu.pairs))
    if not ratios or min(blocks) < BLOCKS_LEAST:
        return None
    return SecondResponse(metric=METRIC, spread_share=median(shares), ratios=tuple(ratios))
