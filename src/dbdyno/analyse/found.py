"""The nouns of what single findings tell: each is a field of an Analysis, and JSON for whoever reads one.

They stand apart from what finds and shows them, because pages, exit codes and other tools read an Analysis
without either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import Field, WrapValidator

from dbdyno.analyse.schema import VariantSchema
from dbdyno.frozen import Frozen, absent


class LayoutSpread(Frozen):
    """How far the baseline's code at other addresses differs from the baseline: by up to the share
    `difference`, over so many `placebos`. One more layout differs by a ratio from `low` to `high`, as far as
    the placebos can say, and two of them by up to `apart`. The limits hold for all `builds` of the run
    together, with the study's confidence."""

    placebos: int
    difference: float
    builds: int
    low: float
    high: float
    apart: float


class Blocking(Frozen):
    """What comparing within blocks is worth: without blocks the same precision takes `efficiency` times as
    many trials. With its 95 % interval."""

    efficiency: float
    low: float
    high: float


class Floor(Frozen):
    """How far two runs of one variant differ here: by up to the share `difference`, with `confidence`.

    `log_sd` is the spread of the log ratio of two equal variants in one block, from the `twin`, or from what
    variants and blocks leave unexplained. `neighbours` is the correlation of the log ratios of blocks that
    follow one another, with the chance of one as high where they are independent, and its upper limit (95 %,
    one-sided): intervals take blocks for independent.
    """

    twin: bool
    blocks: int
    log_sd: float
    difference: float
    confidence: float
    blocking: Blocking
    neighbours: float
    neighbours_p: float
    neighbours_high: float


class Components(Frozen):
    """Spreads of the log speed of one server: of `starts` from trial to trial, whatever their length, with
    its 95 % interval, and of `pieces` within a trial. Pieces are slices, about `piece_s` long, or seconds.
    The mean of a trial spreads `alike` times as far as that of as many independent pieces would.
    """

    starts: float
    starts_low: float
    starts_high: float
    pieces: float
    alike: float = absent(1.0)
    piece_s: float
    sliced: bool
    blocks: int


class CostRatio(Frozen):
    """The ratio of a cost, candidate / baseline, with an interval that holds together with the others'."""

    variant: str
    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        return not self.low <= 1.0 <= self.high


class SecondResponse(Frozen):
    """The ratios of another metric, whose log ratios spread from block to block `spread_share` times as far
    as the response's (median of the candidates)."""

    metric: str
    spread_share: float
    ratios: tuple[CostRatio, ...]


class RatioPosition(StrEnum):
    """Where the interval of a ratio lies: on one side of 1 and beyond the margin, within the margin, or none
    of these."""

    ABOVE = "above"
    BELOW = "below"
    LEVEL = "level"
    OPEN = "open"


class Narrower(Frozen):
    """The interval that tells "no effect": each end of it errs as seldom as both of the wider one."""

    low: float
    high: float
    confidence: float


class HostEffect(Frozen):
    """The response's ratio variant / baseline on one host: the geometric mean over its `blocks`, with the
    interval, which is absent with a single block. `told` is what this host by itself says;
    "no effect" by the `narrower` interval, if any."""

    host: str
    blocks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    told: RatioPosition = RatioPosition.OPEN
    narrower: Narrower | None = absent(None)


class OnHosts(Frozen):
    """A variant on each host that compared it. Where the variant is told faster or slower, `contrary` are the
    hosts that by themselves say the opposite. `between_log_sd` is how far hosts differ beyond what their
    blocks explain, as the standard deviation of log ratios; None where a host has too few blocks. A further
    host would show a ratio between `further_low` and `further_high` in as many blocks; None with too few
    hosts."""

    variant: str
    each: tuple[HostEffect, ...]
    contrary: tuple[str, ...] = ()
    between_log_sd: float | None = None
    further_low: float | None = None
    further_high: float | None = None


class OneHost(Frozen):
    """A host of a fleet, by its name there, with how many blocks have a trial of it. Its `floor` is what its
    blocks by themselves cannot tell; None while there are too few."""

    name: str
    blocks: int
    floor: Floor | None = None


