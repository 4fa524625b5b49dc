"""What a run cannot see: how large a difference must be, where the spread comes from, how far mere luck of
layout goes, and how many more blocks would settle what is open.

**The floor** is half the width that the interval of two equal variants has, from as many blocks as the run
has. A true difference of that size is told in every second run, and a smaller one is mostly missed. A twin
gives the spread of such a ratio directly. Without one it comes from what neither variant nor block explains
of the log responses, the residual of the randomised block design (R. A. Fisher, The Design of Experiments,
1935); a variant that is noisier than the others raises it.

**Blocking** is judged by the efficiency of that design relative to one without blocks (F. Yates, Complex
experiments, Suppl. J. R. Stat. Soc. 2, 1935; W. G. Cochran and G. M. Cox, Experimental Designs, 2nd edition,
1957, section 4.37). Its interval follows from the F ratio of blocks to residual.

**Starts and slices.** In each block the speeds of a variant's and the baseline's slices that followed one
another are compared, as log ratios. Their spread within a block is that of slices. What the means of blocks
vary by beyond what so many slices explain is luck that all slices of a trial share: of the server's start,
and of the block. That is the analysis of variance in one way, and its interval that of the F ratio (H.
Scheffé, The Analysis of Variance, 1959, section 7.2). Trials that measure in one piece are cut into seconds.

Slices that follow one another resemble each other, so the mean of a trial spreads farther than that of as
many independent ones. How far is found by batch means (A. M. Law and W. D. Kelton, Simulation Modeling and
Analysis, chapter 9): the halves of a trial are compared instead of its slices. Halves that follow one another
still resemble each other a little; what that hides follows from the quarters, because the variance of a mean
of n slices is (s - c / n) / n for a law whose correlation fades within a batch.

**Luck of layout.** Where a function lies decides which cache lines and branch predictors it shares. So a
speed changes by some per cent with the order of linking, though no instruction does (T. Mytkowicz, A. Diwan,
M. Hauswirth and P. F. Sweeney, Producing wrong data without doing anything obviously wrong!, ASPLOS 2009).
Placebos, which have the baseline's code at other addresses, measure that. A build without an effect draws its
luck as the baseline and its placebos do. So the logs of their speeds are a sample of layouts, and one more
lies within its prediction limit: mean +- t sd sqrt(1 + 1/n), with n - 1 degrees of freedom (G. J. Hahn and W.
Q. Meeker, Statistical Intervals, 1991, chapter 4). It holds for all builds of a run together (Šidák).

**More blocks.** A few blocks tell the ratio and the spread only roughly. A plan that takes both as seen
promises too much, because the blocks needed go with the square of the spread. So both are drawn from what the
blocks allow (the posterior law under Jeffreys' prior), the further blocks are drawn for each pair, and
settled is the share of draws whose whole sample gives a verdict. That is assurance, not power (A. O'Hagan, J.
W. Stevens and M. J. Campbell, Pharmaceutical Statistics 4, 2005, 187-201).

Assurance keeps its promise on average. For a ratio about half of the margin it does not: that needs the most
blocks, because its interval has to fit between 1 and the margin. So the number that is called likely has to
settle four of five draws for the ratio that is hardest of all plausible ones, which are those that an
interval of 90 % holds. The noisier the blocks, the farther that number lies above the one that settles half
of all draws. Where it is a multiple of it, one figure would claim more than the blocks tell, so both are
given. Beyond twenty times the blocks that there are none is given: such a run needs less noise.

The blocks to come are taken to be like those that there are, and whoever adds blocks has looked at the
answer. So they are counted for the interval that holds at every look, which an extended run has. Where one
block in ten is off by 10 %, 12 of them often hold none of these, and then the number is too small: it settled
38 % of equal variants where 80 % were meant (simulated, spread of 3.5 %). Resampled residuals do not change
that, because what was not seen is in no residual. So the number is told of blocks like these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.columns import BlockValues, Floats, Places
from dbdyno.analyse.estimate import Trials, pairs, ratio_between, verdict_of_endings, with_copies
from dbdyno.analyse.found import Blocking, Components, Floor, LayoutSpread
from dbdyno.analyse.intervals import bounded_exp, one_sided, quantile_of
from dbdyno.analyse.model import Method, Ratio, Role
from dbdyno.analyse.quantiles import BLOCKS_LEAST, anytime_quantile, confidence_each, f_quantile, t_quantile
from dbdyno.driver.tally import Tally
from dbdyno.frozen import Frozen
from dbdyno.records.record import Outcome
from dbdyno.study import Interval
from dbdyno.study.designs import changed_levels, of_build


def layout_spread(trials: Sequence[Trials], method: Method) -> LayoutSpread | None:
    """How far the placebos of a run lie from its baseline, and how far one more layout may; None without one
    that was measured in as many blocks as a verdict needs."""
    baseline = with_copies(trials)
    placebos = [each for each in trials if each.role is Role.PLACEBO and not verdict_of_endings(each)]
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


def variances(values: Sequence[BlockValues]) -> Variances | None:
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


ASSURANCE, EVEN, PLAUSIBLE = 0.8, 0.5, 0.9
WIDE = 4.0
"""An estimate whose two numbers lie farther apart than this factor is no figure."""
BLOCKS_LIMIT, TIMES_LIMIT = 1000, 20
DRAWS = 2000


class Outlook(NamedTuple):
    """The fewest more blocks that settle an inconclusive effect: `likely` does so with probability 0.8 for
    any plausible ratio, and is None where it is unknown or more than `most_more`. `even`, with probability
    0.5, is there where `likely` alone would claim too much."""

    likely: int | None = None
    even: int | None = None


def most_more(pairs: int) -> int:
    """How many more blocks an estimate from so many can reach."""
    return max(min(TIMES_LIMIT * pairs, BLOCKS_LIMIT - pairs), 0)


def outlook(effect: Ratio, method: Method) -> Outlook:
    """How many more blocks settle an inconclusive effect.

    Settled means that the interval excludes 1 or lies within the margin. The same records give the same
    numbers: the draws are fixed. Without a spread nothing is known.
    """
    if not effect.log_sd or effect.pairs < 2:
        return Outlook()
    future, most = _Future(effect, method), most_more(effect.pairs)
    likely, even = _fewest(future.settled_at_worst, most, ASSURANCE), _fewest(future.settled, most, EVEN)
    return Outlook(likely, even if _wide(likely, even, effect.pairs) else None)


def _wide(likely: int | None, even: int | None, pairs: int) -> bool:
    """Whether the estimate is too uncertain for one figure; of a few blocks more nobody minds."""
    if likely is None or even is None:
        return even is not None
    return likely > WIDE * even and likely > pairs


def _fewest(share: Callable[[int], float], most: int, chance: float) -> int | None:
    """The fewest blocks, up to `most`, of which the share that settles reaches the chance."""
    if most < 1 or share(most) < chance:
        return None
    enough = 1
    while share(enough) < chance:
        enough = min(2 * enough, most)
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if share(middle) >= chance else (middle, enough)
    return enough


class _Future:
    """Draws of the true ratio and spread that the blocks so far allow, and of blocks to come."""

    def __init__(self, effect: Ratio, method: Method) -> None:
        assert effect.log_sd is not None
        draw = np.random.default_rng(1)
        self.pairs, self.mean = effect.pairs, math.log(effect.ratio)
        self.squares = effect.log_sd**2 * (effect.pairs - 1)
        self.spreads: npt.NDArray[np.float64] = np.sqrt(
            self.squares / draw.chisquare(effect.pairs - 1, DRAWS)
        )
        self.means: npt.NDArray[np.float64] = self.mean + draw.standard_normal(
            DRAWS
        ) * self.spreads / math.sqrt(effect.pairs)
        self.errors: npt.NDArray[np.float64] = draw.standard_normal(DRAWS)
        self.confidences = effect.confidence, one_sided(effect.confidence)
        self.margin = math.log1p(method.margin)
        self.least = method.blocks_least
        half = t_quantile(PLAUSIBLE, effect.pairs) * effect.log_sd / math.sqrt(effect.pairs)
        self.hardest = {
            min(max(middle, self.mean - half), self.mean + half)
            for middle in (-self.margin / 2.0, self.margin / 2.0)
        }

    def settled_at_worst(self, more: int) -> float:
        """The least share that any plausible ratio leaves."""
        return min(self._settled(more, np.full(DRAWS, mean)) for mean in self.hardest)

    def settled(self, more: int) -> float:
        """The share of draws in which `more` blocks, with those there are, give a verdict."""
        return self._settled(more, self.means)

    def _settled(self, more: int, true: npt.NDArray[np.float64]) -> float:
        whole = self.pairs + more
        if whole < self.least:
            return 0.0
        theirs = true + self.errors * self.spreads / math.sqrt(more)
        chances = np.random.default_rng(more).chisquare(more - 1, DRAWS) if more > 1 else np.zeros(DRAWS)
        squares = self.squares + chances * self.spreads**2
        squares += (theirs - self.mean) ** 2 * self.pairs * more / whole
        means = (self.pairs * self.mean + more * theirs) / whole
        errors = np.sqrt(squares / (whole - 1) / whole)
        half, inner = (anytime_quantile(one, whole) * errors for one in self.confidences)
        away = np.abs(means)
        return float(np.mean((away > half) | (away + inner <= self.margin)))


PIECES_LEAST = 4
"""A quarter of a trial has one at least."""
HALVES, QUARTERS = 2, 4
TRIALS_MOST = 2_000
"""More trials than these would only cost time: the first ones tell spreads well enough."""

Tallies = Mapping[tuple[str, int], Tally]
"""Of the measured trials of a variant, by block."""


def components(trials: Sequence[Trials]) -> Components | None:
    """From all variants beside the baseline, which is the first; None while there are too few blocks, or too
    few pieces in a trial."""
    most = blocks_most(len(trials))
    baseline, *others = map(_tallies, trials)
    tables = [table for each in others if (table := _log_ratios(baseline, each, most)) is not None]
    if not tables:
        return None
    blocks, pieces = min(len(table) for table in tables), min(table.shape[1] for table in tables)
    # Of one server: a log ratio has the spread of two.
    within = float(np.mean([table.var(axis=1, ddof=1).mean() for table in tables])) / 2.0
    of_means = float(np.mean([_variance_of_means(table) for table in tables])) / 2.0
    between = float(np.mean([table.mean(axis=1).var(ddof=1) for table in tables])) / 2.0
    if not of_means:
        return None
    # Variants share the baseline, so more of them give no more freedom for sure.
    low, high = _quantiles(blocks - 1, blocks * (HALVES - 1))
    starts, starts_low, starts_high = (
        math.sqrt(max(between / by - of_means, 0.0)) for by in (1.0, high, low)
    )
    first = next(iter(baseline.values()))
    return Components(
        starts=starts,
        starts_low=starts_low,
        starts_high=starts_high,
        pieces=math.sqrt(within),
        alike=math.sqrt(of_means * pieces / within),
        piece_s=first.duration_s / len(first.slices) if first.slices else 1.0,
        sliced=bool(first.slices),
        blocks=blocks,
    )


def _variance_of_means(table: npt.NDArray[np.float64]) -> float:
    """The variance that the mean of a row (a trial) has by its pieces alone."""
    pieces = table.shape[1]
    (halves, of_half), (quarters, of_quarter) = (_of_batches(table, count) for count in (HALVES, QUARTERS))
    # The mean of a row is taken off its batches, so each variance is that of a batch less that of the row:
    # (s - c / b) / b - (s - c / n) / n, with two unknowns, in halves and in quarters.
    parts = np.array([_shares(HALVES, of_half), _shares(QUARTERS, of_quarter)])
    lasting, fading = np.linalg.solve(parts, np.array([halves, quarters]))
    # By chance quarters can seem to oppose each other. Halves then say the least that there is.
    of_row: float = (lasting - fading / pieces) / pieces
    return max(of_row, halves / HALVES)


def _of_batches(table: npt.NDArray[np.float64], count: int) -> tuple[float, int]:
    """The variance of the means of so many batches of a row (mean over rows), and the length of a batch."""
    length = table.shape[1] // count
    batches = table[:, table.shape[1] - count * length :].reshape(len(table), count, length).mean(axis=2)
    return float(batches.var(axis=1, ddof=1).mean()), length


def _shares(count: int, length: int) -> tuple[float, float]:
    """By how much s and c enter the variance of so many batches of this length."""
    whole, freedom = count * length, count / (count - 1)
    return freedom * (1 / length - 1 / whole), -freedom * (1 / length**2 - 1 / whole**2)


def blocks_most(variants: int) -> int:
    """How many blocks of so many variants are looked at, the first ones."""
    return max(TRIALS_MOST // variants, BLOCKS_LEAST)


def _quantiles(between: int, within: int) -> tuple[float, float]:
    low, high = (f_quantile(0.5 + side * CONFIDENCE / 2.0, between, within) for side in (-1.0, 1.0))
    return low, high


def _log_ratios(theirs: Tallies, ours: Tallies, most: int) -> npt.NDArray[np.float64] | None:
    """By block and piece, of so many blocks at most; None where that is too little. A trial with a piece
    without a transaction has no log."""
    rows = []
    for block in sorted(ours.keys() & theirs.keys())[:most]:
        pair = [np.array(list(_speeds(tally))) for tally in (ours[block], theirs[block])]
        length = min(map(len, pair))
        first, second = (speeds[:length] for speeds in pair)
        if length >= PIECES_LEAST and (first > 0.0).all() and (second > 0.0).all():
            rows.append(np.log(first / second))
    if len(rows) < BLOCKS_LEAST:
        return None
    pieces = min(map(len, rows))
    return np.array([row[:pieces] for row in rows])


def _tallies(trials: Trials) -> Tallies:
    measured = trials.rows.only(trials.rows.ended(Outcome.MEASURED))
    records = measured.columns.records(measured.places.tolist())
    each = zip(measured.blocks, (record.tally for record in records), strict=True)
    return {block: tally for block, tally in each if tally is not None}


def _speeds(tally: Tally) -> Iterator[float]:
    """Of each piece; the last second may not be a whole one."""
    if tally.slices:
        yield from (one.throughput_per_s for one in tally.slices)
        return
    seconds = [one.operations for one in tally.series if one.phase == "measured"]
    yield from map(float, seconds[: math.floor(tally.duration_s)])
