"""What the tests of change points share with the bench of false alarms: rows that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dbdyno.analyse.change_points import cuts

CONFIDENCE = 0.95
Draw = Callable[[np.random.Generator, int], "np.ndarray"]

LAWS: dict[str, Draw] = {
    "normal": lambda random, count: random.normal(size=count),
    "long tails": lambda random, count: random.standard_t(3, size=count),
    "skewed": lambda random, count: random.lognormal(0.0, 1.0, size=count),
    "rounded": lambda random, count: random.normal(size=count).round(),
}
"""Laws of independent values; a step is measured in the standard deviation of `normal`."""


def false_alarms(law: str, count: int, rows: int, seed: int = 7) -> int:
    """How many of so many rows without a change have a change point."""
    random = np.random.default_rng(seed)
    return sum(bool(cuts(LAWS[law](random, count).tolist(), CONFIDENCE)) for _ in range(rows))


def found(steps: Sequence[float], lengths: Sequence[int], rows: int, seed: int = 7) -> int:
    """In how many rows of stretches at these levels, each so long, every change is found within one value of
    its place, and nothing else."""
    random = np.random.default_rng(seed)
    places = np.cumsum(lengths)[:-1].tolist()
    levels = np.repeat(steps, lengths)
    hits = 0
    for _ in range(rows):
        seen = [cut.place for cut in cuts((levels + random.normal(size=len(levels))).tolist(), CONFIDENCE)]
        hits += len(seen) == len(places) and all(
            abs(one - place) <= 1 for one, place in zip(seen, places, strict=True)
        )
    return hits