class HostsCompared(Frozen):
    """The hosts of a fleet beside each other. The intervals of a host's effects have `confidence_each`, so
    that those of all hosts and variants hold together with the study's. Where intervals of variants are
    `over_hosts`, their unit is the host."""

    hosts: tuple[OneHost, ...]
    over_hosts: bool
    confidence_each: float
    variants: tuple[OnHosts, ...]


T = TypeVar("T")


class ReadAgain(Sequence[T]):
    """What is made when it is asked for, because all together would fill memory."""


def _as_they_are(given: Any, validated: Callable[[Any], Any]) -> Any:
    return given if isinstance(given, ReadAgain) else validated(given)


KEPT_LAZY = WrapValidator(_as_they_are)
"""For a field that may hold such a sequence: nothing is made of it to validate it."""


class Segment(Frozen):
    """A stretch of seconds at one level: `[start, stop)` in seconds of the series, level in operations per
    second.
    """

    start: int
    stop: int
    level: float


class Steady(Frozen):
    """Where a trial's throughput settled, from its per-second series.

    Seconds count from the start of the measured part, as in the series: warm-up seconds are negative.
    `settled_at` is the first second of the steady state. `share` is the part of the measured seconds that it
    covers.
    """

    settled_at: int
    share: float
    settled: bool
    warmup_enough: bool
    segments: tuple[Segment, ...]


class Series(Frozen):
    """Operations per second, `width_s` seconds to a point, which may be less than one; seconds count from
    the start of the measured part.
    """

    width_s: int | float
    seconds: tuple[int | float, ...]
    operations_per_s: tuple[float, ...]


class Estimate(Frozen):
    """An arithmetic mean over trials with its t interval; a single trial gives none."""

    name: str
    mean: float
    low: float | None = None
    high: float | None = None
    trials: int


class TimeSplit(Frozen):
    """The time of one operation, in microseconds, and its parts (`analyse/split.py`), which add up to it.

    `beyond_us` is how much the parts come to more than the whole; above 0 there is no remainder. `missing`
    are parts that were not read and lie in the remainder. `hardware` are facts of the CPU's counters,
    `engine` the engine's own counters per operation; `uncounted` says why a counter of the CPU has no figure.
    """

    variant: str
    trials: int
    whole: Estimate
    parts: tuple[Estimate, ...]
    beyond_us: float = 0.0
    missing: tuple[str, ...] = ()
    hardware: tuple[Estimate, ...] = ()
    engine: tuple[Estimate, ...] = ()
    uncounted: dict[str, str] = Field(default_factory=dict)

    def share(self, part: Estimate) -> float:
        """A part over the whole."""
        return part.mean / self.whole.mean


class RequestPart(Frozen):
    """One part of the time of an operation that passes through an application: microseconds, and how many
    more than with the baseline, paired by block. There is no `more_us` of the baseline itself, nor without a
    block in which both were measured."""

    us: Estimate
    more_us: Estimate | None = None


class RequestTimes(Frozen):
    """Where an operation's time goes that passes through an application (`findings/request.py`): `parts` are
    the application, the database and waiting, which add up to the whole. `requests_per_op` counts the
    requests of all operations, over those that ended well; so does `errors_per_op`."""

    variant: str
    trials: int
    requests_per_op: float
    errors_per_op: float
    whole: RequestPart
    parts: tuple[RequestPart, ...]

    def share(self, part: RequestPart) -> float:
        """A part over the whole."""
        return part.us.mean / self.whole.us.mean


class StatementTime(Frozen):
    """One kind of statement, by its text without values: how many a transaction has, and the microseconds of
    a transaction that its client waited for them. `errors` counts those that failed in all trials."""

    text: str
    per_op: float
    us_per_op: Estimate
    errors: int


class StatementTimes(Frozen):
    """The kinds of statements of one variant, those that took the most time first."""

    variant: str
    trials: int
    kinds: tuple[StatementTime, ...]


class StatementRatio(Frozen):
    """The time of one statement, variant / baseline: geometric mean over `blocks`, with an interval that
    holds together with those of all other statements and variants; None with a single block. Both times are
    means over the executions of a trial, in ms. It was called so many times in a log, if one tells that."""

    statement: str
    variant: str
    baseline_ms: float
    ms: float
    blocks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    told: RatioPosition = RatioPosition.OPEN
    calls: int | None = absent(None)

    @property
    def change_s(self) -> float | None:
        """By how much all calls of the log take longer, in seconds."""
        return None if self.calls is None else self.calls * (self.ms - self.baseline_ms) / 1000.0


