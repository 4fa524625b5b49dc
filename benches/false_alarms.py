"""How often chance alone gives a verdict: runs of equal variants on hosts that are noisy in several ways.

`python -m benches.false_alarms [RUNS]` prints, for each noise and interval, how many runs of three equal
candidates, without and with a guard, called any of them faster, slower or broken, with the 95 %
Clopper-Pearson interval of the share. At most 5 % are promised where blocks are independent. Nothing is
measured: the runs are drawn (`tests/analyse/noises.py`). Luck that the blocks of a run share comes last: no
interval over blocks holds it, so these shares show how much it matters.

Then comes the rule of three verdicts, by itself: runs whose true ratio is equal, or just beyond the margin of
2 %, where "no effect" and the other side of 1 are wrong; below each, how often "no effect" is told. Student's
is drawn again in 400,000 runs of a mean and a spread each, by the same quantiles.

Then come fleets, each of whose hosts favours an equal candidate by some luck, in spreads of a block.

Then come rows of runs without a change, of several laws and lengths: at most 5 % may have a change point.
Last are rows with known changes, in standard deviations of a run, and how often all of them are found within
one run of their place, and nothing else.
"""

from __future__ import annotations

import math
import sys
from unittest.mock import patch

import numpy as np

from dbdyno.analyse import effects
from dbdyno.analyse.floor import Outlook
from dbdyno.analyse.intervals import one_sided, share_interval
from dbdyno.analyse.model import Verdict
from dbdyno.analyse.quantiles import t_quantile
from dbdyno.study import Goal, Interval
from tests.analyse.change_points_cases import LAWS, false_alarms, found
from tests.analyse.noises import (
    GUARD,
    NOISES,
    SHARED,
    Guards,
    false_alarm,
    false_alarms_of_hosts,
    method_of,
    told,
)

SEED = 7
CASES: tuple[tuple[Interval, int, Guards, int], ...] = (
    (Interval.STUDENT, 6, (), 1),
    (Interval.STUDENT, 6, (GUARD,), 1),
    (Interval.STUDENT, 12, (), 1),
    (Interval.STUDENT, 6, (), 2),
    (Interval.STUDENT, 12, (GUARD,), 2),
    (Interval.SIGNED_RANK, 7, (), 1),
    (Interval.SIGNED_RANK, 8, (GUARD,), 1),
    (Interval.SIGNED_RANK, 12, (), 1),
    (Interval.SIGNED_RANK, 16, (), 1),
    (Interval.ANYTIME, 20, (), 1),
    (Interval.ANYTIME, 20, (GUARD,), 1),
    (Interval.ANYTIME, 20, (), 2),
)

RULES = ((Interval.STUDENT, 6), (Interval.STUDENT, 24), (Interval.SIGNED_RANK, 12), (Interval.PLANNED, 24))
MANY = 400_000
SPREADS = (0.01, 0.02, 0.03, 0.05)
HOSTS, BLOCKS_OF_HOST = (2, 3, 4, 6), 8
LUCK = (0.0, 0.5, 1.0, 2.0)
LENGTHS = (7, 12, 25, 50, 150)
"""The last is searched in windows."""
CHANGES: tuple[tuple[tuple[float, ...], tuple[int, ...]], ...] = (
    ((0.0, 1.0), (25, 25)),
    ((0.0, 2.0), (6, 6)),
    ((0.0, 3.0), (6, 6)),
    ((0.0, 2.0), (10, 10)),
    ((0.0, 3.0), (10, 10)),
    ((0.0, 3.0), (22, 3)),
    ((0.0, 2.0, 0.0), (17, 16, 17)),
)


def main(runs: int) -> None:
    for interval, blocks, guards, baselines in CASES:
        for name, noise in (NOISES | SHARED).items():
            random = np.random.default_rng(SEED)
            called = sum(false_alarm(noise, random, blocks, interval, guards, baselines) for _ in range(runs))
            low, high = share_interval(called, runs)
            print(
                f"{interval.value:11}  {blocks:2} blocks {len(guards)} guards {baselines} baselines {name:10}"
                f"  {called} of {runs}  {called / runs:5.1%}  ({low:.1%} to {high:.1%})",
                flush=True,
            )
    for interval, blocks in RULES:
        for true in (1.0, 1.02 + 1e-9):
            for spread in SPREADS:
                method = method_of(Goal(margin=0.02), 1, interval).but(blocks_most=blocks)
                seen = told(np.random.default_rng(SEED), true, spread, method, blocks, 5 * runs)
                wrong = seen[Verdict.SLOWER] + seen[Verdict.FASTER if true == 1.0 else Verdict.NO_EFFECT]
                what = f"{interval.value:11} {blocks} blocks, true {true:g}, spread {spread:g}: wrong"
                _print(f"{what:58}", wrong, 5 * runs)
                _print(f"{'no effect':>58}", seen[Verdict.NO_EFFECT], 5 * runs)
    for blocks in (6, 12, 24):
        for spread in SPREADS:
            what = f"student     {blocks} blocks, true 1.02, spread {spread:g}: wrong"
            _print(f"{what:58}", wrong_at_the_end_of_the_margin(blocks, spread), MANY)
    for hosts in HOSTS:
        for luck in LUCK:
            called = false_alarms_of_hosts(np.random.default_rng(SEED), hosts, BLOCKS_OF_HOST, luck, runs)
            _print(f"{hosts} hosts of {BLOCKS_OF_HOST} blocks, luck {luck:g}", called, runs)
    for law in LAWS:
        for length in LENGTHS:
            _print(f"row of {length:3} {law:11} without a change", false_alarms(law, length, runs), runs)
    for steps, lengths in CHANGES:
        levels = " ".join(f"{step:g} x {count}" for step, count in zip(steps, lengths, strict=True))
        _print(f"row of levels {levels:24} found", found(steps, lengths, runs), runs)


def wrong_at_the_end_of_the_margin(blocks: int, spread: float) -> int:
    """In how many runs "no effect" or the other side of 1 is told, where the true ratio lies at the end
    of the margin of 2 %."""
    random, end = np.random.default_rng(SEED), math.log(1.02)
    error = spread / math.sqrt(blocks)
    means = random.normal(end, error, MANY)
    errors = error * np.sqrt(random.chisquare(blocks - 1, MANY) / (blocks - 1))
    half, inner = (t_quantile(one, blocks) * errors for one in (0.95, one_sided(0.95)))
    return int(((np.abs(means) + inner <= end) | (means + half < 0.0)).sum())


def _print(what: str, count: int, of: int) -> None:
    low, high = share_interval(count, of)
    print(f"{what}  {count} of {of}  {count / of:5.1%}  ({low:.1%} to {high:.1%})", flush=True)


if __name__ == "__main__":
    # How many more blocks are needed takes most of the time, and decides nothing.
    with patch.object(effects, "outlook", lambda *_: Outlook()):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
