"""Where the spread of a run comes from: from trial to trial, and from slice to slice within one.

In each block the speeds of a variant's and the baseline's slices that followed one another are compared, as
log ratios. Their spread within a block is that of slices. What the means of blocks vary by beyond what so
many slices explain is luck that all slices of a trial share: of the server's start, and of the block. That is
the analysis of variance in one way, and its interval that of the F ratio (H. Scheffé, The Analysis of
Variance, 1959, section 7.2). Trials that measure in one piece are cut into their seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.blocks import Trials
from dbdyno.analyse.noise import Components
from dbdyno.analyse.quantiles import BLOCKS_LEAST
from dbdyno.driver.tally import Tally
from dbdyno.records.record import Outcome

CONFIDENCE = 0.95
PIECES_LEAST = 3
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
    between = float(np.mean([table.mean(axis=1).var(ddof=1) for table in tables])) / 2.0
    if not within:
        return None
    # Variants share the baseline, so more of them give no more freedom for sure.
    low, high = _quantiles(blocks - 1, blocks * (pieces - 1))
    starts, starts_low, starts_high = (
        math.sqrt(max(between / by - within / pieces, 0.0)) for by in (1.0, high, low)
    )
    first = next(iter(baseline.values()))
    return Components(
        starts=starts,
        starts_low=starts_low,
        starts_high=starts_high,
        pieces=math.sqrt(within),
        piece_s=first.duration_s / len(first.slices) if first.slices else 1.0,
        sliced=bool(first.slices),
        blocks=blocks,
    )


def blocks_most(variants: int) -> int:
    """How many blocks of so many variants are looked at, the first ones."""
    return max(TRIALS_MOST // variants, BLOCKS_LEAST)


def _quantiles(between: int, within: int) -> tuple[float, float]:
    # Here, because it takes longer to import than most commands run.
    from scipy import stats

    low, high = (float(stats.f.ppf(0.5 + side * CONFIDENCE / 2.0, between, within)) for side in (-1.0, 1.0))
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