class AnswerDifference(Frozen):
    """A statement that a variant answers otherwise than the baseline: in `what`, and why that is no fault of
    the variant, where it is `harmless`. `before` and `after` are the first rows that only one of the two
    has, or how it was refused."""

    statement: str
    what: str
    harmless: str = absent("")
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class VariantAnswers(Frozen):
    """How the answers of a variant differ from the baseline's, over `compared` statements."""

    variant: str
    compared: int
    differences: tuple[AnswerDifference, ...] = ()
    why_not: str = absent("")


class IndexCost(Frozen):
    """What the index of a variant costs: seconds to build, and by how many bytes the data grew; medians."""

    variant: str
    factor: str
    build_s: float
    size_bytes: float | None = None


class StatementsCompared(Frozen):
    """Each statement by itself under each variant, over one family of `comparisons`."""

    comparisons: int
    confidence: float
    ratios: tuple[StatementRatio, ...] = ()
    unanswered: dict[str, tuple[str, ...]] = absent({})
    answers: tuple[VariantAnswers, ...] = absent(())
    schemas: tuple[VariantSchema, ...] = absent(())
    indexes: tuple[IndexCost, ...] = absent(())


class StatementCostRatio(Frozen):
    """What one execution of a statement takes: `cpu_ms` of the server, geometric means over `blocks`, the
    ratio variant / baseline and an interval that holds together with all others; None where no CPU is known.
    `counted` has what the engine counts of it: the medians of the baseline and of the variant."""

    statement: str
    variant: str
    baseline_cpu_ms: float | None = None
    cpu_ms: float | None = None
    blocks: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    told: RatioPosition = RatioPosition.OPEN
    counted: dict[str, tuple[float, float]] = absent({})


class StatementCostsCompared(Frozen):
    """The costs of all statements, over one family of `comparisons`. `why_not` says of variants why theirs
    are not known."""

    comparisons: int
    confidence: float
    ratios: tuple[StatementCostRatio, ...] = ()
    why_not: dict[str, str] = absent({})


class StageTime(Frozen):
    """Seconds that one stage took over the measured trials, and its share of their wall time. `load` is the
    warm-up and the measured part, which the stage `drive` then does not hold."""

    name: str
    median_s: float
    longest_s: float
    share: float


class Overhead(Frozen):
    """What the measured trials' wall time went into. `overhead_s` is the median of what a trial took beside
    its load, `overhead_share` that part of all trials' wall time."""

    trials: int
    stages: tuple[StageTime, ...]
    trial_s: float
    overhead_s: float
    overhead_share: float


class HostCondition(Frozen):
    """What one metric of the host was in the measured parts of the trials."""

    metric: str
    trials: int
    median: float
    lowest: float
    highest: float


class InstructionChange(Frozen):
    """A function's own instructions per transaction in two variants: `change` = `own` - `against`.

    `share` is the change over the change of all functions together, None where those do not differ.
    """

    name: str
    module: str
    own: float
    against: float
    change: float
    share: float | None


class CountedVariant(Frozen):
    """The instructions that one variant executes per transaction, counted in `trial` beside the timed blocks.

    `spread` is the largest repeat over the smallest, less one. `ratio` is to the baseline's, the median over
    repeats where these are paired, because work that a server does now and then by itself is in some of them;
    `told` says that they tell it from 1. `changes` are the functions that differ most. Without a count,
    `cause` says why.
    """

    variant: str
    trial: int
    instructions_per_op: float | None = None
    spread: float = 0.0
    ratio: float | None = None
    told: bool = False
    changes: tuple[InstructionChange, ...] = ()
    cause: str = ""


class EngineRan(Frozen):
    """What ran at a level of the factor `engine`: the `product` and its `version`, and in words where it
    comes from (`origin`), which file the process held (`proof`), and what compiled it where that is told
    (`compiler`). Empty where no trial of it came so far. Where it took over the data of the baseline's,
    `upgraded_by` says how, in words, and `upgrade_s` has the seconds that this took, for each image of the
    data."""

    level: str
    product: str
    version: str = ""
    origin: str = ""
    proof: str = ""
    compiler: str = absent("")
    upgraded_by: str = absent("")
    upgrade_s: tuple[float, ...] = absent(())


