"""The trials of a variant by block, and what is paired and averaged over blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import stdev

from dbdyno.analyse.intervals import half_width, ratio_of, usable, welch
from dbdyno.analyse.model import Method, Ratio, Role, Summary, TrialResult, Unit, Verdict
from dbdyno.analyse.restarts import Survivor
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome
from dbdyno.study import Interval
from dbdyno.study.trials import Variant

Block = tuple[str, int]
"""A block is a host and a number: only trials of one host can be paired."""

Values = dict[Block, float]
"""A figure of each block, in any order."""

WITHOUT_SPEED = (Outcome.FAILED, Outcome.BLOCKED, Outcome.INERT)
"""Outcomes that become a variant's verdict when too few of its trials have a speed, the gravest first."""

LOST_SHARE_MOST = 0.2
"""A variant that lost more of its blocks than this has no speed: those that are left are the luckier ones."""


@dataclass
class Pairs:
    """The log ratios of one metric `ours` / `theirs` by block, in the order of blocks. Of either side `seen`
    counts what was looked at already, so that only blocks that come later are."""

    ours: Values
    theirs: Values
    seen: tuple[int, int] = (0, 0)
    found: Values = field(default_factory=dict)

    def grown(self) -> Values:
        """With the blocks that one of the two sides has since; both only ever grow at their end."""
        ours, theirs = self.ours, self.theirs
        added: set[Block] = {*islice(reversed(ours), len(ours) - self.seen[0])}
        added |= {*islice(reversed(theirs), len(theirs) - self.seen[1])}
        self.seen = len(ours), len(theirs)
        later = {
            block: math.log(ours[block]) - math.log(theirs[block])
            for block in sorted(added)
            if block in ours and block in theirs and usable(ours[block]) and usable(theirs[block])
        }
        in_order = not self.found or not later or next(reversed(self.found)) < next(iter(later))
        self.found.update(later)
        if not in_order:
            self.found = dict(sorted(self.found.items()))
        return self.found


@dataclass(frozen=True)
class Trials:
    """The trials of one variant, by block. `copies` are those of the same levels that count with it, and
    `survivor` is what became of it without power, where that was tried.

    `readings` keep each metric that was read of `by_block`, `ends` its trials by their outcome, and `pairs`
    the log ratios of a metric to another variant. They belong to whatever stands beside `by_block`.
    """

    variant: Variant
    role: Role
    by_block: dict[Block, TrialResult]
    copies: tuple[Trials, ...] = ()
    survivor: Survivor | None = None
    readings: dict[str, Values] = field(default_factory=dict, repr=False, compare=False)
    ends: dict[Outcome, list[TrialResult]] = field(default_factory=dict, repr=False, compare=False)
    pairs: dict[tuple[str, str], Pairs] = field(default_factory=dict, repr=False, compare=False)
    _with_copies: dict[str, Values] = field(default_factory=dict, repr=False, compare=False, init=False)

    def values(self, metric: str) -> Values:
        """A metric by block, over the measured trials that have it; with copies, their mean in the block."""
        if not self.copies:
            return self._own(metric)
        if metric not in self._with_copies:
            each = [self._own(metric), *(copy.values(metric) for copy in self.copies)]
            blocks = {block for values in each for block in values}
            self._with_copies[metric] = {
                block: mean_of([values[block] for values in each if block in values]) for block in blocks
            }
        return self._with_copies[metric]

    def _own(self, metric: str) -> Values:
        if metric not in self.readings:
            self.readings[metric] = dict(_read(metric, self.by_block.items()))
        return self.readings[metric]

    def with_outcome(self, outcome: Outcome) -> list[TrialResult]:
        if not self.ends and self.by_block:
            for trial in self.by_block.values():
                self.ends.setdefault(trial.record.outcome, []).append(trial)
        of_copies = (trial for copy in self.copies for trial in copy.with_outcome(outcome))
        return [*self.ends.get(outcome, ()), *of_copies]

    @property
    def index_most(self) -> int:
        """The index of the last trial; -1 without one."""
        return next(reversed(self.by_block.values())).record.trial if self.by_block else -1

    def add(self, trial: TrialResult) -> None:
        """Takes up a trial of a block after all others, without reading these again."""
        block = trial.record.host, trial.record.block
        for metric, values in self.readings.items():
            values.update(_read(metric, [(block, trial)]))
        if self.ends:
            self.ends.setdefault(trial.record.outcome, []).append(trial)
        self.by_block[block] = trial

    @property
    def all(self) -> list[TrialResult]:
        """Every trial, those of copies too."""
        return [*self.by_block.values(), *(trial for copy in self.copies for trial in copy.all)]

    @property
    def limited_by_driver(self) -> bool:
        """Whether the driver, not the server, set the pace of one of them."""
        failed = self.with_outcome(Outcome.FAILED)
        return any(Doubt.DRIVER_SATURATED in trial.record.doubts for trial in failed)


