"""One study over many of its runs: what each ratio was in every run, and whether it moved.

All blocks of a run share its day and its data, so the run is the unit of what differs between runs: each
gives one log ratio per variant. Runs stand in the order in which they began. A *stretch* is a row of runs
that nothing known sets apart. Four things may be said of a variant:

    mean             its ratio over the runs of the last stretch, with Student's interval
    against_earlier  a run's ratio over the mean of the m runs of its stretch before it: of equal runs the
                     difference of logs has the variance s^2 (1 + 1/m), and Student's law (Biometrika 6, 1908)
                     if they are normal; `FREEDOM_MOST` makes room for long tails
    change points    places in the row of all runs that nobody names before, wherever the ratio changed
                     (`change_points.py`)
    shift            between two stretches that follow one another, with Welch's interval (`compare.py`); and
                     between the last runs of a stretch and those before them, with Student's, because runs
                     that nothing sets apart have one spread

Each takes `RUNS_LEAST` runs on each side that has a spread. A single run that stands out is no trend. A shift
has no cause either: what changed between two stretches changed together with the days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import stdev
from typing import TYPE_CHECKING, Any

from dbdyno.analyse import Axis
from dbdyno.analyse.change_points import cuts
from dbdyno.analyse.compare import RUNS_LEAST, excludes_one
from dbdyno.analyse.floor import neighbours
from dbdyno.analyse.intervals import as_told, bounded_exp, pooled, ratio_of, usable, welch, within
from dbdyno.analyse.model import Ratio, Role, Summary, Verdict
from dbdyno.analyse.quantiles import confidence_each, f_quantile, t_quantile
from dbdyno.frozen import Frozen, absent
from dbdyno.records.circumstances import Circumstance, circumstances_of
from dbdyno.records.record import Outcome
from dbdyno.records.run import SourceCommit
from dbdyno.study.nouns import Promise

if TYPE_CHECKING:
    from dbdyno.analyse.model import Analysis, VariantResult
    from dbdyno.study import Study

FREEDOM_MOST = 3.0
"""Degrees of freedom of the limit for single runs. More runs tell the spread better, but not the tail, and
Student's law of many runs has none. So chosen, pages of 4 to 50 equal runs whose noise has three degrees of
freedom raise an alarm of their last run or a shift in 2.5 to 4.2 % of cases (200,000 simulated pages for each
length, one variant)."""
READ_AFTER_EACH = {10: 0.15, 20: 0.26, 30: 0.38, 40: 0.46, 60: 0.60}
"""By how many equal runs a page of one variant that is read after each of them has raised an alarm: how
often, as 300 simulated rows of independent normal ratios gave it at 95 %. Each page holds what it promises,
and a reader of all of them meets more: through the last runs against those before them, and change points.
With a twentieth of the errors 6 % meet one by the 30th page, but a step of two spreads is told after 8 runs
(median of 150 rows) instead of 3."""
WITHOUT_SPEED = (Verdict.BROKEN, Verdict.FAILED, Verdict.BLOCKED, Verdict.INERT)


class Omission(StrEnum):
    """Why a run of the study is not in its trend. `CHANGED`: of a file of the same name that asks something
    else. `REFERENCE`: measured beside another run, for a gate."""

    UNFINISHED = "unfinished"
    CHANGED = "changed"
    REFERENCE = "reference"
    SOAK = "soak"
    WITHOUT_RATIO = "without ratio"
    WITHOUT_COMMIT = "without commit"
    OLDER = "older"
    BEYOND_LIMIT = "beyond limit"


class Movement(StrEnum):
    """What the interval of a shift allows to be said. `SAME`: it lies within the margin."""

    MOVED = "moved"
    SAME = "same"
    OPEN = "open"


class RunRatio(Frozen):
    """A variant in one run: `effect` is its ratio to the baseline as that run's report tells it, absent where
    the variant or the baseline did not hold. `against_earlier` is absent while too few runs came before."""

    variant: str
    role: Role
    verdict: Verdict | None
    effect: Ratio | None
    against_earlier: Ratio | None = None
    gives_up: tuple[Promise, ...] = absent(())


class TrendRun(Frozen):
    """One run of the study. `name` and `note` are its user's. `changed` are the circumstances in which it
    differs from the run before it; `doubtful` counts its measured trials with warnings."""

    run: str
    began_unix_s: float
    name: str
    note: str
    blocks: int
    host: str
    engine: str
    commit: SourceCommit | None = absent(None)
    circumstances: dict[Circumstance, str]
    changed: tuple[Circumstance, ...] = ()
    baseline: Summary | None
    doubtful: int
    ratios: tuple[RunRatio, ...]

    def ratio(self, variant: str) -> RunRatio | None:
        return next((one for one in self.ratios if one.variant == variant), None)


class Shift(Frozen):
    """A variant's ratio in some runs over that in the runs before them. `first` is the earlier of the later
    runs, `runs` how many of each side have a ratio, `changed` what set the two sides apart: nothing for the
    last runs of a stretch. Without `RUNS_LEAST` runs a side there is no `ratio`."""

    first: str
    runs: tuple[int, int]
    changed: tuple[Circumstance, ...]
    ratio: Ratio | None
    movement: Movement


class BeyondBlocks(Frozen):
    """Whether runs differ by more than their blocks explain: the variance of the runs' log ratios over that
    which the spreads of their blocks give, an F ratio, and its quantile at 95 %."""

    ratio: float
    limit: float
    runs: int

    @property
    def shown(self) -> bool:
        return self.ratio > self.limit


class ChangePoint(Frozen):
    """A place in the row of all runs where a variant's ratio changed, which the row itself tells
    (`change_points.py`). `first` is the first run after it. `ratio` is the geometric mean of the runs after
    it over that of the runs before it, each up to the next change point or the end of the row; `runs` counts
    them. `p` is how often chance alone gives as clear a change. `changed` is what is known to have changed in
    that run. The first run after it may be any from `earliest` to `latest`, with 95 %. `before` and `after`
    are ends between which its cause is looked for: each one run farther out, because one run may be an odd
    one."""

    first: str
    earliest: str = absent("")
    latest: str = absent("")
    before: str = absent("")
    after: str = absent("")
    ratio: float
    runs: tuple[int, int]
    p: float
    changed: tuple[Circumstance, ...] = ()


class Alike(Frozen):
    """The correlation of runs that follow one another, and the chance of one as high where they are
    independent."""

    correlation: float
    p: float


class VariantTrend(Frozen):
    """What may be said of one variant over all runs. `mean` and `beyond_blocks` are over the last stretch.
    `alike` is how runs that follow one another correlate between its change points, where that is shown: what
    is said of single runs, and of changes, takes them for independent."""

    variant: str
    role: Role
    mean: Ratio | None
    beyond_blocks: BeyondBlocks | None = None
    shifts: tuple[Shift, ...]
    change_points: tuple[ChangePoint, ...] = ()
    alike: Alike | None = absent(None)


class Trend(Frozen):
    """One study over its runs, in the order of its `axis`. All intervals of `variants`, and of the last run
    against the earlier ones, hold together with `confidence`, one page at a time. Those of earlier runs hold
    each by itself. Change points have the same confidence once more: of pages without a change so few have
    one. `speed_log_sd` is the spread of the baseline's log response over the runs of the last stretch."""

    title: str
    study_path: str
    metric: str
    margin: float
    confidence: float
    runs: tuple[TrendRun, ...]
    variants: tuple[VariantTrend, ...]
    speed_log_sd: float | None
    left_out: dict[Omission, int]
    axis: Axis = absent(Axis.TIME)


