"""The instrument against itself: twin and baseline are the same variant, so any difference called is a false
alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dbdyno.analyse.intervals import ratio_of, share_interval
from dbdyno.analyse.model import AaCheck
from dbdyno.analyse.quantiles import BLOCKS_LEAST

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
