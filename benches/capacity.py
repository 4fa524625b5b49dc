"""How near does the search for a capacity come, how often is its interval wrong, what would a grid take?

`python -m benches.capacity [--runs 4000] [--rates 12]` draws servers whose capacity is known, from a
twentieth to nearly all of their throughput in closed loop, and from block to block with a spread of 5 %. A
step keeps the promise by chance, more likely the further it lies below the capacity (a logistic curve), and
some lie whatever the rate, as a stalled host makes them. It prints for each kind of server

- the bias of the capacity that trials find, and their spread, both of the logarithm;
- how many intervals of 95 % over six blocks hold the truth, with its Clopper-Pearson interval;
- the same bias and spread of a fixed grid, of as many steps and of more, whose rates spread evenly over the
  logarithm and whose answer is the likeliest capacity of the same curve.

Nothing is measured. The search is `plan/capacity.py` itself.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from dbdyno.analyse.intervals import half_width, share_interval
from dbdyno.plan.capacity import HIGHEST, LAPSE, LOWEST, SLOPE, next_rate
from dbdyno.records.capacity import TriedRate
from dbdyno.study import Interval

CLOSED_PER_S = 1000.0
BLOCKS, BLOCK_SD, CONFIDENCE = 6, 0.05, 0.95
SHARES = (0.05, 0.15, 0.3, 0.5, 0.8, 0.98)
"""Capacities in multiples of the throughput in closed loop."""
GRIDS = (1, 4, 8)
"""The steps of fixed grids in multiples of those of the search."""


@dataclass(frozen=True)
class Server:
    """A server whose capacity is known: how wide the band is in which chance decides, as a logarithm, and how
    often a step lies."""

    share: float
    slope: float
    lapse: float

    def keeps(self, rate_per_s: float, draw: random.Random, luck: float) -> bool:
        """Whether a step at that rate keeps the promise, in a block of that luck."""
        beyond = math.log(rate_per_s / (CLOSED_PER_S * self.share)) - luck
        kept = self.lapse + (1.0 - 2.0 * self.lapse) / (1.0 + math.exp(min(50.0, beyond / self.slope)))
        return draw.random() < kept


Trial = Callable[[Server, random.Random, int], float]
"""What a trial of so many steps tells: the logarithm of the capacity over the truth."""


def searched(server: Server, draw: random.Random, rates: int) -> float:
    """The trial that a study has."""
    luck, tried = draw.gauss(0.0, BLOCK_SD), list[TriedRate]()
    for _ in range(rates):
        rate = next_rate(CLOSED_PER_S, tried)
        tried.append(TriedRate(rate_per_s=rate, kept=server.keeps(rate, draw, luck)))
    return math.log(next_rate(CLOSED_PER_S, tried) / (CLOSED_PER_S * server.share))


def on_grid(server: Server, draw: random.Random, rates: int) -> float:
    """A trial whose rates are fixed beforehand, and as far apart as they have to be."""
    luck, width = draw.gauss(0.0, BLOCK_SD), math.log(HIGHEST / LOWEST)
    places = [math.log(LOWEST) + width * (step + 0.5) / rates for step in range(rates)]
    kept = [server.keeps(CLOSED_PER_S * math.exp(place), draw, luck) for place in places]
    finer = [math.log(LOWEST) + 0.02 * step for step in range(round(width / 0.02))]
    likeliest = max(finer, key=lambda capacity: _likelihood(capacity, places, kept))
    return likeliest - math.log(server.share)


def _likelihood(capacity: float, places: Sequence[float], kept: Sequence[bool]) -> float:
    """The logarithm of how likely the steps are, if that is the capacity."""
    found = 0.0
    for place, one in zip(places, kept, strict=True):
        beyond = min(50.0, max(-50.0, (place - capacity) / SLOPE))
        share = LAPSE + (1.0 - 2.0 * LAPSE) / (1.0 + math.exp(beyond))
        found += math.log(share if one else 1.0 - share)
    return found


def holds(found: Sequence[float]) -> bool:
    """Whether the interval over a run's blocks holds the truth."""
    half = half_width(sorted(found), CONFIDENCE, Interval.STUDENT)
    return half is not None and abs(fmean(found)) <= half


def trials_of(trial: Trial, server: Server, count: int, rates: int, seed: int) -> list[float]:
    """What so many trials tell of a server."""
    draw = random.Random(f"{seed} {server} {rates}")
    return [trial(server, draw, rates) for _ in range(count)]


def shown(name: str, found: Sequence[float]) -> str:
    """Bias and spread in a line."""
    return f"{name}: bias {fmean(found):+.3f}, spread {stdev(found):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000, help="simulated runs of six blocks for each server")
    parser.add_argument("--rates", type=int, default=12, help="steps of a trial")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for lapse in (0.0, 0.05):
        for slope in (0.02, 0.1, 0.2):
            print(f"chance decides over {slope:g}, and {lapse:.0%} of steps lie")
            for share in SHARES:
                server = Server(share, slope, lapse)
                found = trials_of(searched, server, BLOCKS * given.runs, given.rates, given.seed)
                held = sum(holds(found[at : at + BLOCKS]) for at in range(0, len(found), BLOCKS))
                low, high = share_interval(held, given.runs, CONFIDENCE)
                line = shown(f"  at {share:.0%} of the closed loop", found)
                print(f"{line}; intervals hold {held / given.runs:.1%} ({low:.1%} to {high:.1%})")
            server = Server(0.5, slope, lapse)
            for times in GRIDS:
                steps = times * given.rates
                told = trials_of(on_grid, server, max(60, given.runs // 20), steps, given.seed)
                print(shown(f"  a grid of {steps} steps, at 50%", told))


if __name__ == "__main__":
    main()
