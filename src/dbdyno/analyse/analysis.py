"""The whole of an analysis: what each module of this room finds in a run's records, put together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from dbdyno.analyse.assurance import ASSURANCE
from dbdyno.analyse.blocks import Block, Trials, pairs, with_copies
from dbdyno.analyse.components import components
from dbdyno.analyse.counted import counted_work
from dbdyno.analyse.effects import is_decided, variant_result
from dbdyno.analyse.engines import engines_compared
from dbdyno.analyse.factorial import Cells, factorial
from dbdyno.analyse.family import beside, claims, explains_gap
from dbdyno.analyse.floor import floor
from dbdyno.analyse.fractional import explain_fraction
from dbdyno.analyse.frontier import frontier
from dbdyno.analyse.gap import explain
from dbdyno.analyse.intervals import Claim, usable
from dbdyno.analyse.layout import layout_spread
from dbdyno.analyse.losses import factorial_with_losses, gap_with_losses
from dbdyno.analyse.model import (
    AaCheck,
    Analysis,
    Factorial,
    Gap,
    LeftOut,
    Method,
    Role,
    TrialResult,
    Unit,
    VariantResult,
)
from dbdyno.analyse.museum import answer, museum
from dbdyno.analyse.noise import Components
from dbdyno.analyse.overhead import conditions, overhead
from dbdyno.analyse.plans import compared_plans
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.analyse.replays import replays
from dbdyno.analyse.request import request_times
from dbdyno.analyse.resets import mixed_resets
from dbdyno.analyse.restarts import Survival, survival, with_frontier
from dbdyno.analyse.second import second_response
from dbdyno.analyse.split import time_splits
from dbdyno.analyse.statements import statement_times
from dbdyno.analyse.steady import series_shown, steady_states, whole_seconds
from dbdyno.analyse.times import Series, Steady
from dbdyno.analyse.twin import aa_check
from dbdyno.frozen import Level
from dbdyno.records import metrics
from dbdyno.records.left_out import blocked_at_first, over_for_good
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import ComparisonRun, ImportedRun, Run
from dbdyno.study import Design, Interval, Study
from dbdyno.study.designs import trial_count, variants_of
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP
from dbdyno.study.trials import Variant

COSTS = (
    "p99_ms",
    "server_cpu_us_per_op",
    "driver_cpu_us_per_op",
    "recall",
    "p50_ms",
    "context_switches_per_op",
    "run_queue_wait_us_per_op",
    "written_bytes_per_op",
    "read_bytes_per_op",
    "resident_bytes",
)
"""What is shown beside the response: what a variant cost, whatever it gained."""

LATENCIES = ("p99_ms", "p95_ms", "p50_ms", "mean_ms")
"""The same for logs, which tell nothing of the host."""

TRIALS_TOGETHER = 1024

NO_MIXTURE: Mapping[int, str] = {}


def analyse_blocks(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not.

    A trial that was recorded more than once (a resumed run) counts once, with its last record.
    """
    variants = variants_of(study)
    latest = _latest(records)
    in_blocks = _in_blocks(latest)
    mixed = mixed_resets(in_blocks)
    survived = survival(study, latest)
    trials = _by_variant(variants, _results_of(in_blocks, study.goal.response, mixed))
    trials = _with_survivors(trials, survived)
    shown = [trial for each in trials for trial in each.by_block.values()]
    planned = _in_all(study, run, trials, records)
    method = _method(study, run, trials, unfinished=_shown(trials) < planned)
    results = _results(study, run, trials, method)
    compared, head = _compared(trials), _head(method)
    # Per variant, in the study's order.
    in_order = [trial.record for trial in shown]
    return Analysis(
        study=study,
        run=run,
        method=method,
        answer=answer(results, trials, method),
        variants=results,
        trials=tuple(sorted(shown, key=lambda trial: trial.record.trial)),
        aa=_aa_check(study, trials),
        floor=None if isinstance(run, ImportedRun) else floor(trials, method),
        components=None if isinstance(run, ImportedRun) else components(trials),
        second=second_response(trials, with_copies(trials), method),
        museum=museum(results, trials),
        factorial=factorial_with_losses(_factorial(study, compared, head), study, run.given_up),
        gap=gap_with_losses(_gap(study, compared, head), study, run.given_up),
        frontier=frontier(study, compared),
        splits=time_splits(in_order, study.goal.confidence),
        requests=request_times(in_order, variants[0].name, study.goal.confidence),
        statements=statement_times(in_order, study.goal.confidence),
        plans=compared_plans(in_order, variants[0].name),
        engines=engines_compared(study, in_order),
        replays=replays(in_order),
        overhead=None if isinstance(run, ImportedRun) else overhead(in_order),
        conditions=conditions(in_order),
        counted=counted_work(_counted(latest), variants[0].name),
        survival=with_frontier(survived, _worths(results, study.goal.response)) if survived else None,
        trials_planned=planned,
    )