class DefaultChanged(Frozen):
    """A setting whose default is not the baseline's. None where an engine has no such setting. `seen` is what
    the level showed more of than the baseline, and this setting decides: an error, or a metric's name."""

    name: str
    before: str | None
    after: str | None
    seen: str = absent("")


class DefaultsBeside(Frozen):
    """What differs between the defaults of the baseline's engine and of another version of the same product,
    of `compared` settings that either knows."""

    level: str
    compared: int
    changed: tuple[DefaultChanged, ...]


class RowsDiffer(Frozen):
    """Tables of another engine that are not as the baseline's in an image of the data: both checksums."""

    level: str
    image: int
    before: str
    after: str


class EnginesCompared(Frozen):
    """What a run whose engines are a factor shows of them, the baseline's first. `same_rows` are the levels
    whose rows were shown to be the baseline's, and `other_rows` those whose were not. `products` are how many
    different ones there are."""

    ran: tuple[EngineRan, ...]
    same_rows: tuple[str, ...] = ()
    other_rows: tuple[RowsDiffer, ...] = ()
    defaults: tuple[DefaultsBeside, ...] = ()

    @property
    def products(self) -> int:
        return len({one.product for one in self.ran})

    @property
    def compiled_apart(self) -> dict[str, str]:
        """The compilers of those levels whose compiler is known not to be the baseline's, by level."""
        before, *others = self.ran
        told = {one.level: one.compiler for one in others if before.compiler and one.compiler}
        return {level: compiler for level, compiler in told.items() if compiler != before.compiler}


class PlanForm(Frozen):
    """One plan of a statement: what is done in which order, its steps as a tree, and in how many blocks a
    variant had it. `rows` are those that each step was expected to give and gave, where it was executed."""

    summary: str
    steps: tuple[str, ...]
    blocks: int
    rows: tuple[tuple[float, float] | None, ...] = absent(())


class PlanChange(Frozen):
    """A statement whose plan differed from the baseline's in `changed` of the `blocks` in which both are
    known. `change` names the steps that differ. `before` are the baseline's plans and `after` the variant's,
    in all blocks, the most frequent first."""

    statement: str
    text: str
    change: str
    changed: int
    blocks: int
    before: tuple[PlanForm, ...]
    after: tuple[PlanForm, ...]


class PlanFlip(Frozen):
    """A statement that had more than one plan in the blocks of one and the same variant."""

    variant: str
    statement: str
    text: str
    forms: tuple[PlanForm, ...]


class VariantPlans(Frozen):
    """What differs from the baseline's plans in one variant, over the statements that could be `compared`."""

    variant: str
    compared: int
    changes: tuple[PlanChange, ...]


class Unexplained(Frozen):
    """A statement, or all of a transaction or a variant, whose plan is not known, and why."""

    name: str
    text: str = ""
    why: str


class PlansCompared(Frozen):
    """The plans of a run's statements. `flips` are those of single variants, the baseline's among them."""

    statements: int
    variants: tuple[VariantPlans, ...]
    flips: tuple[PlanFlip, ...] = absent(())
    unexplained: tuple[Unexplained, ...] = absent(())

    def of(self, variant: str) -> tuple[PlanChange, ...]:
        """What changed in a variant."""
        return next((one.changes for one in self.variants if one.variant == variant), ())


class Replays(Frozen):
    """The replays of one variant's measured trials. `took_s` and the lags (99th percentiles, in ms) are
    medians over them; a lag is None where the recording was played without pauses. Counts are sums."""

    variant: str
    trials: int
    recorded_s: float
    took_s: float
    statements: int
    unsent: int
    late_by_server: int
    late_by_driver: int
    server_lag_p99_ms: float | None
    driver_lag_p99_ms: float | None
    failed: int
    rows_compared: int
    rows_differ: int


EFFORTS = ("workload.ef", "config.mhnsw_ef_search", "config.hnsw.ef_search")
"""Factors that trade speed for recall; the first that a study has makes its frontier."""
