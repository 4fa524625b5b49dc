"""The one way from contrasts of blocks to a ratio with its interval.

A contrast is a log ratio that is formed within a block: of a variant to the baseline, of a main effect, an
interaction, or a share of a gap. Its interval takes all that the run knows of its blocks.

**Hosts.** A block belongs to one host of a fleet. A host favours a variant in all of its blocks, so its
blocks are not independent of each other. The means of hosts are, and Student's interval over these holds,
also where hosts differ in their noise (R. Ibragimov and U. K. Müller, Journal of Business & Economic
Statistics 28, 2010). It is about hosts like these: each is a draw from them, and counts as much as any
other, however noisy it is (random effects). Fewer than `HOSTS_LEAST` give no such interval. Then it is
over blocks, and about these very hosts.

**Images.** An image is one layout of the rows, and pairs of blocks take the images in turn. Luck with an
image is in all of its blocks, so the same interval over the means of images holds. It is wider where
images do not differ. So it is taken only where the images differ by more than their blocks explain, by the
F ratio of the analysis of variance. The level of that test is `LEVEL`: a test that seldom finds a
difference leaves too many intervals too narrow (T. A. Bancroft, Ann. Math. Stat. 15, 1944). Where many
intervals hold together, each may err less, so the test has to miss fewer differences: its level grows
accordingly. Of five comparisons of equal variants together, with six images whose luck is as large as a
block's spread, 14 % of runs were wrong at a level of 25 %.

Simulated, 20,000 runs each, interval of 95 %, the images' luck as large as a block's spread, four blocks
an image: an equal variant is called different in 23 % over blocks, and in 7.2, 5.7 and 5.1 % of runs of
four, six and eight images by this rule. Where images are equal, intervals are wider by 27, 16 and 12 % in
the mean.

**Looks.** The interval over blocks of a run that is looked at again and again holds at every look. No
number of looks changes the luck of hosts and images, so such a run has an interval that holds both.

**Ways of reset.** A way of reset leaves its mark on a trial: a copy leaves the data in the page cache,
shared extents are unshared by the first writes. Trials that have the same storage must therefore have the
same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import stdev
from typing import NamedTuple

import numpy as np

from dbdyno.analyse.columns import (
    DOUBTS,
    OUTCOME,
    Block,
    BlockValues,
    Columns,
    Fact,
    Floats,
    Pairs,
    Places,
    Rows,
    paired,
)
from dbdyno.analyse.intervals import (
    bounded_exp,
    centre_of,
    half_width,
    one_sided,
    ratio_of,
    usable,
    welch,
    with_narrower,
)
from dbdyno.analyse.model import Method, Ratio, Role, Summary, TrialResult, Unit, Verdict
from dbdyno.analyse.quantiles import f_quantile
from dbdyno.analyse.restarts import Survivor
from dbdyno.frozen import Level, level_text
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
    readings: dict[str, BlockValues] = field(default_factory=dict, repr=False, compare=False)
    _with_copies: dict[str, BlockValues] = field(default_factory=dict, repr=False, compare=False, init=False)

    def values(self, metric: str) -> BlockValues:
        """A metric by block, over the measured trials that have it; with copies, their mean in the block."""
        if not self.copies:
            return self._own(metric)
        if metric not in self._with_copies:
            each = [self._own(metric), *(copy.values(metric) for copy in self.copies)]
            blocks = {block for values in each for block in values}
            self._with_copies[metric] = BlockValues.of(
                {block: mean_of([values[block] for values in each if block in values]) for block in blocks}
            )
        return self._with_copies[metric]

    def _own(self, metric: str) -> BlockValues:
        if metric not in self.readings:
            self.readings[metric] = BlockValues.measured(self.rows, metric)
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


def verdict_of_endings(trials: Trials) -> dict[str, object]:
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
    metric: str,
    trials: Trials,
    baseline: Trials,
    confidence: float,
    method: Method,
    judged: bool = False,
) -> Ratio | None:
    """The ratio trials / baseline of a metric: paired by block, or of repetitions that have nothing in
    common. One that is to be judged has its narrower interval."""
    if method.unit is not Unit.REPETITION:
        found = paired_by_block(trials, baseline, metric)
        return estimated_ratio(metric, contrasts_of(trials.rows, found), confidence, method, judged)
    over, under = (
        [log for log in side.values(metric).logs.tolist() if not math.isnan(log)]
        for side in (trials, baseline)
    )
    if not over or not under:
        return None
    return welch(metric, over, under, confidence, judged)


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


def summary_of(metric: str, values: BlockValues, confidence: float) -> Summary | None:
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


def _image(record: Record) -> tuple[str, Level] | None:
    """Which image a trial had. The hosts of a fleet make theirs from the same seeds, so that an image has the
    same layout on all of them."""
    if "image" not in record.reset:
        return None
    return "" if record.fleet_host else record.host, record.reset["image"]


FLEET_HOST = Fact("fleet_host", lambda record: record.fleet_host)
IMAGE = Fact("image", _image)
HOSTS_LEAST = 3
IMAGES_LEAST = 4
"""Student's interval over fewer means is so wide that nothing is told."""
LEVEL, LEVEL_ERROR = 0.25, 0.05
"""The level at which images are told to differ for an interval that may err so much."""
NOBODYS = -1
"""The number of the host of a block that no fleet measured."""