def spreads_within(study: Study, records: Sequence[Record]) -> Components | None:
    """What the records of a run tell of its spreads, without the rest of an analysis; None while there are
    too few blocks, or too few pieces in a trial."""
    read = [TrialResult(record=record, response=None) for record in _in_blocks(_latest(records))]
    return components(_by_variant(variants_of(study), read))


@dataclass
class Looks:
    """What a run keeps from one look at its verdicts to the next: the trials by variant, with all that was
    read of them. It changes no answer, and without it each block would read all blocks before it again."""

    records: list[Record] = field(default_factory=list)
    variants: tuple[Variant, ...] = ()
    trials: list[Trials] = field(default_factory=list)
    restarts: list[Record] = field(default_factory=list)

    def take(self, variants: tuple[Variant, ...], records: Sequence[Record]) -> list[Trials]:
        """The trials of these records, of which those since the last look are read. All are read where the
        records of that look do not come first, or a later one takes the place of one of them."""
        come_first = variants == self.variants and records[: len(self.records)] == self.records
        added = _latest(records[len(self.records) :] if come_first else records)
        last = max((trial.index_most for trial in self.trials), default=-1) if come_first else -1
        if come_first and added and (added[0].trial <= last or added[-1].of_restarts):
            come_first, added = False, _latest(records)
        if not come_first:
            self.variants, self.trials, self.restarts = variants, _by_variant(variants, ()), []
        self.restarts += [record for record in added if record.of_restarts]
        by_name = {each.variant.name: each for each in self.trials}
        for record in _in_blocks(added):
            if record.variant in by_name:
                by_name[record.variant].add(TrialResult(record=record, response=None))
        self.records = list(records)
        return self.trials


def decided(study: Study, run: Run, records: Sequence[Record], looks: Looks | None = None) -> frozenset[str]:
    """The candidates whose verdict stands, whatever may follow: those that `analyse_blocks` calls decided. A
    run asks after each block, so nothing is made that only a report shows, and `looks` keeps what the earlier
    ones read."""
    looks = looks or Looks()
    trials = _with_survivors(looks.take(variants_of(study), records), survival(study, looks.restarts))
    unfinished = _shown(trials) < _in_all(study, run, trials, records)
    method, baseline = _method(study, run, trials, unfinished), with_copies(trials)
    return frozenset(
        each.variant.name
        for each in trials
        if each.role is Role.CANDIDATE and is_decided(each, baseline, study.goal, method)
    )


def _results(study: Study, run: Run, trials: Sequence[Trials], method: Method) -> tuple[VariantResult, ...]:
    """Of each variant. A twin is compared with the baseline alone, a candidate with all its copies."""
    alone, baseline = trials[0], with_copies(trials)
    return tuple(
        variant_result(
            baseline if each is alone else each,
            alone if each.role is Role.TWIN else baseline,
            study.goal,
            method,
            _costs(method, run),
        ).but(gives_up=(run.given_up or {}).get(each.variant.name, ()))
        for each in trials
    )


def _costs(method: Method, run: Run) -> tuple[str, ...]:
    """The metrics that stand beside the response, instructions among them where the CPU counts those of
    builds."""
    counting = run.counting if isinstance(run, ComparisonRun) else None
    by_counters = counting is not None and counting.by == "counters"
    beside = (INSTRUCTIONS_PER_OP,) if by_counters else ()
    return (*COSTS, *beside) if method.unit is Unit.BLOCK else LATENCIES


def _shown(trials: Sequence[Trials]) -> int:
    return sum(len(each.by_block) for each in trials)


def _in_all(study: Study, run: Run, trials: Sequence[Trials], records: Sequence[Record]) -> int:
    """How many trials in blocks the run is to have; one without a plan has all that it has."""
    return _shown(trials) if run.sequential or isinstance(run, ImportedRun) else _planned(study, run, records)


def _planned(study: Study, run: Run, records: Sequence[Record]) -> int:
    left_out = over_for_good(variants_of(study), records)
    if run.budget_s is not None:
        left_out |= blocked_at_first(records)
    return trial_count(study, len(left_out))


def _latest(records: Sequence[Record]) -> list[Record]:
    latest: dict[int, Record] = {}
    for record in sorted(filter(lambda one: one.whole, records), key=lambda one: one.finished_unix_s):
        latest[record.trial] = record
    return sorted(latest.values(), key=lambda record: record.trial)