def _read(metric: str, trials: Iterable[tuple[Block, TrialResult]]) -> Iterator[tuple[Block, float]]:
    """A metric of the measured trials that have it."""
    read = metrics.find(metric).read
    for block, trial in trials:
        record = trial.record
        if record.outcome is Outcome.MEASURED:
            value = read(record)
            if value is not None and math.isfinite(value):
                yield block, value


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
        ended = trials.with_outcome(outcome)
        if ended:
            record = ended[0].record
            return {"verdict": Verdict(outcome.value), "cause": record.cause, "remedy": record.remedy}
    return {}


def _lost_share(trials: Trials) -> float:
    lost = sum(len(trials.with_outcome(outcome)) for outcome in WITHOUT_SPEED)
    tried = len(trials.by_block) + sum(len(copy.all) for copy in trials.copies)
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
        return ratio_of(
            metric, pairs(trials, baseline, metric), confidence, method.interval, method.blocks_most
        )
    over, under = (
        [math.log(value) for value in side.values(metric).values() if usable(value)]
        for side in (trials, baseline)
    )
    return welch(metric, over, under, confidence) if over and under else None


def pairs(trials: Trials, baseline: Trials, metric: str) -> list[float]:
    """The log ratios variant / baseline, one per block in which both have a value above zero, in the order
    of blocks.
    """
    return list(paired(trials, baseline, metric).values())


def paired(trials: Trials, baseline: Trials, metric: str) -> Values:
    ours, theirs = trials.values(metric), baseline.values(metric)
    if trials.copies or baseline.copies:
        # The mean of copies is another in each look.
        return Pairs(ours, theirs).grown()
    key = metric, baseline.variant.name
    if key not in trials.pairs or trials.pairs[key].theirs is not theirs:
        trials.pairs[key] = Pairs(ours, theirs)
    return trials.pairs[key].grown()


def with_lost(found: Sequence[float], ours: int, theirs: int, higher_is_better: bool) -> list[float]:
    """Log ratios with those of lost blocks: worse for whoever lost them than the worst that was seen, by the
    spread of all."""
    if len(found) < 2:
        return list(found)
    spread = stdev(found)
    low, high = min(found) - spread, max(found) + spread
    bad, good = (low, high) if higher_is_better else (high, low)
    return [*found, *[bad] * ours, *[good] * theirs]


def log_ratios(ours: Values, theirs: Values) -> Values:
    """The log ratios ours / theirs by block, of the blocks in which both are above zero."""
    return Pairs(ours, theirs).grown()


def summary_of(metric: str, values: Values, confidence: float) -> Summary | None:
    """The mean over trials and its t interval, on logs where all values are above zero. One trial: its value
    alone.
    """
    if not values:
        return None
    numbers = sorted(values.values())
    if all(usable(number) for number in numbers):
        ratio = ratio_of(metric, [math.log(number) for number in numbers], confidence)
        assert ratio is not None  # there is at least one value
        return Summary(
            metric=metric,
            trials=len(numbers),
            mean=ratio.ratio,
            low=ratio.ratio if ratio.low is None else ratio.low,
            high=ratio.ratio if ratio.high is None else ratio.high,
        )
    mean = math.fsum(numbers) / len(numbers)
    half = half_width(numbers, confidence, Interval.STUDENT) or 0.0
    return Summary(
        metric=metric, trials=len(numbers), mean=mean, low=mean - half, high=mean + half, geometric=False
    )