Runs = Sequence[TrendRun]


def run_of_trend(analysis: Analysis) -> TrendRun:
    """What a trend needs of a run, so that no more of many runs is held at a time. Its name and note are its
    user's, who may change them."""
    engine = _engine(analysis)
    return TrendRun(
        run=analysis.run.run,
        began_unix_s=analysis.run.created_unix_s,
        name="",
        note="",
        blocks=analysis.run.blocks,
        host=analysis.run.host.name or "not known",
        engine=engine,
        commit=analysis.run.commit,
        circumstances=circumstances_of(analysis.study, analysis.run, engine),
        baseline=analysis.baseline.response,
        doubtful=sum(bool(trial.warnings) for trial in analysis.trials if trial.response is not None),
        ratios=tuple(
            RunRatio(
                variant=one.name,
                role=one.role,
                verdict=one.verdict,
                effect=one.effect if _holds(one, analysis) else None,
                gives_up=one.gives_up,
            )
            for one in analysis.variants
            if one.role is not Role.BASELINE
        ),
    )


def trend(
    study: Study, runs: Iterable[TrendRun], left_out: Mapping[Omission, int], axis: Axis = Axis.TIME
) -> Trend:
    """The trend of a study from one run or more. By commits all of them must know theirs."""
    in_order = _marked(sorted(runs, key=partial(_place_on, axis)))
    stretches = _stretches(in_order)
    sides = _sides(stretches)
    roles = {ratio.variant: ratio.role for run in stretches[-1] for ratio in run.ratios}
    each = confidence_each(study.goal.confidence, _intervals_each(stretches, sides) * len(roles))
    of_rows = confidence_each(study.goal.confidence, len(roles))
    last, metric = stretches[-1], study.goal.response
    return Trend(
        title=study.title,
        study_path=study.path,
        metric=metric,
        margin=study.goal.margin,
        confidence=study.goal.confidence,
        runs=tuple(run for stretch in stretches for run in _against_earlier(stretch, each)),
        variants=tuple(
            VariantTrend(
                variant=name,
                role=role,
                mean=_mean(metric, _logs(last, name), each),
                beyond_blocks=beyond_blocks(_effects(last, name)),
                shifts=tuple(_shift(pair, name, study, each) for pair in sides),
                change_points=(changes := _change_points(in_order, name, of_rows)),
                alike=_alike(in_order, name, changes, study.goal.confidence),
            )
            for name, role in roles.items()
        ),
        speed_log_sd=_spread([math.log(speed) for speed in _speeds(last)]),
        left_out={why: count for why, count in left_out.items() if count},
        axis=axis,
    )