def _counted(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.of_no_block and not record.of_restarts]


def _with_survivors(trials: Sequence[Trials], survived: Survival | None) -> list[Trials]:
    """Each variant's trials, with what became of it without power."""
    by_name = {one.variant: one for one in survived.variants} if survived else {}
    return [replace(each, survivor=by_name.get(each.variant.name)) for each in trials]


def _worths(results: Sequence[VariantResult], response: str) -> dict[str, float]:
    """How much better than the baseline each variant is shown to be, as a log ratio: one whose interval
    holds 1 is as good."""
    sign = 1.0 if metrics.find(response).higher_is_better else -1.0
    worths = {results[0].name: 0.0}
    for one in results:
        effect = one.effect
        if effect is not None and effect.low is not None and effect.high is not None:
            shown = effect.low > 1.0 or effect.high < 1.0
            worths[one.name] = sign * math.log(effect.ratio) if shown else 0.0
    return worths


def _in_blocks(records: Sequence[Record]) -> list[Record]:
    """Without those that stand beside the blocks: nothing is measured against them."""
    return [record for record in records if not record.of_no_block]


def _results_of(
    records: Sequence[Record], response: str, mixed: Mapping[int, str] = NO_MIXTURE
) -> list[TrialResult]:
    """Each trial's result. Series are looked at together, and not so many that they fill memory."""
    return [
        result
        for start in range(0, len(records), TRIALS_TOGETHER)
        for result in _looked_at(records[start : start + TRIALS_TOGETHER], response, mixed)
    ]


def _looked_at(records: Sequence[Record], response: str, mixed: Mapping[int, str]) -> Iterator[TrialResult]:
    tallies = [record.tally for record in records]
    counts = [([], []) if tally is None else whole_seconds(tally) for tally in tallies]
    measured = [record.outcome is Outcome.MEASURED for record in records]
    states = iter(steady_states(list(compress(counts, measured))))
    for record, tally, count, is_measured in zip(records, tallies, counts, measured, strict=True):
        steady = next(states) if is_measured else None
        series = None if tally is None else series_shown(tally, count)
        yield _trial(record, response, steady, series, mixed)


def _trial(
    record: Record, response: str, steady: Steady | None, series: Series | None, mixed: Mapping[int, str]
) -> TrialResult:
    warnings = record.doubts
    if record.trial in mixed:
        warnings[Doubt.MIXED_RESETS] = mixed[record.trial]
    if steady is not None and not steady.settled:
        warnings[Doubt.NOT_SETTLED] = (
            f"steady from second {steady.settled_at} on, {steady.share:.0%} of the measured part"
        )
    measured = record.outcome is Outcome.MEASURED
    value = metrics.find(response).read(record) if measured else None
    return TrialResult(
        record=record,
        response=value if usable(value) else None,
        steady=steady,
        series=series,
        warnings=warnings,
    )


def _by_variant(variants: Sequence[Variant], trials: Sequence[TrialResult]) -> list[Trials]:
    """One entry per variant, the baseline first; records of variants that the study has not are left out."""
    by_name: dict[str, dict[Block, TrialResult]] = {variant.name: {} for variant in variants}
    for trial in trials:
        if trial.record.variant in by_name:
            by_name[trial.record.variant][trial.record.host, trial.record.block] = trial
    return [
        Trials(
            variant=variant,
            role=Role.BASELINE if index == 0 else _role(variant),
            by_block=by_name[variant.name],
        )
        for index, variant in enumerate(variants)
    ]


def _role(variant: Variant) -> Role:
    if variant.twin:
        return Role.TWIN
    return Role.PLACEBO if variant.placebo else Role.CANDIDATE


def _method(study: Study, run: Run, trials: Sequence[Trials], unfinished: bool) -> Method:
    """The figures that the intervals rest on. A variant without a measured trial is no comparison; nor are
    the twin and placebos. A run that is read before its planned blocks are there may be stopped by what it
    shows, so it has the interval that holds at every look.
    """
    candidates = [each for each in trials if each.role is Role.CANDIDATE]
    looked_at = run.sequential or unfinished
    # A run that stops by what it saw must not let that decide how many comparisons it corrects for.
    compared = (
        candidates if looked_at else [each for each in candidates if each.with_outcome(Outcome.MEASURED)]
    )
    comparisons = claims(study, len(compared))
    each = confidence_each(study.goal.confidence, comparisons)
    planned = run.sequential and run.looks_planned
    at_looks = Interval.PLANNED if planned else Interval.ANYTIME
    interval = at_looks if looked_at else study.goal.interval or Interval.STUDENT
    method = Method(
        response=study.goal.response,
        higher_is_better=metrics.find(study.goal.response).higher_is_better,
        margin=study.goal.margin,
        confidence=study.goal.confidence,
        comparisons=comparisons,
        beside=beside(study),
        confidence_each=each,
        assurance=ASSURANCE,
        interval=interval,
        blocks_least=blocks_least(each, interval),
        unit=_unit(run),
        unfinished=unfinished,
        blocks_most=run.blocks if planned else 0,
    )
    return method.but(layout=layout_spread(trials, method))


