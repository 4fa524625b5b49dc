"""Is a search worth its time? Searches of surfaces that are known, against random search and one at a time.

`python -m benches.search [SEEDS] [--budget MINUTES]` draws a surface for each seed: twelve factors, of which
one matters much, one as far as the first is large, one a little, one only beside the first, three hurt, and
five do nothing. It prints

- how often the search ends better than each of the others in equal time, level with it (within the margin) or
  worse, by the true gain of what each ends with;
- how often the interval that is told holds the true gain;
- how often a search ends with "nothing helped" where nothing helps;
- how many changes the winners have, and how much too good the search's own figures were.

The others have the time of the search and of the elimination. The time of the confirmation is taken from
nobody. Shares have their 95 % Clopper-Pearson interval. Nothing is measured: speeds are drawn with a noise of
2 % from trial to trial, 5 % from block to block (`tests/searches.py`).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median

import numpy as np

from dbdyno.analyse import analyse
from dbdyno.analyse.intervals import share_interval
from dbdyno.frozen import Level
from dbdyno.plan.search.pace import NEW_EACH_BLOCK
from dbdyno.records.record import Record, Run
from dbdyno.study import Factor, Study
from dbdyno.study.trials import Purpose
from tests.searches import TRIAL_SD, a_search, carried_out, drawn, listed, ranged, step

SIZES = (2, 3, 16, 24, 32)
FACTORS = 12
MARGIN = math.log1p(0.02)
COMPARED_SHARE = (1 + NEW_EACH_BLOCK) / (2 + NEW_EACH_BLOCK)
"""Of the trials of a block: the rest is the baseline's, which every way of looking needs."""


