"""Guards: what a variant must keep for its speed to count.

A guard is judged by an interval over blocks, never by one reading: of two equal variants, either one is above
the other in every second block. The intervals of guards belong to the same family as those of the response,
so all that decides verdicts holds together with the study's confidence.

A transaction that fails has no latency and no part in what one costs. So a variant that fails more than the
baseline does not keep a guard on such a metric by its reading alone: it stays undecided.

Where a reading is 0 there is no ratio. There the guard is judged by what the variant has beyond the bound,
`variant - bound x baseline` in each block: its mean must not be above 0.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from dbdyno.analyse.columns import Block
from dbdyno.analyse.estimate import Estimator, Trials, around_means, ratio_between
from dbdyno.analyse.found import AnswerDifference
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import GuardResult, Kept, Method
from dbdyno.records import metrics
from dbdyno.records.load_words import (
    HARMLESS,
    LAST_DIGITS,
    ORDER,
    WARNINGS,
    ServerSchema,
    StatementAnswer,
    StatementAnswers,
    answer_difference,
)
from dbdyno.study import ANSWERS, DURABLE, Guard

Values = dict[Block, float]


def fails_more(metric: str, trials: Trials, baseline: Trials, method: Method) -> bool:
    """Whether a variant's figure is one of the transactions that succeeded, and more of its transactions
    failed than of the baseline's: by more than one in 10,000, and by more than chance makes of it."""
    if not metrics.find(metric).of_successes:
        return False
    ours, theirs = trials.values(metrics.FAILED_SHARE), baseline.values(metrics.FAILED_SHARE)
    excess = {block: ours[block] - theirs[block] for block in ours.keys() & theirs.keys()}
    # Without one above it no mean is, and nearly no run fails at all.
    if max(excess.values(), default=0.0) <= metrics.FAILED_SHARE_MAX:
        return False
    mean, low, _ = _mean(excess, Estimator.of(trials.rows.columns, method))
    return mean > metrics.FAILED_SHARE_MAX and (low is None or low > 0.0)


def guard_result(guard: Guard, trials: Trials, baseline: Trials, method: Method) -> GuardResult | None:
    """A guard on one variant; None for `invariants`, which each trial's checks decide."""
    found = _by_reading(guard, trials, baseline, method)
    if found is None or found.state is not Kept.KEPT or guard.metric in (DURABLE, ANSWERS):
        return found
    unproved = fails_more(guard.metric, trials, baseline, method)
    return found.but(state=Kept.UNDECIDED) if unproved else found


def _by_reading(guard: Guard, trials: Trials, baseline: Trials, method: Method) -> GuardResult | None:
    if guard.metric == DURABLE:
        return _durable(guard, trials)
    if guard.metric == ANSWERS:
        return _same_answers(guard, first_answers(trials), first_answers(baseline))
    if guard.bound is None:
        return None
    measured, beside = trials.values(guard.metric), baseline.values(guard.metric)
    blocks = sorted(measured.keys() & beside.keys() if guard.relative else measured)
    if not blocks:
        return GuardResult(
            text=guard.text,
            metric=guard.metric,
            state=Kept.UNREAD,
            bound=guard.bound,
            relative=guard.relative,
        )
    ours = {block: measured[block] for block in blocks}
    if not guard.relative:
        return _against_a_value(guard, ours, Estimator.of(trials.rows.columns, method))
    theirs = {block: beside[block] for block in blocks}
    if all(usable(value) for value in (*ours.values(), *theirs.values())):
        return _by_ratio(guard, trials, baseline, method)
    return _by_excess(guard, ours, theirs, Estimator.of(trials.rows.columns, method))


def _durable(guard: Guard, trials: Trials) -> GuardResult:
    """Every power cut counts: one that took something along is proof. `value` is how many did."""
    power = trials.survivor.power if trials.survivor else ()
    if not power:
        return GuardResult(text=guard.text, metric=guard.metric, state=Kept.UNREAD)
    harmful = sum(max(one.losing, one.damaged) for one in power)
    return GuardResult(
        text=guard.text,
        metric=guard.metric,
        state=Kept.BROKEN if harmful else Kept.KEPT,
        value=float(harmful),
        trials=sum(one.rounds for one in power),
    )


ROWS_TOLD = 3
NOT_STEADY = "the statement does not answer twice alike"
DIGITS_TOLD = "doubles differ beyond 12 digits, by the order in which they were added"
WARNINGS_TOLD = "the rows are the same"


def first_answers(trials: Trials) -> StatementAnswers | None:
    """The answers of a variant's first trial that asked; None where none did."""
    records = trials.rows.columns.records(trials.rows.places.tolist())
    return next((record.answers for record in records if record.answers is not None), None)


def first_schema(trials: Trials) -> ServerSchema | None:
    """The schema of a variant's first trial that asked; None where none did."""
    answers = first_answers(trials)
    return answers.schema_told if answers else None