class Contrasts(NamedTuple):
    """A contrast of each block, and a number for the host of the fleet and one for the image that it had."""

    values: Floats
    hosts: Places
    images: Places

    @classmethod
    def apart(cls, values: Sequence[float]) -> Contrasts:
        """Contrasts that have nothing in common."""
        nothing = np.full(len(values), NOBODYS)
        return cls(np.asarray(values, dtype=np.float64), nothing, nothing)


class Centred(NamedTuple):
    """A centre and the ends of its interval; over so many hosts or images, where it is over their means."""

    centre: float
    low: float | None
    high: float | None
    hosts: int | None = None
    images: int | None = None


def contrasts_of(rows: Rows, pairs: Pairs) -> Contrasts:
    """The log ratios of pairs, each of whose blocks has one of these trials. Both sides of a block have the
    same host and the same image."""
    hosts, names = rows.told(FLEET_HOST, pairs)
    images, _ = rows.told(IMAGE, pairs)
    return Contrasts(pairs.logs, _of_fleet(hosts, names), images)


def _of_fleet(codes: Places, names: list[str]) -> Places:
    of_none = [number for number, name in enumerate(names) if not name]
    return np.where(np.isin(codes, of_none), NOBODYS, codes)


def estimated_ratio(
    metric: str, found: Contrasts, confidence: float, method: Method, judged: bool = False
) -> Ratio | None:
    """The geometric mean of ratios and its interval; None without a block, no interval with one. An interval
    that so few blocks cannot give at this confidence is absent. One that is to be judged has its narrower
    interval."""
    pairs = len(found.values)
    if pairs == 0:
        return None
    centred = centred_of(found, confidence, method)
    ratio = Ratio(
        metric=metric,
        pairs=pairs,
        ratio=math.exp(centred.centre),
        low=_ratio(centred.low),
        high=_ratio(centred.high),
        log_sd=float(np.sort(found.values).std(ddof=1)) if pairs > 1 else None,
        confidence=confidence,
        hosts=centred.hosts,
        images=centred.images,
    )
    if not judged:
        return ratio
    inner = centred_of(found, confidence, method, narrower=True)
    return with_narrower(ratio, _ratio(inner.low), _ratio(inner.high))


def _ratio(log: float | None) -> float | None:
    return None if log is None else bounded_exp(log)


def centred_of(found: Contrasts, confidence: float, method: Method, narrower: bool = False) -> Centred:
    """The same of contrasts in their own unit. There is a block. The narrower interval is over the same
    means."""
    reach = one_sided(confidence) if narrower else confidence
    by_block = Centred(*centre_of(found.values, reach, method.interval, method.blocks_most))
    if method.unit is not Unit.BLOCK or method.interval is Interval.SIGNED_RANK:
        return by_block
    of_hosts, of_images = means_of_hosts(found), means_of_images(found, confidence)
    each = [centre_of(means, reach) for means in (of_hosts, of_images) if means is not None]
    if not each:
        return by_block
    centre = each[0][0]
    if method.sequential:
        each.append(by_block[:3])
    # Each interval holds what another one does not.
    lows = [low for _, low, _ in each if low is not None]
    highs = [high for _, _, high in each if high is not None]
    return Centred(
        centre,
        min(lows, default=None),
        max(highs, default=None),
        hosts=None if of_hosts is None else len(of_hosts),
        images=len(of_images) if of_hosts is None and of_images is not None else None,
    )


