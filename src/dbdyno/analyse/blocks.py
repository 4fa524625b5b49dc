"""The trials of a variant by block, and what is paired and averaged over blocks.

Whether the pristine data came back by one way wherever they should have.

A way of reset leaves its mark on a trial: a copy leaves the data in the page cache, shared extents are
unshared by the first writes. Trials that have the same storage must therefore have the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import stdev

import numpy as np

from dbdyno.analyse.columns import DOUBTS, OUTCOME, Block, Columns, Fact, Pairs, Rows, Values, paired
from dbdyno.analyse.estimate import contrasts_of, estimate
from dbdyno.analyse.intervals import half_width, ratio_of, usable, welch
from dbdyno.analyse.model import Method, Ratio, Role, Summary, TrialResult, Unit, Verdict
from dbdyno.analyse.restarts import Survivor
from dbdyno.frozen import level_text
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.study import Interval
from dbdyno.study.trials import Variant

WAY = Fact(
    "way", lambda record: (_storage(record), str(record.reset["way"])) if "way" in record.reset else None
)
"""By which way the data came back, with what that may depend on."""


def mixed_resets(columns: Columns) -> dict[int, str]:
    """Trials whose data came back by another way than those of most trials with the same storage and host,
    and what the ways were."""
    codes, table = columns.fact(WAY)
    measured = columns.having(OUTCOME, columns.places, Outcome.MEASURED.value)
    counts = np.bincount(codes[measured], minlength=len(table)).tolist()
    ways: dict[tuple[str, ...], Counter[str]] = {}
    for found, count in zip(table, counts, strict=True):
        if found is not None and count:
            ways.setdefault(found[0], Counter())[found[1]] += count
    told: dict[int, str] = {}
    for code, found in enumerate(table):
        if found is not None and counts[code] and (usual := _usual(ways[found[0]])) != found[1]:
            trials = columns.trials(measured[codes[measured] == code]).tolist()
            told |= dict.fromkeys(trials, f"by {found[1]}, where most came by {usual}")
    return told


def _storage(record: Record) -> tuple[str, ...]:
    """The host and the levels of storage: what the way may depend on."""
    levels = sorted(f"{name}={level_text(level)}" for name, level in record.levels.items())
    return (record.host, *(level for level in levels if level.startswith("storage.")))


def _usual(ways: Counter[str]) -> str:
    """The way of most trials; of ways with as many, the first by name."""
    return min(ways, key=lambda way: (-ways[way], way))


WITHOUT_SPEED = (Outcome.FAILED, Outcome.BLOCKED, Outcome.INERT)
"""Outcomes that become a variant's verdict when too few of its trials have a speed, the gravest first."""

LOST_SHARE_MOST = 0.2
"""A variant that lost more of its blocks than this has no speed: those that are left are the luckier ones."""


@dataclass(frozen=True)
class Trials:
    """The trials of one variant, by block. `copies` are those of the same levels that count with it, and
    `survivor` is what became of it without power, where that was tried. `readings` keep each metric that was
    read of `by_block`, and belong to whatever stands beside it.
    """

    variant: Variant
    role: Role
    by_block: Mapping[Block, TrialResult]
    copies: tuple[Trials, ...] = ()
    survivor: Survivor | None = None
    readings: dict[str, Values] = field(default_factory=dict, repr=False, compare=False)
    _with_copies: dict[str, Values] = field(default_factory=dict, repr=False, compare=False, init=False)

    def values(self, metric: str) -> Values:
        """A metric by block, over the measured trials that have it; with copies, their mean in the block."""
        if not self.copies:
            return self._own(metric)
        if metric not in self._with_copies:
            each = [self._own(metric), *(copy.values(metric) for copy in self.copies)]
            blocks = {block for values in each for block in values}
            self._with_copies[metric] = Values.of(
                {block: mean_of([values[block] for values in each if block in values]) for block in blocks}
            )
        return self._with_copies[metric]

    def _own(self, metric: str) -> Values:
        if metric not in self.readings:
            self.readings[metric] = Values.measured(self.rows, metric)
        return self.readings[metric]

    @cached_property
    def rows(self) -> Rows:
        """Its own trials, without those of copies."""
        return self.by_block if isinstance(self.by_block, Rows) else Rows.of(self.by_block)

    @property
    def each(self) -> tuple[Trials, ...]:
        """Itself, and each copy."""
        return self, *(one for copy in self.copies for one in copy.each)

    def count(self, outcome: Outcome | None = None) -> int:
        """How many trials ended so, or how many there are, those of copies too."""
        sides = (one.rows for one in self.each)
        return sum(len(rows if outcome is None else rows.ended(outcome)) for rows in sides)

    def first(self, outcome: Outcome) -> Record | None:
        """The first that ended so."""
        return next(self.ended(outcome), None)

    def ended(self, outcome: Outcome) -> Iterator[Record]:
        """The records of those that ended so."""
        for one in self.each:
            yield from one.rows.columns.records(one.rows.ended(outcome).tolist())

    @property
    def limited_by_driver(self) -> bool:
        """Whether the driver, not the server, set the pace of one of them."""
        return any(
            Doubt.DRIVER_SATURATED.value in table[code]
            for one in self.each
            if len(failed := one.rows.ended(Outcome.FAILED))
            for codes, table in (one.rows.columns.fact(DOUBTS),)
            for code in set(codes[failed].tolist())
        )


