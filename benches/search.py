"""Is a search worth its time? Searches of surfaces that are known, against random search and one at a time.

`python -m benches.search [SEEDS] [--budget MINUTES] [--factors COUNT]` draws a surface for each seed: twelve
factors, of which one matters much, one as far as the first is large, one a little, one only beside the first,
three hurt, and five do nothing. Of eighteen, which is about what a tune study has, five hurt and nine do
nothing: random search then seldom meets a point without harm. It prints

- how often the search ends better than each of the others in equal time, level with it (within the margin) or
  worse, by the true gain of what each ends with;
- how often the interval that is told holds the true gain;
- how often a search ends with "nothing helped" where nothing helps;
- how many changes the winners have, and how much too good the search's own figures were;
- how far each stage of the search stays behind the surface's peak: the best that it tried, what was
  confirmed, and what the elimination left. So a search that falls short shows where it does.

The others have the time of the search and of the elimination, which alone tells what each change carries.
Random search is shown once more with the time of the search alone: then only what is tried next differs.
`climbing` keeps each change that helped. The design `one-at-a-time` does not, and is `best_single`. The time
of the confirmation is taken from nobody. Shares have their 95 % Clopper-Pearson interval. Nothing is
measured: speeds are drawn with a noise of 2 % from trial to trial, 5 % from block to block
(`tests/searches.py`). No candidate is dropped after a few slices. That would save a search about a
quarter of such a trial.

A change of the search is judged by the same seeds before and after: `--keep FILE` writes what each seed gave,
and `--against FILE` tells how much further each stage comes than it did there. Choose constants by seeds from
`--first 1001` on, because figures of the seeds that chose them would be too good.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median

import numpy as np

from dbdyno.analyse.elimination import candidates_of, of_purpose
from dbdyno.analyse.intervals import half_width, share_interval
from dbdyno.findings import analyse
from dbdyno.findings.searched import analysed_blocks, winner_of
from dbdyno.frozen import Level
from dbdyno.plan.search.ask import NEW_EACH_BLOCK
from dbdyno.records.record import Record
from dbdyno.records.run import SearchRun
from dbdyno.study import Factor, Interval, Study
from dbdyno.study.trials import Purpose
from tests.searches import TRIAL_SD, a_search, carried_out, drawn, listed, ranged, step

SIZES = (2, 3, 16, 24, 32)
MARGIN = math.log1p(0.02)
COMPARED_SHARE = (1 + NEW_EACH_BLOCK) / (2 + NEW_EACH_BLOCK)
"""Of the trials of a block: the rest is the baseline's, which every way of looking needs."""
OTHERS = ("random", "random_in_search_time", "climbing", "best_single")
STAGES = ("tried", "confirmed", "search")