def units_of(found: Contrasts, effect: Ratio | None) -> Floats:
    """What the interval of an effect is over: contrasts of blocks, or their means over hosts or images."""
    means = None
    if effect is not None and effect.hosts:
        means = means_of_hosts(found)
    elif effect is not None and effect.images:
        means = means_of_images(found, effect.confidence)
    return found.values if means is None else means


def means_of_hosts(found: Contrasts) -> Floats | None:
    """The mean contrast of each host of a fleet; None where there are too few hosts."""
    parts = _parts(found.values, found.hosts)
    return None if len(parts) < HOSTS_LEAST else np.array([part.mean() for part in parts])


def means_of_images(found: Contrasts, confidence: float) -> Floats | None:
    """The mean contrast of each image, for an interval of this confidence. None where there are too few
    images, or none is told to differ."""
    parts = _parts(found.values, found.images)
    if len(parts) < IMAGES_LEAST or not _differ(parts, 1.0 - confidence):
        return None
    return np.array([part.mean() for part in parts])


def _parts(values: Floats, numbers: Places) -> list[Floats]:
    """In the order of values, so that no figure depends on the order of records."""
    return [np.sort(values[numbers == number]) for number in np.unique(numbers) if number != NOBODYS]


def _differ(parts: list[Floats], error: float) -> bool:
    """Whether the parts' means differ by more than their values explain, as far as an interval has to know
    that may err so much."""
    missed = (1.0 - LEVEL) * min(error / LEVEL_ERROR, 1.0)
    between, within = len(parts) - 1, sum(map(len, parts)) - len(parts)
    if not within:
        return False
    middle = float(np.concatenate(parts).mean())
    over = sum(len(part) * (float(part.mean()) - middle) ** 2 for part in parts) / between
    under = sum(float(((part - part.mean()) ** 2).sum()) for part in parts) / within
    return over > under * f_quantile(missed, between, within)


@dataclass(frozen=True)
class Estimator:
    """`estimate` for contrasts of several variants, with what the blocks of their run have in common: the
    numbers of each block's host and image. A block that is not among `shared` has nothing in common."""

    method: Method
    shared: Mapping[Block, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Columns, method: Method) -> Estimator:
        """For the blocks of all trials of some columns."""
        rows = Rows(columns, columns.places)
        hosts, names = columns.fact(FLEET_HOST)
        images, _ = columns.fact(IMAGE)
        numbers = zip(
            _of_fleet(hosts[rows.places], names).tolist(), images[rows.places].tolist(), strict=True
        )
        return cls(method, dict(zip(rows.blocks, numbers, strict=True)))

    def ratio(
        self, metric: str, logs: Mapping[Block, float], confidence: float, judged: bool = False
    ) -> Ratio | None:
        """The geometric mean of what these log contrasts say, and its interval; the narrower one, too, of
        what is to be judged."""
        return estimated_ratio(metric, self._contrasts(logs), confidence, self.method, judged)

    def centred(self, contrasts: Mapping[Block, float], confidence: float) -> Centred:
        """The mean of contrasts in their own unit, and its interval. There is one."""
        return centred_of(self._contrasts(contrasts), confidence, self.method)

    def _contrasts(self, found: Mapping[Block, float]) -> Contrasts:
        # In one order, so that no figure depends on that of the records.
        blocks = sorted(found)
        shared = np.array([self.shared.get(block, (NOBODYS, 0)) for block in blocks], dtype=np.int64)
        hosts, images = shared.reshape(-1, 2).T
        return Contrasts(np.array([found[block] for block in blocks], dtype=np.float64), hosts, images)


def around_means(method: Method) -> Method:
    """The same for what ranks have no say in: contrasts of several variants, and values that are mostly 0."""
    return method.but(interval=Interval.STUDENT) if method.interval is Interval.SIGNED_RANK else method