class Hills:
    """A surface that a seed draws. Called with levels it gives their log ratio to the baseline."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng([seed, 1])
        self.factors = tuple(self._factor(number, random) for number in range(FACTORS))
        names = [self.factors[place].name for place in random.permutation(FACTORS)]
        self.much, self.beside, self.little, self.only_with = names[:4]
        self.harmful = dict(zip(names[4:7], random.uniform(0.1, 0.5, 3), strict=True))
        self.gains = {
            self.much: random.uniform(0.3, 1.2),
            self.beside: random.uniform(0.1, 0.3),
            self.little: random.uniform(0.04, 0.12),
        }
        self.enough = random.uniform(0.4, 0.8)
        self.peak = random.uniform(0.4, 0.8)
        self.by_name = {factor.name: factor for factor in self.factors}
        self.right = {
            one.name: one.levels[1 + int(random.integers(len(one.levels) - 1))] for one in self.factors
        }
        self.floor = self._height({one.name: one.baseline for one in self.factors})

    def __call__(self, levels: Mapping[str, Level]) -> float:
        return self._height(levels) - self.floor

    def _factor(self, number: int, random: np.random.Generator) -> Factor:
        size, name = int(random.choice(SIZES)), f"config.f{number}"
        return ranged(name, size, int(random.integers(size // 3))) if size > 3 else listed(name, size)

    def _share(self, levels: Mapping[str, Level], name: str) -> float:
        """How far up a range a level is; of a list, whether it is the right one."""
        factor = self.by_name[name]
        if not factor.rising:
            return float(levels[name] == self.right[name])
        return step(levels, name) / (len(factor.rising) - 1)

    def _height(self, levels: Mapping[str, Level]) -> float:
        reached = min(1.0, self._share(levels, self.much) / self.enough)
        share = self._share(levels, self.beside)
        if self.by_name[self.beside].rising:
            share = max(0.0, 1.0 - 2.0 * abs(share - self.peak))
        height = self.gains[self.much] * reached
        height += self.gains[self.beside] * share * (0.3 + 0.7 * reached)
        height += self.gains[self.little] * self._share(levels, self.little)
        if self._share(levels, self.only_with) > 0.5:
            height += 0.7 * self.gains[self.beside] if reached > 0.7 else -0.05
        for name, harm in self.harmful.items():
            factor = self.by_name[name]
            own = factor.baseline
            far = abs(self._share(levels, name) - self._share({**levels, name: own}, name)) > 0.35
            height -= harm * far
        return height


@dataclass(frozen=True)
class Found:
    """What one seed gave: true log gains, whether the told interval holds the true one (None: no winner), and
    of the winner its changes and the optimism."""

    search: float
    random: float
    one_at_a_time: float
    best_single: float
    holds: bool | None
    changes: int
    optimism: float | None
    nothing: bool


def tried(seed: int, budget_s: float) -> Found:
    """One surface, searched in each way; and a flat one."""
    hills = Hills(seed)
    study, run = a_search(*hills.factors, seed=seed, budget_s=budget_s)
    records = carried_out(study, run, hills)
    result = analyse(study, run, records).search
    assert result is not None
    levels = next((one.levels for one in records if one.variant == result.winner), study.baseline)
    true, effect = hills(levels), result.effect
    holds = None
    if effect is not None and effect.low is not None and effect.high is not None:
        holds = effect.low <= math.exp(true) <= effect.high
    trials = sum(one.purpose is not Purpose.CONFIRMATION for one in records)
    others = int(trials * COMPARED_SHARE)
    return Found(
        search=true,
        random=at_random(study, hills, seed, others),
        one_at_a_time=climbing(study, hills, seed, others, keep=True),
        best_single=climbing(study, hills, seed, others, keep=False),
        holds=holds,
        changes=len(result.changes),
        optimism=result.optimism,
        nothing=ends_with_nothing(study, run),
    )


def ends_with_nothing(study: Study, run: Run) -> bool:
    """Whether the same space on a flat surface ends without a winner."""
    records: Sequence[Record] = carried_out(study, run, lambda levels: 0.0)
    result = analyse(study, run, records).search
    return result is not None and result.winner is None


def at_random(study: Study, hills: Hills, seed: int, trials: int) -> float:
    """The true gain of the best of so many points, as each was measured once."""
    random = np.random.default_rng([seed, 2])
    points = [study.baseline, *(drawn(study, random) for _ in range(trials))]
    noise = TRIAL_SD * math.sqrt(2.0)
    return hills(max(points, key=lambda levels: hills(levels) + random.normal(0.0, noise)))


def climbing(study: Study, hills: Hills, seed: int, trials: int, keep: bool) -> float:
    """The true gain of one factor at a time, in a random order, with as many levels of each as the time
    gives. With `keep` what was best stays while the next factor is tried; without, the best single change
    wins, as in the design `one-at-a-time`."""
    random = np.random.default_rng([seed, 3])

    def seen(levels: Mapping[str, Level]) -> float:
        return hills(levels) + random.normal(0.0, TRIAL_SD * math.sqrt(2.0))

    best, levels = seen(study.baseline), dict(study.baseline)
    start, each = dict(levels), max(1, trials // len(study.factors))
    for place in random.permutation(len(study.factors)):
        factor = study.factors[place]
        own = [one for one in factor.rising or factor.levels if one != factor.baseline]
        places = np.unique(np.linspace(0, len(own) - 1, min(each, len(own))).round().astype(int))
        for one in places:
            if trials <= 0:
                break
            trials -= 1
            changed = {**start, factor.name: own[int(one)]}
            value = seen(changed)
            if value > best:
                best, levels = value, changed
        start = levels if keep else start
    return hills(levels)


def main(seeds: int, budget_s: float) -> None:
    with get_context("spawn").Pool() as pool:
        found = pool.starmap(tried, [(seed, budget_s) for seed in range(1, seeds + 1)])
    own = [one.search for one in found]
    print(f"{seeds} seeds, {budget_s / 60:g} min of 10 s trials; median true gain {_gain(own)}")
    for name in ("random", "one_at_a_time", "best_single"):
        others = [getattr(one, name) for one in found]
        leads = [mine - other for mine, other in zip(own, others, strict=True)]
        better, worse = sum(lead > MARGIN for lead in leads), sum(lead < -MARGIN for lead in leads)
        print(
            f"against {name} (median {_gain(others)}): better {_share(better, seeds)},"
            f" level {seeds - better - worse}, worse {worse};"
            f" ahead by however little {_share(sum(lead > 0.0 for lead in leads), seeds)}"
        )
    held = [one.holds for one in found if one.holds is not None]
    print(f"the told interval holds the true gain: {_share(sum(held), len(held))}")
    print(f"nothing helps and nothing was found: {_share(sum(one.nothing for one in found), seeds)}")
    changes = [one.changes for one in found if one.holds is not None]
    optimism = [one.optimism for one in found if one.optimism is not None]
    print(f"changes of a winner: median {median(changes)}, most {max(changes)}")
    print(f"optimism: median {median(optimism):.3f}, largest {max(optimism):.3f}")


def _gain(logs: Sequence[float]) -> str:
    return f"{math.exp(median(logs)):.3f}"


def _share(count: int, of: int) -> str:
    low, high = share_interval(count, of)
    return f"{count / max(of, 1):.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Is a search worth its time?")
    parser.add_argument("seeds", nargs="?", type=int, default=200)
    parser.add_argument("--budget", type=float, default=60.0, help="minutes of each search")
    given = parser.parse_args()
    main(given.seeds, 60.0 * given.budget)
