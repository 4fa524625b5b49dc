"""Where the spread of a run comes from: from trial to trial, and from slice to slice within one.

In each block the speeds of a variant's and the baseline's slices that followed one another are compared, as
log ratios. Their spread within a block is that of slices. What the means of blocks vary by beyond what so
many slices explain is luck that all slices of a trial share: of the server's start, and of the block. That is
the analysis of variance in one way, and its interval that of the F ratio (H. Scheffé, The Analysis of
Variance, 1959, section 7.2). Trials that measure in one piece are cut into their seconds.

Slices that follow one another resemble each other, so the mean of a trial spreads farther than that of as
many independent ones. How far is found by batch means (A. M. Law and W. D. Kelton, Simulation Modeling and
Analysis, chapter 9): the halves of a trial are compared instead of its slices. Halves that follow one another
still resemble each other a little; what that hides follows from the quarters, because the variance of a mean
of n slices is (s - c / n) / n for a law whose correlation fades within a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.estimate import Trials
from dbdyno.analyse.found import Components
from dbdyno.analyse.quantiles import BLOCKS_LEAST, f_quantile
from dbdyno.driver.tally import Tally
from dbdyno.records.record import Outcome

CONFIDENCE = 0.95
PIECES_LEAST = 4
"""A quarter of a trial has one at least."""
HALVES, QUARTERS = 2, 4
TRIALS_MOST = 2_000
"""More trials than these would only cost time: the first ones tell spreads well enough."""

Values = npt.NDArray[np.float64]
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


def _variance_of_means(table: Values) -> float:
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


def _of_batches(table: Values, count: int) -> tuple[float, int]:
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


def _log_ratios(theirs: Tallies, ours: Tallies, most: int) -> Values | None:
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