def _place_on(axis: Axis, run: TrendRun) -> tuple[Any, ...]:
    """What a run stands by in the row."""
    began = run.began_unix_s, run.run
    if axis is Axis.COMMIT and run.commit is not None:
        return run.commit.committed_unix_s, run.commit.hash, *began
    if axis is Axis.VERSION:
        return [int(digits) for digits in re.findall(r"\d+", run.engine)], run.engine, *began
    return began


def _holds(variant: VariantResult, analysis: Analysis) -> bool:
    return variant.verdict not in WITHOUT_SPEED and not analysis.answer.baseline_broken


def _engine(analysis: Analysis) -> str:
    """The engine, in the version that answered."""
    records = [trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    versions = sorted({record.engine_version for record in records if record.engine_version})
    return " ".join([analysis.study.engine.engine, *versions])


def _marked(runs: Runs) -> list[TrendRun]:
    """The runs with what changed since the one before each."""
    marked = [
        later.but(
            changed=tuple(
                one for one in Circumstance if later.circumstances[one] != earlier.circumstances[one]
            )
        )
        for earlier, later in pairwise(runs)
    ]
    return [*runs[:1], *marked]


def _stretches(runs: Runs) -> list[list[TrendRun]]:
    stretches: list[list[TrendRun]] = [[]]
    for run in runs:
        if run.changed:
            stretches.append([])
        stretches[-1].append(run)
    return stretches


def _sides(stretches: Sequence[Runs]) -> list[tuple[Runs, Runs]]:
    """What is held against each other: fixed before any ratio was looked at."""
    sides: list[tuple[Runs, Runs]] = list(pairwise(stretches))
    last = stretches[-1]
    if len(last) >= 2 * RUNS_LEAST:
        sides.append((last[:-RUNS_LEAST], last[-RUNS_LEAST:]))
    return sides


def _intervals_each(stretches: Sequence[Runs], sides: Sequence[tuple[Runs, Runs]]) -> int:
    """How many intervals a variant may have that a page rests on: its mean, the last run against the earlier
    ones, and its shifts. Whoever reads a page has read the earlier runs on pages of their own."""
    return 1 + (len(stretches[-1]) > RUNS_LEAST) + sum(min(map(len, pair)) >= RUNS_LEAST for pair in sides)


def _logs(runs: Runs, variant: str) -> list[float]:
    """A variant's log ratios, of the runs that have one."""
    found = [run.ratio(variant) for run in runs]
    return [math.log(one.effect.ratio) for one in found if one is not None and one.effect is not None]


def _effects(runs: Runs, variant: str) -> list[Ratio]:
    found = [run.ratio(variant) for run in runs]
    return [one.effect for one in found if one is not None and one.effect is not None]


def beyond_blocks(effects: Sequence[Ratio]) -> BeyondBlocks | None:
    """None with too few runs, or where a run tells no spread of its blocks."""
    spreads = [one.log_sd for one in effects if one.log_sd and one.pairs > 1]
    if len(effects) < RUNS_LEAST or len(spreads) < len(effects):
        return None
    explained = [spread**2 / one.pairs for spread, one in zip(spreads, effects, strict=True)]
    freedom = len(effects) - 1, sum(one.pairs - 1 for one in effects)
    between = stdev([math.log(one.ratio) for one in effects]) ** 2
    return BeyondBlocks(
        ratio=between / (math.fsum(explained) / len(explained)),
        limit=f_quantile(0.95, *freedom),
        runs=len(effects),
    )


def _speeds(runs: Runs) -> list[float]:
    """The baseline's responses, of the runs that have one above zero."""
    return [run.baseline.mean for run in runs if run.baseline is not None and usable(run.baseline.mean)]


def _spread(logs: Sequence[float]) -> float | None:
    return stdev(logs) if len(logs) >= RUNS_LEAST else None


def _mean(metric: str, logs: Sequence[float], confidence: float) -> Ratio | None:
    return ratio_of(metric, logs, confidence) if len(logs) >= RUNS_LEAST else None


def _against_earlier(stretch: Runs, confidence: float) -> list[TrendRun]:
    """Each run with its ratios held against those of the runs before it."""
    earlier: dict[str, Earlier] = {}
    found = []
    for run in stretch:
        held = tuple(
            one.but(against_earlier=_against(one, earlier.get(one.variant, Earlier()), confidence))
            for one in run.ratios
        )
        found.append(run.but(ratios=held))
        for name in {one.variant for one in run.ratios}:
            for log in _logs([run], name):
                earlier.setdefault(name, Earlier()).add(log)
    return found


@dataclass
class Earlier:
    """The log ratios of the runs before one: how many, and their sums without a rounding, so that a run more
    does not read them all again."""

    count: int = 0
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    def add(self, log: float) -> None:
        exact = Fraction(log)
        self.count += 1
        self.total += exact
        self.squares += exact * exact

    @property
    def mean(self) -> float:
        return float(self.total) / self.count

    @property
    def spread(self) -> float | None:
        """The standard deviation, rounded once, as `statistics.stdev` gives it."""
        count = self.count
        if count < RUNS_LEAST:
            return None
        variance = (self.squares - self.total * self.total / count) / (count - 1)
        with localcontext() as context:
            context.prec = DIGITS
            return float((Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt())


DIGITS = 80
"""Of a root before it is rounded to a float, which has 17."""


def _against(one: RunRatio, earlier: Earlier, confidence: float) -> Ratio | None:
    """A run's ratio over the mean of earlier ones, with the interval that an equal run falls into."""
    spread = earlier.spread if one.effect is not None else None
    if spread is None or one.effect is None:
        return None
    count = earlier.count
    difference = math.log(one.effect.ratio) - earlier.mean
    half = t_quantile(confidence, count, FREEDOM_MOST) * spread * math.sqrt(1.0 + 1.0 / count)
    return Ratio(
        metric=one.effect.metric,
        pairs=count,
        ratio=math.exp(difference),
        low=bounded_exp(difference - half),
        high=bounded_exp(difference + half),
        log_sd=spread,
        confidence=confidence,
    )


def _shift(sides: tuple[Runs, Runs], variant: str, study: Study, confidence: float) -> Shift:
    before, after = (_logs(side, variant) for side in sides)
    enough = min(len(before), len(after)) >= RUNS_LEAST
    of_means = welch if sides[1][0].changed else pooled
    ratio = of_means(study.goal.response, after, before, confidence, judged=True) if enough else None
    movement = _movement(ratio, study.goal.margin)
    return Shift(
        first=sides[1][0].run,
        runs=(len(before), len(after)),
        changed=sides[1][0].changed,
        ratio=ratio and as_told(ratio, movement is Movement.SAME, study.goal.margin),
        movement=movement,
    )


def _change_points(runs: Runs, variant: str, confidence: float) -> tuple[ChangePoint, ...]:
    """Where the ratio of a variant changed, in the row of the runs that have one."""
    with_ratio = [run for run in runs if (one := run.ratio(variant)) is not None and one.effect is not None]
    logs = _logs(with_ratio, variant)
    found = cuts(logs, confidence)
    ends = [0, *(cut.place for cut in found), len(logs)]
    sides = [logs[start:stop] for start, stop in pairwise(ends)]
    return tuple(
        ChangePoint(
            first=with_ratio[cut.place].run,
            earliest=with_ratio[cut.earliest].run,
            latest=with_ratio[cut.latest].run,
            before=with_ratio[max(cut.earliest - 2, 0)].run,
            after=with_ratio[min(cut.latest + 1, len(logs) - 1)].run,
            ratio=math.exp(math.fsum(after) / len(after) - math.fsum(before) / len(before)),
            runs=(len(before), len(after)),
            p=cut.p,
            changed=with_ratio[cut.place].changed,
        )
        for cut, (before, after) in zip(found, pairwise(sides), strict=True)
    )


def _alike(runs: Runs, variant: str, changes: Sequence[ChangePoint], confidence: float) -> Alike | None:
    """Whether the runs between change points resemble their neighbours; None where that is not shown. Without
    the changes, because a step makes neighbours alike as well."""
    with_ratio = [run for run in runs if _logs([run], variant)]
    starts = {change.first for change in changes}
    ends = [0, *(place for place, run in enumerate(with_ratio) if run.run in starts), len(with_ratio)]
    parts = [_logs(with_ratio[start:stop], variant) for start, stop in pairwise(ends)]
    left = [log - math.fsum(part) / len(part) for part in parts if part for log in part]
    found = neighbours([left])
    return Alike(correlation=found.correlation, p=found.p) if found.p < 1.0 - confidence else None


def _movement(ratio: Ratio | None, margin: float) -> Movement:
    if ratio is None:
        return Movement.OPEN
    if within(ratio, margin):
        return Movement.SAME
    return Movement.MOVED if excludes_one(ratio) else Movement.OPEN