def ending(trials: Trials) -> dict[str, object]:
    """The verdict that the trials' ends alone decide: one broken trial breaks a variant, and one in which the
    driver was the limit leaves it without a speed, as the others were only the slower ones; other ends decide
    where they took more than their share of the blocks. A restart that took along what the settings do not
    permit breaks a variant as well.
    """
    if trials.survivor is not None and trials.survivor.faults:
        return {"verdict": Verdict.BROKEN, "cause": trials.survivor.faults[0], "remedy": ""}
    without_speed = trials.limited_by_driver or _lost_share(trials) > LOST_SHARE_MOST
    endings = (Outcome.BROKEN, *(WITHOUT_SPEED if without_speed else ()))
    for outcome in endings:
        if (record := trials.first(outcome)) is not None:
            return {"verdict": Verdict(outcome.value), "cause": record.cause, "remedy": record.remedy}
    return {}


def _lost_share(trials: Trials) -> float:
    lost, tried = sum(map(trials.count, WITHOUT_SPEED)), trials.count()
    return lost / tried if tried else 0.0


def mean_of(values: Sequence[float]) -> float:
    """Geometric where all values are above zero, because ratios are compared; else arithmetic."""
    if all(usable(value) for value in values):
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


def with_copies(trials: Sequence[Trials]) -> Trials:
    """The baseline with its copies, which candidates are compared with. It is worth more trials than a
    candidate, because every comparison rests on it: about as many as the root of the number of candidates
    (C. W. Dunnett, JASA 50, 1955, 1096-1121)."""
    return replace(trials[0], copies=tuple(each for each in trials if each.variant.shares))


def ratio_between(
    metric: str, trials: Trials, baseline: Trials, confidence: float, method: Method
) -> Ratio | None:
    """The ratio trials / baseline of a metric: paired by block, or of repetitions that have nothing in
    common."""
    if method.unit is not Unit.REPETITION:
        found = paired_by_block(trials, baseline, metric)
        return estimate(metric, contrasts_of(trials.rows, found), confidence, method)
    over, under = (
        [log for log in side.values(metric).logs.tolist() if not math.isnan(log)]
        for side in (trials, baseline)
    )
    return welch(metric, over, under, confidence) if over and under else None


def pairs(trials: Trials, baseline: Trials, metric: str) -> list[float]:
    """The log ratios variant / baseline, one per block in which both have a value above zero, in the order
    of blocks.
    """
    found: list[float] = paired_by_block(trials, baseline, metric).logs.tolist()
    return found


def paired_by_block(trials: Trials, baseline: Trials, metric: str) -> Pairs:
    """The same, with the key of each block."""
    return paired(trials.values(metric), baseline.values(metric))


def with_lost(found: Sequence[float], ours: int, theirs: int, higher_is_better: bool) -> list[float]:
    """Log ratios with those of lost blocks: worse for whoever lost them than the worst that was seen, by the
    spread of all."""
    if len(found) < 2:
        return list(found)
    spread = stdev(found)
    low, high = min(found) - spread, max(found) + spread
    bad, good = (low, high) if higher_is_better else (high, low)
    return [*found, *[bad] * ours, *[good] * theirs]


def log_ratios(ours: Mapping[Block, float], theirs: Mapping[Block, float]) -> dict[Block, float]:
    """The log ratios ours / theirs of the blocks in which both are above zero, in their order."""
    return {
        block: math.log(ours[block]) - math.log(theirs[block])
        for block in sorted(ours.keys() & theirs.keys())
        if usable(ours[block]) and usable(theirs[block])
    }


def summary_of(metric: str, values: Values, confidence: float) -> Summary | None:
    """The mean over trials and its t interval, on logs where all values are above zero. One trial: its value
    alone.
    """
    count = len(values)
    if not count:
        return None
    if not np.isnan(values.logs).any():
        ratio = ratio_of(metric, values.logs, confidence)
        assert ratio is not None  # there is at least one value
        return Summary(
            metric=metric,
            trials=count,
            mean=ratio.ratio,
            low=ratio.ratio if ratio.low is None else ratio.low,
            high=ratio.ratio if ratio.high is None else ratio.high,
        )
    numbers = np.sort(values.numbers)
    mean = math.fsum(numbers.tolist()) / count
    half = half_width(numbers, confidence, Interval.STUDENT) or 0.0
    return Summary(metric=metric, trials=count, mean=mean, low=mean - half, high=mean + half, geometric=False)
