"""How often chance alone gives a verdict: runs of equal variants on hosts that are noisy in several ways.

`python -m benches.false_alarms [RUNS]` prints, for each noise and interval, how many runs of three equal
candidates, without and with a guard, called any of them faster, slower or broken, with the 95 %
Clopper-Pearson interval of the share. At most 5 % are promised where blocks are independent. Nothing is
measured: the runs are drawn (`tests/analyse/noises.py`). Luck that the blocks of a run share comes last: no
interval over blocks holds it, so these shares show how much it matters.
"""

from __future__ import annotations

import sys

import numpy as np

from dbdyno.analyse import effects
from dbdyno.analyse.assurance import Outlook
from dbdyno.analyse.intervals import share_interval
from dbdyno.study import Interval
from tests.analyse.noises import GUARD, NOISES, SHARED, Guards, false_alarm

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


def main(runs: int) -> None:
    # How many more blocks are needed takes most of the time, and decides nothing.
    effects.outlook = lambda *_: Outlook()
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


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