def _unit(run: Run) -> Unit:
    if not isinstance(run, ImportedRun):
        return Unit.BLOCK
    return Unit.PAIR if run.brought.paired else Unit.REPETITION


def _aa_check(study: Study, trials: Sequence[Trials]) -> AaCheck | None:
    twins = [each for each in trials if each.role is Role.TWIN]
    if not twins:
        return None
    response = study.goal.response
    log_ratios = [ratio for twin in twins for ratio in pairs(twin, trials[0], response)]
    return aa_check(response, log_ratios, study.goal.confidence)


def explain_gap(study: Study, records: Sequence[Record], slow: Variant, fast: Variant) -> Gap:
    """The gap between two variants of a factorial study, shared out among the factors in which they
    differ.
    """
    results = _results_of(_in_blocks(_latest(records)), study.goal.response)
    trials = _by_variant(variants_of(study), results)
    return _gap_between(study, _compared(trials), slow.levels, fast.levels)


def _compared(trials: Sequence[Trials]) -> list[Trials]:
    """Every variant, the baseline with all its copies: in each block it is worth the mean of them."""
    return [with_copies(trials), *trials[1:]]


def _head(method: Method) -> Claim:
    """How main effects and shares are judged. A run that is looked at while it goes on has no other interval
    for them than for its verdicts."""
    interval = method.interval if method.sequential else Interval.STUDENT
    return Claim(method.confidence_each, interval, method.blocks_most)


def _gap(study: Study, trials: Sequence[Trials], head: Claim) -> Gap | None:
    """From the baseline to the variant of every factor's last level, where the study measured all between, or
    a fraction made for it."""
    if not explains_gap(study):
        return None
    fast = {factor.name: factor.levels[-1] for factor in study.factors}
    found = _gap_between(study, trials, study.baseline, fast, head)
    return found if found.total is not None or found.left_out else None


def _gap_between(
    study: Study,
    trials: Sequence[Trials],
    slow: Mapping[str, Level],
    fast: Mapping[str, Level],
    head: Claim | None = None,
) -> Gap:
    """The gap, without the factors whose fast level was blocked or failed wherever it was tried. A fraction
    needs them all."""
    left_out = tuple(
        LeftOut(factor=factor.name, level=fast[factor.name], cause=cause)
        for factor in study.factors
        if fast[factor.name] != slow[factor.name]
        and (cause := _why_never_measured(factor.name, fast[factor.name], trials))
    )
    cells = _cells(study, trials)
    if study.design is Design.FRACTIONAL:
        found = explain_fraction(study.goal.response, study.factors, cells, study.goal.confidence, head)
    else:
        end = {**fast, **{one.factor: slow[one.factor] for one in left_out}}
        ends = [tuple(levels[factor.name] for factor in study.factors) for levels in (slow, end)]
        found = explain(
            study.goal.response, study.factors, cells, ends[0], ends[1], study.goal.confidence, head
        )
    return found.but(left_out=left_out)


def _why_never_measured(factor: str, level: Level, trials: Sequence[Trials]) -> str:
    """Why no trial at a level has a speed, in the words of the first of them; empty where one has, or where
    none was tried.
    """
    tried = [
        trial.record
        for each in trials
        if each.variant.levels.get(factor) == level
        for trial in each.by_block.values()
    ]
    if any(record.outcome is Outcome.MEASURED for record in tried):
        return ""
    return next((record.cause or record.outcome.value for record in tried), "")


def _factorial(study: Study, trials: Sequence[Trials], head: Claim) -> Factorial | None:
    """Main effects and interactions of a factorial design of two factors or more."""
    if study.design is not Design.FACTORIAL or len(study.factors) < 2:
        return None
    return factorial(study.goal.response, study.factors, _cells(study, trials), study.goal.confidence, head)


def _cells(study: Study, trials: Sequence[Trials]) -> Cells:
    """Responses by setting and block, without variants that broke or at which the driver was the limit."""
    return {
        tuple(each.variant.levels[factor.name] for factor in study.factors): {
            block: value for block, value in each.values(study.goal.response).items() if usable(value)
        }
        for each in trials
        if each.role is not Role.TWIN and not each.with_outcome(Outcome.BROKEN) and not each.limited_by_driver
    }