def _same_answers(
    guard: Guard, ours: StatementAnswers | None, theirs: StatementAnswers | None
) -> GuardResult:
    """One other answer is proof. `value` is how many there are."""
    if ours is None or theirs is None or not (ours.statements and theirs.statements):
        return GuardResult(text=guard.text, metric=guard.metric, state=Kept.UNREAD)
    harmful = sum(not one.harmless for one in differing_answers(theirs, ours))
    return GuardResult(
        text=guard.text,
        metric=guard.metric,
        state=Kept.BROKEN if harmful else Kept.KEPT,
        value=float(harmful),
        trials=len(ours.statements),
    )


def differing_answers(before: StatementAnswers, after: StatementAnswers) -> tuple[AnswerDifference, ...]:
    """What differs between the answers of the baseline, `before`, and those of a variant."""
    known = {one.statement: one for one in before.statements}
    pairs = [(known[one.statement], one) for one in after.statements if one.statement in known]
    return tuple(
        AnswerDifference(
            statement=other.statement,
            what=what,
            harmless=_harmless(what, one, other),
            before=_only(one, other, what),
            after=_only(other, one, what),
        )
        for one, other in pairs
        if (what := answer_difference(one, other))
    )


def _harmless(what: str, one: StatementAnswer, other: StatementAnswer) -> str:
    if what in HARMLESS:
        return DIGITS_TOLD if what == LAST_DIGITS else WARNINGS_TOLD
    # A column that comes or goes is no chance.
    steady = not (one.differs or other.differs) or what in ("columns", "error", "types")
    return "" if steady else NOT_STEADY


def _only(one: StatementAnswer, other: StatementAnswer, what: str) -> tuple[str, ...]:
    """The first rows that the other has not; in place of rows the refusal."""
    if one.error:
        return (f"{one.error}: {one.said}",)
    if what == WARNINGS:
        return tuple((Counter(one.warnings) - Counter(other.warnings)).elements())[:ROWS_TOLD]
    if what == ORDER:
        pairs = zip(one.shown, other.shown, strict=False)
        return tuple(ours for ours, theirs in pairs if ours != theirs)[:ROWS_TOLD]
    own = tuple((Counter(one.shown) - Counter(other.shown)).elements())[:ROWS_TOLD]
    return own or (f"{one.rows:,} rows; the first {len(one.shown):,} are the other's as well",)


def _by_ratio(guard: Guard, trials: Trials, baseline: Trials, method: Method) -> GuardResult:
    ratio = ratio_between(guard.metric, trials, baseline, method.confidence_each, method)
    assert ratio is not None and guard.bound is not None  # there is a block, and all values are above 0
    return _result(guard, method, ratio.pairs, (ratio.ratio, ratio.low, ratio.high), guard.bound)


def _by_excess(guard: Guard, ours: Values, theirs: Values, estimator: Estimator) -> GuardResult:
    assert guard.bound is not None
    excess = {block: ours[block] - guard.bound * theirs[block] for block in ours}
    judged = _result(guard, estimator.method, len(excess), _mean(excess, estimator), 0.0)
    return judged.but(value=_average(ours), baseline=_average(theirs), low=None, high=None)


def _against_a_value(guard: Guard, ours: Values, estimator: Estimator) -> GuardResult:
    assert guard.bound is not None
    method, seen = estimator.method, _mean(ours, estimator)
    if all(usable(value) for value in ours.values()):
        logs = {block: math.log(value) for block, value in ours.items()}
        ratio = estimator.ratio(guard.metric, logs, method.confidence_each)
        assert ratio is not None  # there is a block
        seen = ratio.ratio, ratio.low, ratio.high
    return _result(guard, method, len(ours), seen, guard.bound)


Centred = tuple[float, float | None, float | None]


def _mean(values: Values, estimator: Estimator) -> Centred:
    """The mean, with the interval of a mean even where the response has the signed-rank one: ranks of values
    that are mostly 0 say nothing."""
    by_means = replace(estimator, method=around_means(estimator.method))
    return by_means.centred(values, estimator.method.confidence_each)[:3]


def _average(values: Values) -> float:
    return math.fsum(values.values()) / len(values)


def _result(guard: Guard, method: Method, count: int, seen: Centred, bound: float) -> GuardResult:
    middle, low, high = seen
    decided = low is not None and high is not None and count >= method.blocks_least
    return GuardResult(
        text=guard.text,
        metric=guard.metric,
        state=_side(guard.at_most, low, high, bound) if decided else Kept.UNDECIDED,
        value=middle,
        low=low,
        high=high,
        bound=guard.bound,
        relative=guard.relative,
        trials=count,
    )


def _side(at_most: bool, low: float | None, high: float | None, bound: float) -> Kept:
    assert low is not None and high is not None
    if not at_most:
        low, high, bound = -high, -low, -bound
    if high <= bound:
        return Kept.KEPT
    return Kept.BROKEN if low > bound else Kept.UNDECIDED
