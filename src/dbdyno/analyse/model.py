"""What an analysis is made of. Facts only: the words for them stand in `report/words/`. Every ratio here is
variant / baseline. Every interval lies on the same scale as the value that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dbdyno.analyse.candidates import Judged, Starts
from dbdyno.analyse.capacity import Capacities
from dbdyno.analyse.found import (
    KEPT_LAZY,
    Components,
    CountedVariant,
    DefaultChanged,
    EnginesCompared,
    Floor,
    HostCondition,
    HostsCompared,
    LayoutSpread,
    Narrower,
    Overhead,
    PlansCompared,
    Replays,
    RequestTimes,
    SecondResponse,
    Series,
    StatementCostsCompared,
    StatementsCompared,
    StatementTimes,
    Steady,
    TimeSplit,
)
from dbdyno.analyse.meanwhile import MeanwhileFound
from dbdyno.analyse.phases import PhasesCompared
from dbdyno.analyse.published import PublishedBeside
from dbdyno.analyse.restarts import Survival, Survivor
from dbdyno.frozen import Frozen, Level, absent
from dbdyno.records.binary import CodeBeside
from dbdyno.records.record import Check, Doubt, Evidence, Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Interval, Study
from dbdyno.study.nouns import Promise
from dbdyno.study.trials import Purpose

FORMAT = 2


class Verdict(StrEnum):
    """What the records say of a variant. Faster means better in the direction of the response."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_EFFECT = "no effect"
    INCONCLUSIVE = "inconclusive"
    BROKEN = "broken"
    BLOCKED = "blocked"
    FAILED = "failed"
    INERT = "inert"


class Unit(StrEnum):
    """What a comparison rests on: blocks of a run; pairs of logs that were brought; or single logs, which
    have nothing in common and are compared as independent ones."""

    BLOCK = "block"
    PAIR = "pair"
    REPETITION = "repetition"


class Reason(StrEnum):
    """Why a variant's verdict is inconclusive."""

    SPREAD = "spread"
    TOO_FEW_PAIRS = "too_few_pairs"
    GUARD = "guard"
    NO_BASELINE = "no_baseline"
    BASELINE_BROKEN = "baseline_broken"
    NO_RESPONSE = "no_response"
    NOT_RUN = "not_run"
    LAYOUT = "layout"
    MEAN = "mean"
    LOST = "lost"
    FAILS_MORE = "fails_more"
    EMULATED = "emulated"


class Role(StrEnum):
    """A variant's part in the study. The twin is the second copy of the baseline of an A/A study, a placebo
    its code at other addresses."""

    BASELINE = "baseline"
    TWIN = "twin"
    PLACEBO = "placebo"
    CANDIDATE = "candidate"