class Hills:
    """A surface that a seed draws. Called with levels it gives their log ratio to the baseline."""

    def __init__(self, seed: int, factors: int = 12) -> None:
        random = np.random.default_rng([seed, 1])
        self.factors = tuple(self._factor(number, random) for number in range(factors))
        names = [self.factors[place].name for place in random.permutation(factors)]
        self.much, self.beside, self.little, self.only_with = names[:4]
        harmful = names[4 : 4 + (factors - 2) // 3]
        self.harmful = dict(zip(harmful, random.uniform(0.1, 0.5, len(harmful)), strict=True))
        self.gains = {
            self.much: random.uniform(0.3, 1.2),
            self.beside: random.uniform(0.1, 0.3),
            self.little: random.uniform(0.04, 0.12),
        }
        self.enough = random.uniform(0.4, 0.8)
        self.best_share = random.uniform(0.4, 0.8)
        self.by_name = {factor.name: factor for factor in self.factors}
        self.right = {
            one.name: one.levels[1 + int(random.integers(len(one.levels) - 1))] for one in self.factors
        }
        self.floor = self._height({one.name: one.baseline for one in self.factors})

    def __call__(self, levels: Mapping[str, Level]) -> float:
        return self._height(levels) - self.floor

    def peak(self) -> float:
        """The most that any levels gain. What matters much is raised first: at its best all else is
        separate."""
        levels: dict[str, Level] = {one.name: one.baseline for one in self.factors}
        for factor in sorted(self.factors, key=lambda one: one.name != self.much):
            choices = [{**levels, factor.name: level} for level in factor.levels]
            levels = max(choices, key=self._height)
        return self(levels)

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
            share = max(0.0, 1.0 - 2.0 * abs(share - self.best_share))
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
class Asked:
    """How each seed is searched: so many factors in this time, and on a flat surface as well, which takes as
    long again."""

    budget_s: float
    flat: bool
    factors: int = 12


@dataclass(frozen=True)
class Found:
    """What one seed gave: true log gains, whether the told interval holds the true one (None: no winner), and
    of the winner its changes and the optimism. `tried` is the best that the search tried, known to be so or
    not, and `confirmed` the winner before the elimination. `nothing` says whether the search of the flat
    surface ended without a winner; None where there was none."""

    seed: int
    peak: float
    tried: float
    confirmed: float
    search: float
    random: float
    random_in_search_time: float
    climbing: float
    best_single: float
    holds: bool | None
    changes: int
    optimism: float | None
    nothing: bool | None


def tried(seed: int, asked: Asked) -> Found:
    """One surface, searched in each way; and a flat one where it is asked for."""
    hills = Hills(seed, asked.factors)
    study, run = a_search(*hills.factors, seed=seed, budget_s=asked.budget_s)
    records = carried_out(study, run, hills)
    result = analyse(study, run, records).search
    assert result is not None
    levels = next((one.levels for one in records if one.variant == result.winner), study.baseline)
    true, effect = hills(levels), result.effect
    holds = None
    if effect is not None and effect.low is not None and effect.high is not None:
        holds = effect.low <= math.exp(true) <= effect.high
    searching, eliminating = (
        len(of_purpose(records, purpose)) for purpose in (Purpose.SEARCH, Purpose.ELIMINATION)
    )
    others = int((searching + eliminating) * COMPARED_SHARE)
    return Found(
        seed=seed,
        peak=hills.peak(),
        tried=max((hills(one.levels) for one in candidates_of(study, records)), default=0.0),
        confirmed=hills(confirmed_levels(study, run, records)),
        search=true,
        random=at_random(study, hills, seed, others),
        random_in_search_time=at_random(study, hills, seed, int(searching * COMPARED_SHARE)),
        climbing=climbing(study, hills, seed, others, keep=True),
        best_single=climbing(study, hills, seed, others, keep=False),
        holds=holds,
        changes=len(result.changes),
        optimism=result.optimism,
        nothing=ends_with_nothing(study, run) if asked.flat else None,
    )


def confirmed_levels(study: Study, run: SearchRun, records: Sequence[Record]) -> Mapping[str, Level]:
    """The winner's levels before the elimination; the baseline's where nothing was confirmed."""
    confirming = of_purpose(records, Purpose.CONFIRMATION)
    winner = winner_of(analysed_blocks(study, run, confirming)) if confirming else None
    return study.baseline if winner is None else winner.levels


def ends_with_nothing(study: Study, run: SearchRun) -> bool:
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


def main(seeds: Sequence[int], asked: Asked, processes: int | None) -> list[Found]:
    """What each seed gives, told."""
    with get_context("spawn").Pool(processes) as pool:
        found = pool.starmap(tried, [(seed, asked) for seed in seeds])
    own = [one.search for one in found]
    searched = f"{len(seeds)} seeds, {asked.factors} factors, {asked.budget_s / 60:g} min of 10 s trials"
    print(f"{searched}; median true gain {_gain(own)}")
    for name in OTHERS:
        _tell_leads(name, own, [getattr(one, name) for one in found])
    for name in STAGES:
        behind = [1.0 - math.exp(getattr(one, name) - one.peak) for one in found]
        print(f"behind the peak, {name}: median {median(behind):.1%}, largest {max(behind):.1%}")
    _tell_honesty(found)
    return found


def _tell_leads(name: str, own: Sequence[float], others: Sequence[float]) -> None:
    """How often the search ends with more than another way of looking."""
    leads = [mine - other for mine, other in zip(own, others, strict=True)]
    better, worse = sum(lead > MARGIN for lead in leads), sum(lead < -MARGIN for lead in leads)
    print(
        f"against {name} (median {_gain(others)}): better {_share(better, len(leads))},"
        f" level {len(leads) - better - worse}, worse {worse};"
        f" ahead by however little {_share(sum(lead > 0.0 for lead in leads), len(leads))}"
    )


def _tell_honesty(found: Sequence[Found]) -> None:
    """Whether what the searches say of themselves is true."""
    held = [one.holds for one in found if one.holds is not None]
    print(f"the told interval holds the true gain: {_share(sum(held), len(held))}")
    ended = [one.nothing for one in found if one.nothing is not None]
    if ended:
        print(f"nothing helps and nothing was found: {_share(sum(ended), len(ended))}")
    for name in ("changes", "optimism"):
        of_winners = [getattr(one, name) for one in found if one.holds is not None]
        values = [value for value in of_winners if value is not None]
        if values:
            print(f"{name} of a winner: median {median(values):.4g}, largest {max(values):.4g}")


def tell_progress(found: Sequence[Found], before: Sequence[Found]) -> None:
    """How much further each stage comes than before, by the seeds that both have."""
    earlier = {one.seed: one for one in before}
    pairs = [(one, earlier[one.seed]) for one in found if one.seed in earlier]
    for name in (*STAGES, "changes"):
        further = [float(getattr(now, name) - getattr(then, name)) for now, then in pairs]
        half = half_width(further, 0.95, Interval.STUDENT) if pairs else None
        if half is not None:
            shown = ".2f" if name == "changes" else ".2%"
            print(f"{name} against before, {len(pairs)} seeds: {fmean(further):+{shown}} ± {half:{shown}}")


def kept(path: Path, asked: Asked) -> list[Found]:
    """What a file holds of an earlier state. Ends the program where other searches were asked for."""
    stored = json.loads(path.read_text())
    if stored["asked"] != asdict(asked):
        sys.exit(f"{path} holds searches of {stored['asked']}, not of {asdict(asked)}")
    return [Found(**one) for one in stored["found"]]


def keep(path: Path, asked: Asked, found: Sequence[Found]) -> None:
    path.write_text(json.dumps({"asked": asdict(asked), "found": [asdict(one) for one in found]}))


def _gain(logs: Sequence[float]) -> str:
    return f"{math.exp(median(logs)):.3f}"


def _share(count: int, of: int) -> str:
    low, high = share_interval(count, of)
    return f"{count / max(of, 1):.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Is a search worth its time?")
    parser.add_argument("seeds", nargs="?", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--budget", type=float, default=60.0, help="minutes of each search")
    parser.add_argument("--factors", type=int, default=12, help="of each surface, four or more")
    parser.add_argument("--no-flat", action="store_true", help="leave out surfaces on which nothing helps")
    parser.add_argument("--processes", type=int, help="how many run at once; as many as there are CPUs")
    parser.add_argument("--keep", type=Path, help="the file to write what each seed gave to")
    parser.add_argument("--against", type=Path, help="such a file of an earlier state")
    given = parser.parse_args()
    asked = Asked(60.0 * given.budget, flat=not given.no_flat, factors=given.factors)
    before = kept(given.against, asked) if given.against else []
    found = main(range(given.first, given.first + given.seeds), asked, given.processes)
    tell_progress(found, before)
    if given.keep:
        keep(given.keep, asked, found)
