"""What the findings of a run stand on: its trials by variant, what is told of each variant, and the figures
that all intervals rest on. `decided` says in the midst of a run whose verdict stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress

import numpy as np

from dbdyno.analyse.columns import (
    VARIANT,
    Columns,
    Fact,
    OfRecords,
    Places,
    Rows,
)
from dbdyno.analyse.effects import decided_result, variant_result
from dbdyno.analyse.estimate import FLEET_HOST, Estimator, Trials, around_means, mixed_resets, with_copies
from dbdyno.analyse.floor import ASSURANCE, blocks_most, components, layout_spread
from dbdyno.analyse.found import Components, Series, Steady
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import (
    Method,
    Reason,
    Role,
    TrialResult,
    Unit,
    VariantResult,
    Verdict,
)
from dbdyno.analyse.quantiles import beside, blocks_least, claims, confidence_each
from dbdyno.analyse.restarts import Survival, Survivor, survival
from dbdyno.analyse.steady import series_shown, steady_states
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome, Record, blocked_at_first, leaves_out, over_for_good
from dbdyno.records.run import Run
from dbdyno.study import Arrangement, Interval, Study
from dbdyno.study.designs import trial_count, variants_of
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP, STATEMENTS
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


@dataclass(frozen=True)
class AnalysisInput:
    """What an analysis is given of a run: its trials of blocks as columns, the whole records of those that
    stand `beside` the blocks, and those that `leave_out` a variant for good."""

    columns: Columns
    beside: Sequence[Record]
    leave_out: Sequence[Record]

    @classmethod
    def of(cls, records: Sequence[Record]) -> AnalysisInput:
        latest = _latest(records)
        return cls(
            columns=OfRecords(record for record in latest if not record.of_no_block),
            beside=[record for record in latest if record.of_no_block],
            leave_out=[record for record in records if leaves_out(record)],
        )


@dataclass(frozen=True)
class Basis:
    """What findings stand on: a study, its run, what was given of it, and what that tells of each variant.

    `trials` are those of each variant, in the study's order; `shown` are the places of all of them.
    `compared` are the same with all copies of the baseline as one, and `estimator` judges their contrasts.
    `survived` is what became of the variants without power. `planned` is how many trials in blocks the run is
    to have."""

    study: Study
    run: Run
    given: AnalysisInput
    trials: Sequence[Trials]
    survived: Survival | None
    method: Method
    planned: int

    @property
    def columns(self) -> Columns:
        return self.given.columns

    @cached_property
    def shown(self) -> Places:
        return np.concatenate([each.rows.places for each in self.trials])

    @cached_property
    def results(self) -> tuple[VariantResult, ...]:
        found = _results(self.study, self.run, self.trials, self.method)
        return judged_by_function(found, self.survived) if self.study.untimed else found

    @property
    def compared(self) -> list[Trials]:
        return [with_copies(self.trials), *self.trials[1:]]

    @property
    def estimator(self) -> Estimator:
        return Estimator.of(self.columns, around_means(self.method))

    @cached_property
    def of_hosts(self) -> bool:
        """Whether several hosts of a fleet took part."""
        rows = self.trials[0].rows
        return sum(map(bool, rows.columns.seen(FLEET_HOST, rows.places))) > 1

    @property
    def confidence(self) -> float:
        return self.study.goal.confidence

    @property
    def baseline(self) -> str:
        return self.trials[0].variant.name

    def whole(self, fact: Fact) -> list[Record]:
        """The records of the trials of which a fact holds."""
        return self.columns.whole(fact, self.shown)

    def has(self, fact: Fact) -> bool:
        """Whether a fact holds of any trial."""
        return len(self.columns.having(fact, self.shown, True)) > 0


def basis_of(study: Study, run: Run, given: AnalysisInput, whole: bool = True) -> Basis:
    """What the findings of a run stand on. Where it is not `whole`, no trial is judged by itself."""
    columns = given.columns
    if whole:
        mixed = mixed_resets(columns)
        columns.judge(partial(results_of, response=study.goal.response, mixed=mixed), mixed)
    survived = survival(study, given.beside)
    trials = _with_survivors(_by_variant(variants_of(study), columns), survived)
    planned = _in_all(study, run, trials, given.leave_out)
    method = _method(study, run, trials, unfinished=_shown(trials) < planned)
    return Basis(study, run, given, trials, survived, method, planned)


def spreads_within(study: Study, records: Sequence[Record]) -> Components | None:
    """What the records of a run tell of its spreads, without the rest of an analysis; None while there are
    too few blocks, or too few pieces in a trial."""
    return components(first_blocks(_by_variant(variants_of(study), AnalysisInput.of(records).columns)))


def first_blocks(trials: Sequence[Trials]) -> list[Trials]:
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
    counts = [([], []) if tally is None else metrics.whole_seconds(tally) for tally in tallies]
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
    if steady is not None and not steady.settled and not by_statement(record):
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


def by_statement(record: Record) -> bool:
    """Whether each statement was sent by itself: seconds of such a load have nothing in common."""
    return record.tally is not None and record.tally.workload == STATEMENTS


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


JUDGED = {
    Outcome.BROKEN: Verdict.BROKEN,
    Outcome.FAILED: Verdict.FAILED,
    Outcome.BLOCKED: Verdict.BLOCKED,
}


def judged_by_function(results: Sequence[VariantResult], found: Survival | None) -> tuple[VariantResult, ...]:
    """The variants of a study of platforms, each with the verdict of what it did."""
    by_name = {one.variant: one for one in found.variants} if found else {}
    return tuple(_judged(one, by_name.get(one.name)) for one in results)


def _judged(result: VariantResult, found: Survivor | None) -> VariantResult:
    if found is None or found.outcome is None:
        return result
    verdict = JUDGED.get(found.outcome)
    if verdict is not None:
        return result.but(verdict=verdict, reason=None, cause=found.cause or "; ".join(found.faults))
    if result.role is Role.BASELINE:
        return result
    return result.but(verdict=Verdict.INCONCLUSIVE, reason=Reason.EMULATED)