class Kept(StrEnum):
    """Whether a guard holds: the whole interval on one side of the bound, or undecided. `unread`: no block
    has what it needs."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"
    UNREAD = "unread"


class Ratio(Frozen):
    """The ratio variant / baseline of one metric: geometric mean over `pairs` blocks, with its interval, of
    which alone the `confidence` is; none with a single pair. `log_sd` is the standard deviation of the log
    ratios between blocks. Where `hosts` of a fleet were compared, or `images` of the data differ, mean and
    interval are over the means of so many. A verdict "no effect" rests on the `narrower` interval, if any."""

    metric: str
    pairs: int
    ratio: float
    low: float | None = None
    high: float | None = None
    log_sd: float | None = None
    confidence: float
    narrower: Narrower | None = absent(None)
    images: int | None = absent(None)
    hosts: int | None = absent(None)


class Summary(Frozen):
    """One metric of a variant over its measured trials: geometric mean, arithmetic if not all are above 0."""

    metric: str
    trials: int
    mean: float
    low: float
    high: float
    geometric: bool = True


class Dropped(Frozen):
    """One block that gave no pair: whose trial was missing (`variant`), and how that trial ended."""

    block: int
    variant: str
    outcome: Outcome | None = None
    cause: str = ""


class GuardResult(Frozen):
    """A guard of the study on one variant. `value` is a ratio for a relative guard, else the metric's mean;
    of `durable` it is how many of `trials` power cuts took something along.
    Where a reading is 0 there is no ratio: a relative guard then has both means, `value` and `baseline`."""

    text: str
    metric: str
    state: Kept
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    relative: bool = False
    baseline: float | None = None
    trials: int = 0


class BlockRatio(Frozen):
    """The response's ratio variant / baseline in one block, and the variant's trial there."""

    block: int
    trial: int
    ratio: float


class Percentile(Frozen):
    """One point of a latency distribution: the share of operations above it, and the latency."""

    above: float
    latency_ms: float


class VariantResult(Frozen):
    """All that is known of one variant. `changed` holds the levels that differ from the baseline's.

    `effect` is the response's ratio with the simultaneous interval; where that is a signed-rank interval,
    `mean` is the mean of the same blocks with Student's, and where it is adjusted, `unadjusted` is the ratio
    as it was. `costs` are other metrics' ratios with intervals that are not adjusted for the number of
    comparisons. `blocks_more` estimates how many more blocks would settle an inconclusive variant. Where they
    vary too much for one figure, `blocks_more_even` is how many would in half of cases. A verdict that
    would be another without a few of its blocks is `carried_by` so many. `decided` says that a
    sequential run needs no further trial of it. `latency` is the distribution over all measured trials.
    `idle` says why nothing that it changes could matter here. `gives_up` is what it lets go of that the
    baseline keeps, and `code` how its build's code differs."""

    name: str
    role: Role
    levels: dict[str, Level]
    changed: dict[str, Level]
    outcomes: dict[Outcome, int]
    response: Summary | None = None
    effect: Ratio | None = None
    mean: Ratio | None = absent(None)
    unadjusted: Ratio | None = absent(None)
    block_ratios: tuple[BlockRatio, ...] = ()
    costs: tuple[Ratio, ...] = ()
    summaries: tuple[Summary, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    verdict: Verdict | None = None
    reason: Reason | None = None
    cause: str = ""
    remedy: str = ""
    blocks_more: int | None = None
    blocks_more_even: int | None = absent(None)
    carried_by: int = absent(0)
    decided: bool = False
    dropped: tuple[Dropped, ...] = ()
    warnings: dict[Doubt, int] = Field(default_factory=dict)
    latency: tuple[Percentile, ...] = ()
    idle: str = absent("")
    gives_up: tuple[Promise, ...] = absent(())
    code: CodeBeside | None = absent(None)

    def cost(self, metric: str) -> Ratio | None:
        return next((ratio for ratio in self.costs if ratio.metric == metric), None)

    def summary(self, metric: str) -> Summary | None:
        return next((summary for summary in self.summaries if summary.metric == metric), None)


class TrialResult(Frozen):
    """One trial: its record, its response (None: no speed), its steady state, and every warning on it."""

    record: Record
    response: float | None
    steady: Steady | None = None
    series: Series | None = None
    warnings: dict[Doubt, str] = Field(default_factory=dict)


class AaCheck(Frozen):
    """The instrument against itself: how often twin and baseline were called different, beside what was
    promised.

    `comparisons` are disjoint groups of consecutive blocks, each judged as a study of its own; `called` of
    them were called different; `promised` is the share that chance alone gives. `share_low` and
    `share_high` are the 95 % Clopper-Pearson interval of the true share."""

    effect: Ratio | None
    pairs: int
    blocks_per_comparison: int
    comparisons: int
    called: int
    promised: float
    share_low: float = 0.0
    share_high: float = 1.0


class Exhibit(Frozen):
    """One entry of the museum: what did not help, how it ended, why, and what shows it."""

    variant: str
    verdict: Verdict
    cause: str
    remedy: str
    evidence: tuple[Evidence, ...] = ()
    checks: tuple[Check, ...] = ()
    trials: tuple[int, ...] = ()
    gives_up: tuple[Promise, ...] = absent(())


class FactorEffect(Frozen):
    """A main effect of a factorial design: level / baseline's level, geometric mean over the other factors'
    settings.

    `settings` of `settings_planned` combinations of the other factors could be used. `gives_up` is what the
    level lets go of that the baseline's keeps."""

    factor: str
    level: Level
    against: Level
    effect: Ratio
    settings: int
    settings_planned: int
    gives_up: tuple[Promise, ...] = absent(())


class Interaction(Frozen):
    """How two factors act together: the ratio of what both do to the product of what each does alone.

    1 means that the effects multiply; above 1 the pair gives more than its parts.
    """

    factors: tuple[str, str]
    levels: tuple[Level, Level]
    effect: Ratio
    settings: int
    settings_planned: int


class Factorial(Frozen):
    """Main effects and pairwise interactions; `confidence` is familywise within each of the two tables."""

    main: tuple[FactorEffect, ...]
    interactions: tuple[Interaction, ...]
    confidence: float


class Share(Frozen):
    """One factor's part of a gap, each as a ratio fast / slow of the response.

    `gives_up` is what its fast level lets go of. `share` is its Shapley value: all shares multiply to the
    total. `alone` is its gain on the slow variant, `last` its gain when all others have been moved, `step`
    its gain in the order in which the study names the factors. A fraction of the variants tells `share`
    alone, with the interactions of three factors that are in `holds_besides`."""

    factor: str
    slow: Level
    fast: Level
    share: Ratio | None
    gives_up: tuple[Promise, ...] = absent(())
    alone: Ratio | None = None
    last: Ratio | None = None
    step: Ratio | None = None
    holds_besides: tuple[tuple[str, ...], ...] = ()


class Confounded(Frozen):
    """Interactions of two factors that a fraction cannot tell apart, and what they come to together: each
    multiplies, or divides where its sign is -1."""

    interactions: tuple[tuple[str, ...], ...]
    signs: tuple[int, ...]
    text: str
    effect: Ratio


class LeftOut(Frozen):
    """A factor whose fast level no trial could measure, so that the gap ends at its slow one; and why."""

    factor: str
    level: Level
    cause: str


class Gap(Frozen):
    """The gap between two variants (a level per factor, in the order of `factors`) and its shares.

    `total` is fast / slow; `interactions` is the total over the product of the gains alone. `missing` holds
    variants between the two that were not measured: with any, nothing is shared out. A factor of `left_out`
    stays at its slow level.

    From a fraction come `variants_measured`, how many of the 2^k were measured; `residual`, the total over
    the product of the shares; and `confounded` in place of `interactions`. From a list come shares that are
    its steps `in_order`, each of one factor or of several; `unset` are changed defaults of no step."""

    metric: str
    factors: tuple[str, ...]
    slow: tuple[Level, ...]
    fast: tuple[Level, ...]
    confidence: float
    total: Ratio | None = None
    shares: tuple[Share, ...] = ()
    interactions: Ratio | None = None
    blocks: int = 0
    missing: tuple[tuple[Level, ...], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    variants_measured: int | None = None
    residual: Ratio | None = None
    confounded: tuple[Confounded, ...] = ()
    in_order: bool = absent(False)
    unset: tuple[DefaultChanged, ...] = absent(())


class Reach(StrEnum):
    """Whether a frontier holds a recall: reached in every block, or what kept it from that."""

    REACHED = "reached"
    BELOW = "below"
    ABOVE = "above"
    IN_PART = "in part"


class FrontierPoint(Frozen):
    """One effort (level of the factor that trades recall for speed) over its measured trials."""

    effort: Level
    variant: str
    recall: Summary
    queries_per_s: Summary


class FrontierReading(Frozen):
    """A curve at one recall. Without `queries_per_s` it was not reached: every measured recall lies `below`
    the target, or `above` it, in at least one block; `in part`: some blocks reach it. `blocks` reached it.

    `effect` is this curve / the first curve at the same recall, with an interval adjusted for the number of
    curves compared.
    """

    recall: float
    reach: Reach
    blocks: int
    queries_per_s: Ratio | None = None
    effect: Ratio | None = None


class FrontierCurve(Frozen):
    """How speed falls as recall rises, at fixed `levels` of all other factors."""

    levels: dict[str, Level]
    points: tuple[FrontierPoint, ...]
    readings: tuple[FrontierReading, ...]


class Frontier(Frozen):
    """Recall against speed as `factor` varies; the first curve holds the baseline."""

    factor: str
    recalls: tuple[float, ...]
    curves: tuple[FrontierCurve, ...]
    blocks: int
    confidence: float


class Answer(Frozen):
    """The answer's facts: names of variants by verdict, the strongest effect first.

    `best` helped most: it is shown to be faster than each other candidate with a speed. Where it is not,
    there is none. `level` holds the strongest and those that may help as much, `rivals` who may help more.
    """

    best: str | None
    level: tuple[str, ...] = ()
    rivals: tuple[str, ...] = absent(())
    faster: tuple[str, ...]
    slower: tuple[str, ...]
    no_effect: tuple[str, ...]
    inconclusive: tuple[str, ...]
    broken: tuple[str, ...]
    blocked: tuple[str, ...]
    failed: tuple[str, ...]
    inert: tuple[str, ...] = absent(())
    baseline_broken: str = ""


class Method(Frozen):
    """The figures that the intervals rest on. `confidence` is the study's, for all `comparisons` together: of
    the response, and of each guard with a bound, with each candidate; `beside` of them are main effects and
    shares, which a head tells as well. A verdict needs `blocks_least` blocks, or as many of the `unit`. An
    `unfinished` run lacks planned trials, so somebody may stop it by what it shows. Looks at an interval were
    planned up to `blocks_most`, if any. `by_place` takes ratios at equal places in a block. With placebos no
    build counts as faster or slower within `layout`.
    """

    response: str
    higher_is_better: bool
    margin: float
    confidence: float
    comparisons: int
    beside: int = absent(0)
    confidence_each: float
    assurance: float
    interval: Interval = Interval.STUDENT
    blocks_least: int
    unit: Unit = absent(Unit.BLOCK)
    unfinished: bool = absent(False)
    blocks_most: int = absent(0)
    by_place: bool = absent(False)
    layout: LayoutSpread | None = absent(None)

    @property
    def sequential(self) -> bool:
        """Whether the interval holds at more looks than one."""
        return self.interval in (Interval.ANYTIME, Interval.PLANNED)


class Change(Frozen):
    """One change of a search's winner, from the baseline's level `against`. `share` is the ratio of the
    winner to the winner without this change; without one, `cause` says why that was not measured."""

    factor: str
    level: Level
    against: Level
    share: Ratio | None = None
    cause: str = ""


class Round(Frozen):
    """One round of an elimination, over its `blocks`. `total` is reference / baseline. `removed` are the
    changes that contribute nothing within the margin. After the first round `against_whole` is the reference
    over that of the first, and `too_few` says that it seems to be worse by more than the margin."""

    reference: str
    levels: dict[str, Level]
    blocks: tuple[int, ...]
    total: Ratio | None
    changes: tuple[Change, ...]
    removed: tuple[str, ...]
    against_whole: Ratio | None = None
    too_few: bool = False


GIVEN_UP = "given_up"
"""What stands in a candidate's `frontier` beside metrics where none is as good that gives up no more."""


class Tried(Frozen):
    """One candidate of a search: its ratio to the baseline over the `blocks` in which it was compared, which
    proves nothing, and the ratio of the best by then. A `cause` says why it has no ratio that counts. `costs`
    are ratios of other metrics, and `frontier` names those in which no candidate is better that has as good a
    response."""

    name: str
    changed: dict[str, Level]
    blocks: int
    ratio: float | None = None
    best: float | None = None
    cause: str = ""
    costs: dict[str, float] = Field(default_factory=dict)
    frontier: tuple[str, ...] = ()


class SearchResult(Frozen):
    """How a search went, and what it ends with.

    `winner` names the variant that is to be kept, which is confirmed; None where nothing helped, or while
    nothing is confirmed. `effect` is winner / baseline. `optimism` is the ratio that the search itself saw of
    the confirmed candidate over the confirmed one. `changes` are the winner's, and `removed` those that the
    elimination took away, with the share that each had. `took_s` are seconds by purpose. `apart_blocks` is
    how many blocks of the confirmation had servers that were not all up together, though the arrangement is
    side by side. `judged` are the finalists of an evaluation. `given_up` is what candidates and variants give
    up by the levels that they change, by name, without those that keep all.
    """

    tried: tuple[Tried, ...]
    finalists: tuple[str, ...] = ()
    confirmed: bool = False
    winner: str | None = None
    effect: Ratio | None = None
    optimism: float | None = None
    changes: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    rounds: tuple[Round, ...] = ()
    starts: Starts | None = absent(None)
    judged: tuple[Judged, ...] = absent(())
    took_s: dict[Purpose, float] = Field(default_factory=dict)
    apart_blocks: int = absent(0)
    # Nothing is told of searches in which nothing may be given up.
    given_up: dict[str, tuple[Promise, ...]] = absent({})


class Analysis(Frozen):
    """What the records of one run say of its study. Rebuilt from them alone. `trials` are those of blocks,
    `counted` and `survival` of others. What few runs have is absent where nothing is told of it."""

    format: int = FORMAT
    study: Study
    run: Run
    method: Method
    answer: Answer
    variants: tuple[VariantResult, ...]
    trials: Annotated[Sequence[TrialResult], KEPT_LAZY]
    aa: AaCheck | None = None
    floor: Floor | None = None
    components: Components | None = absent(None)
    second: SecondResponse | None = absent(None)
    museum: tuple[Exhibit, ...] = ()
    factorial: Factorial | None = None
    gap: Gap | None = None
    frontier: Frontier | None = None
    splits: tuple[TimeSplit, ...] = ()
    requests: tuple[RequestTimes, ...] = absent(())
    statements: tuple[StatementTimes, ...] = absent(())
    statements_compared: StatementsCompared | None = absent(None)
    statement_costs: StatementCostsCompared | None = absent(None)
    plans: PlansCompared | None = absent(None)
    engines: EnginesCompared | None = absent(None)
    hosts: HostsCompared | None = absent(None)
    replays: tuple[Replays, ...] = absent(())
    overhead: Overhead | None = None
    conditions: tuple[HostCondition, ...] = ()
    counted: tuple[CountedVariant, ...] = absent(())
    search: SearchResult | None = absent(None)
    survival: Survival | None = absent(None)
    capacities: Capacities | None = absent(None)
    meanwhile: MeanwhileFound | None = absent(None)
    published: tuple[PublishedBeside, ...] = absent(())
    phases: PhasesCompared | None = absent(None)
    trials_planned: int

    @property
    def baseline(self) -> VariantResult:
        return next(variant for variant in self.variants if variant.role is Role.BASELINE)

    @property
    def candidates(self) -> tuple[VariantResult, ...]:
        return tuple(variant for variant in self.variants if variant.role is Role.CANDIDATE)

    @property
    def survivors(self) -> tuple[Survivor, ...]:
        return self.survival.variants if self.survival else ()
