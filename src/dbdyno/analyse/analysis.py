"""The whole of an analysis: what each module of this room finds in a run's records, put together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress

import numpy as np

from dbdyno.analyse.assurance import ASSURANCE
from dbdyno.analyse.blocks import Trials, pairs, with_copies
from dbdyno.analyse.chain import explain_chain
from dbdyno.analyse.columns import (
    HAS_PLANS,
    HAS_REPLAY,
    HAS_REQUESTS,
    HAS_STATEMENTS,
    VARIANT,
    Columns,
    OfRecords,
    Places,
    Rows,
)
from dbdyno.analyse.components import blocks_most, components
from dbdyno.analyse.counted import counted_work
from dbdyno.analyse.effects import decided_result, variant_result
from dbdyno.analyse.engines import EnginesCompared, engines_compared
from dbdyno.analyse.estimate import Estimator, around_means
from dbdyno.analyse.factorial import Cells, factorial
from dbdyno.analyse.family import beside, claims, explains_gap
from dbdyno.analyse.floor import floor
from dbdyno.analyse.fractional import explain_fraction
from dbdyno.analyse.frontier import frontier
from dbdyno.analyse.gap import explain
from dbdyno.analyse.hosts import hosts_compared
from dbdyno.analyse.intervals import usable
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
from dbdyno.analyse.platforms import judged_by_function
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
from dbdyno.records.left_out import blocked_at_first, leaves_out, over_for_good
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import Arrangement, Design, Interval, Study
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
    return analyse_given(study, run, Given.of(records))


@dataclass(frozen=True)
class Given:
    """What an analysis is given of a run: its trials of blocks as columns, the whole records of those that
    stand `beside` the blocks, and those that `leave_out` a variant for good."""

    columns: Columns
    beside: Sequence[Record]
    leave_out: Sequence[Record]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Given:
        latest = _latest(records)
        return cls(
            columns=OfRecords(record for record in latest if not record.of_no_block),
            beside=[record for record in latest if record.of_no_block],
            leave_out=[record for record in records if leaves_out(record)],
        )


def analyse_given(study: Study, run: Run, given: Given) -> Analysis:
    """The same, of what was read of the records already."""
    variants, columns = variants_of(study), given.columns
    mixed = mixed_resets(columns)
    columns.judge(partial(results_of, response=study.goal.response, mixed=mixed), mixed)
    survived = survival(study, given.beside)
    trials = _with_survivors(_by_variant(variants, columns), survived)
    planned = _in_all(study, run, trials, given.leave_out)
    method = _method(study, run, trials, unfinished=_shown(trials) < planned)
    results = _results(study, run, trials, method)
    if study.of_platforms:
        results = judged_by_function(results, survived)
    compared, estimator = _compared(trials), Estimator.of(columns, around_means(method))
    # Per variant, in the study's order.
    shown = np.concatenate([each.rows.places for each in trials])
    confidence, baseline = study.goal.confidence, variants[0].name
    brought, hosts = run.of_logs is not None, hosts_compared(trials, results, method)
    return Analysis(
        study=study,
        run=run,
        method=method,
        answer=answer(results, trials, method),
        variants=results,
        trials=columns.results_of(np.sort(shown)),
        aa=_aa_check(study, trials),
        # Each host of a fleet has a floor of its own.
        floor=None if brought or hosts else floor(trials, method),
        components=None if brought or hosts else components(_first_blocks(trials)),
        # It is over blocks, and says nothing of hosts.
        second=None if hosts else second_response(trials, with_copies(trials), method),
        museum=museum(results, trials),
        factorial=factorial_with_losses(_factorial(study, compared, estimator), study, run.given_up),
        gap=gap_with_losses(_gap(study, compared, estimator), study, run.given_up),
        frontier=frontier(study, compared, estimator),
        splits=time_splits(columns, shown, confidence),
        requests=request_times(columns.whole(HAS_REQUESTS, shown), baseline, confidence),
        statements=statement_times(columns.whole(HAS_STATEMENTS, shown), confidence),
        plans=compared_plans(columns.whole(HAS_PLANS, shown), baseline),
        engines=_engines(study, columns, shown),
        hosts=hosts,
        replays=replays(columns.whole(HAS_REPLAY, shown)),
        overhead=None if brought else overhead(columns, shown),
        conditions=conditions(columns, shown),
        counted=counted_work([one for one in given.beside if not one.of_restarts], baseline),
        survival=with_frontier(survived, _worths(results, study.goal.response)) if survived else None,
        trials_planned=planned,
    )


def spreads_within(study: Study, records: Sequence[Record]) -> Components | None:
    """What the records of a run tell of its spreads, without the rest of an analysis; None while there are
    too few blocks, or too few pieces in a trial."""
    return components(_first_blocks(_by_variant(variants_of(study), Given.of(records).columns)))


def _engines(study: Study, columns: Columns, shown: Places) -> EnginesCompared | None:
    if len(study.engines) < 2:
        return None
    return engines_compared(study, list(columns.records(shown.tolist())))


def _first_blocks(trials: Sequence[Trials]) -> list[Trials]:
    """With the blocks alone that spreads are told from: the first ones that a variant shares with the
    baseline. Their whole records are read."""
    most = blocks_most(len(trials))
    measured = [each.rows.only(each.rows.ended(Outcome.MEASURED)) for each in trials]
    wanted = measured[0].block_keys[:1]
    for rows in measured[1:]:
        shared = np.intersect1d(measured[0].block_keys, rows.block_keys, assume_unique=True)
        wanted = np.union1d(wanted, shared[:most])
    return [
        replace(each, by_block=rows.only(rows.places[np.isin(rows.block_keys, wanted)]), readings={})
        for each, rows in zip(trials, measured, strict=True)
    ]


@dataclass
class Looks:
    """What a run keeps from one look at its verdicts to the next: the trials of its blocks, with all that was
    read of them. It changes no answer, and without it each block would read all blocks before it again."""

    records: list[Record] = field(default_factory=list)
    columns: OfRecords = field(default_factory=OfRecords)
    last: int = -1
    restarts: list[Record] = field(default_factory=list)

    def take(self, variants: Sequence[Variant], records: Sequence[Record]) -> list[Trials]:
        """The trials of these records, of which those since the last look are read. All are read where the
        records of that look do not come first, or a later one takes the place of one of them."""
        come_first = records[: len(self.records)] == self.records
        added = _latest(records[len(self.records) :] if come_first else records)
        if come_first and added and (added[0].trial <= self.last or added[-1].of_restarts):
            come_first, added = False, _latest(records)
        if not come_first:
            self.columns, self.last, self.restarts = OfRecords(), -1, []
        self.restarts += [record for record in added if record.of_restarts]
        own = [record for record in added if not record.of_no_block]
        self.columns.extend(own)
        self.last = own[-1].trial if own else self.last
        self.records = list(records)
        return _by_variant(variants, self.columns)


def decided(
    study: Study, run: Run, records: Sequence[Record], looks: Looks | None = None
) -> dict[str, VariantResult]:
    """The candidates whose verdict stands, whatever may follow, by name: those that `analyse_blocks` calls
    decided. A run asks after each block, so nothing is made that only a report shows, and `looks` keeps what
    the earlier ones read."""
    looks = looks or Looks()
    trials = _with_survivors(looks.take(variants_of(study), records), survival(study, looks.restarts))
    unfinished = _shown(trials) < _in_all(study, run, trials, records)
    method, baseline = _method(study, run, trials, unfinished), with_copies(trials)
    given_up = run.given_up or {}
    return {
        each.variant.name: result.but(gives_up=given_up.get(each.variant.name, ()))
        for each in trials
        if each.role is Role.CANDIDATE
        and (result := decided_result(each, baseline, study.goal, method)) is not None
    }


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
    counting = run.counting_builds
    by_counters = counting is not None and counting.by == "counters"
    beside = (INSTRUCTIONS_PER_OP,) if by_counters else ()
    return (*COSTS, *beside) if method.unit is Unit.BLOCK else LATENCIES


def _shown(trials: Sequence[Trials]) -> int:
    return sum(len(each.by_block) for each in trials)


def _in_all(study: Study, run: Run, trials: Sequence[Trials], records: Sequence[Record]) -> int:
    """How many trials in blocks the run is to have; one without a plan has all that it has."""
    return _shown(trials) if run.sequential or run.of_logs else _planned(study, run, records)


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


def results_of(
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


def _by_variant(variants: Sequence[Variant], columns: Columns) -> list[Trials]:
    """One entry per variant, the baseline first; records of variants that the study has not are left out."""
    codes, table = columns.fact(VARIANT)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(table) + 1))
    places = {name: order[ends[code] : ends[code + 1]] for code, name in enumerate(table)}
    return [
        Trials(
            variant=variant,
            role=Role.BASELINE if index == 0 else _role(variant),
            by_block=Rows(columns, places.get(variant.name, order[:0])),
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
    compared = candidates if looked_at else [each for each in candidates if each.count(Outcome.MEASURED)]
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
        by_place=run.mirrored and run.arrangement is Arrangement.ONE_AFTER_THE_OTHER,
    )
    return method.but(layout=layout_spread(trials, method))


def _unit(run: Run) -> Unit:
    if run.of_logs is None:
        return Unit.BLOCK
    return Unit.PAIR if run.of_logs.paired else Unit.REPETITION


def _aa_check(study: Study, trials: Sequence[Trials]) -> AaCheck | None:
    twins = [each for each in trials if each.role is Role.TWIN]
    if not twins:
        return None
    response = study.goal.response
    log_ratios = [ratio for twin in twins for ratio in pairs(twin, trials[0], response)]
    return aa_check(response, log_ratios, study.goal.confidence)


def explain_gap(study: Study, run: Run, records: Sequence[Record], slow: Variant, fast: Variant) -> Gap:
    """The gap between two variants of a factorial study, shared out among the factors in which they
    differ.
    """
    trials, estimator = _to_explain(study, run, records)
    return _gap_between(study, trials, slow.levels, fast.levels, estimator)


def explain_steps(study: Study, run: Run, records: Sequence[Record]) -> Gap:
    """The gap between the first and the last variant of a list, as a product of its steps: `steps_of` says
    whether it has some."""
    trials, estimator = _to_explain(study, run, records)
    return explain_chain(study, records, variants_of(study), _cells(study, trials), estimator)


def _to_explain(study: Study, run: Run, records: Sequence[Record]) -> tuple[list[Trials], Estimator]:
    """The trials of a run, and how its contrasts are judged."""
    given = Given.of(records)
    trials = _by_variant(variants_of(study), given.columns)
    unfinished = _shown(trials) < _in_all(study, run, trials, given.leave_out)
    method = _method(study, run, trials, unfinished)
    return _compared(trials), Estimator.of(given.columns, around_means(method))


def _compared(trials: Sequence[Trials]) -> list[Trials]:
    """Every variant, the baseline with all its copies: in each block it is worth the mean of them."""
    return [with_copies(trials), *trials[1:]]


def _gap(study: Study, trials: Sequence[Trials], estimator: Estimator) -> Gap | None:
    """From the baseline to the variant of every factor's last level, where the study measured all between, or
    a fraction made for it."""
    if not explains_gap(study):
        return None
    fast = {factor.name: factor.levels[-1] for factor in study.factors}
    found = _gap_between(study, trials, study.baseline, fast, estimator, in_head=True)
    return found if found.total is not None or found.left_out else None


def _gap_between(
    study: Study,
    trials: Sequence[Trials],
    slow: Mapping[str, Level],
    fast: Mapping[str, Level],
    estimator: Estimator,
    in_head: bool = False,
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
        found = explain_fraction(study.factors, cells, estimator, in_head)
    else:
        end = {**fast, **{one.factor: slow[one.factor] for one in left_out}}
        ends = [tuple(levels[factor.name] for factor in study.factors) for levels in (slow, end)]
        found = explain(study.factors, cells, ends[0], ends[1], estimator, in_head)
    return found.but(left_out=left_out)


def _why_never_measured(factor: str, level: Level, trials: Sequence[Trials]) -> str:
    """Why no trial at a level has a speed, in the words of the first of them; empty where one has, or where
    none was tried.
    """
    tried = [each for each in trials if each.variant.levels.get(factor) == level]
    if any(len(each.rows.ended(Outcome.MEASURED)) for each in tried):
        return ""
    records = (
        record for each in tried for record in each.rows.columns.records(each.rows.places[:1].tolist())
    )
    return next((record.cause or record.outcome.value for record in records), "")


def _factorial(study: Study, trials: Sequence[Trials], estimator: Estimator) -> Factorial | None:
    """Main effects and interactions of a factorial design of two factors or more."""
    if study.design is not Design.FACTORIAL or len(study.factors) < 2:
        return None
    return factorial(study.factors, _cells(study, trials), estimator)


def _cells(study: Study, trials: Sequence[Trials]) -> Cells:
    """Responses by setting and block, without variants that broke or at which the driver was the limit."""
    return {
        tuple(each.variant.levels[factor.name] for factor in study.factors): {
            block: value for block, value in each.values(study.goal.response).items() if usable(value)
        }
        for each in trials
        if each.role is not Role.TWIN and not each.count(Outcome.BROKEN) and not each.limited_by_driver
    }
