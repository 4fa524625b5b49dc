"""Guards: readings of 0, readings that are missing, and a family with the response."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.model import GuardResult, Kept, Reason, VariantResult, Verdict
from dbdyno.findings import analyse
from dbdyno.records.metrics import SHARES_ABOVE, latency_ms
from dbdyno.records.record import Record
from dbdyno.report.words.naming import metric_title
from dbdyno.report.words.remarks import guard_text
from dbdyno.study import Goal, Guard, Study
from tests.analyse.factory import Change, a_run, a_study, counted, records_of
from tests.fakes import no_latency

FAST = "config.page_cache=64k"


def study_of(text: str, metric: str, bound: float, relative: bool = True, at_most: bool = True) -> Study:
    guard = Guard(text=text, metric=metric, bound=bound, relative=relative, at_most=at_most)
    return a_study(blocks=8, goal=Goal(guards=(guard,)))


def with_errors(count: int) -> Change:
    def change(record: Record) -> Record:
        return counted(record, errors={"refused": count})

    return change


def without_p99(record: Record) -> Record:
    return counted(record, latency_us=no_latency())


def with_few_latencies(record: Record) -> Record:
    assert record.tally is not None
    return counted(record, latency_us=record.tally.latency_us.but(count=999))


def judged(study: Study, records: list[Record]) -> tuple[VariantResult, GuardResult]:
    found = next(one for one in analyse(study, a_run(study), records).variants if one.name == FAST)
    (guard,) = found.guards
    return found, guard


def drawn_ms(random: np.random.Generator, count: int, point: str, runs: int) -> np.ndarray:
    """A percentile of so many exponential latencies as a trial tells it, by run and block; NaN where it tells
    none."""
    share = SHARES_ABOVE[point]
    rank = math.ceil(round((1.0 - share) * count, 6)) - 1
    drawn = np.partition(random.exponential(1e4, (runs, 12, count)), rank, axis=2)[:, :, rank]
    told = [latency_ms(no_latency().but(count=count, **{point: one}), point) for one in drawn.flat]
    return np.array([math.nan if one is None else one for one in told]).reshape(runs, 12)


def told_lower(point: str, ours: int, theirs: int, runs: int) -> float:
    """In what share of runs a percentile of equal servers is told to be lower with fewer transactions."""
    random = np.random.default_rng(20)
    logs = np.log(drawn_ms(random, ours, point, runs) / drawn_ms(random, theirs, point, runs))
    found = [ratio_of(f"{point}_ms", one, 0.95) for one in logs if not np.isnan(one).any()]
    return sum(one is not None and (one.high or 1.0) < 1.0 for one in found) / runs


@pytest.mark.parametrize(("point", "theirs"), [("p99_9", 600), ("p99", 80), ("p99", 160), ("p50", 18)])
def test_a_percentile_with_few_transactions_above_it_is_none(point: str, theirs: int) -> None:
    """By one with fewer, a server that does half as many transactions answers sooner in 15 to 31 % of runs
    of 12 blocks."""
    assert told_lower(point, theirs // 2, theirs, 100) == 0.0


@pytest.mark.parametrize(("point", "theirs"), [("p99", 2000), ("p50", 40)])
def test_percentiles_of_half_as_many_transactions_are_seldom_told_lower(point: str, theirs: int) -> None:
    """As seldom as chance has it: 2.5 % of runs, and a little more by what is left of the bias."""
    assert told_lower(point, theirs // 2, theirs, 400) <= 0.06


def test_a_guard_on_a_percentile_that_no_trial_has_says_how_many_transactions_it_needs() -> None:
    study = study_of("p99_ms <= 1.0x", "p99_ms", 1.0)
    found, guard = judged(study, records_of(study, {FAST: 1.5}, {FAST: with_few_latencies}))
    assert guard.state is Kept.UNREAD and found.reason is Reason.GUARD
    assert "fewer than 10 transactions of a trial lie above it" in guard_text(guard)


ERRORS = study_of("errors_per_s <= 1.0x", "errors_per_s", 1.0)


def test_errors_beside_a_baseline_without_any_break_the_guard() -> None:
    records = records_of(ERRORS, {FAST: 1.5}, {FAST: with_errors(20_000)})
    found, guard = judged(ERRORS, records)
    assert (found.verdict, guard.state) == (Verdict.BROKEN, Kept.BROKEN)
    assert guard.value == pytest.approx(1000.0, rel=0.01) and guard.baseline == 0.0


def test_no_errors_on_both_sides_keep_the_guard() -> None:
    found, guard = judged(ERRORS, records_of(ERRORS, {FAST: 1.5}))
    assert (found.verdict, guard.state) == (Verdict.FASTER, Kept.KEPT)


def test_fewer_errors_in_some_blocks_keep_the_guard() -> None:
    changes = {"baseline": with_errors(5000), FAST: lambda r: with_errors(10 if r.block % 2 else 0)(r)}
    found, guard = judged(ERRORS, records_of(ERRORS, {FAST: 1.5}, changes))
    assert (found.verdict, guard.state) == (Verdict.FASTER, Kept.KEPT)


def test_a_guard_without_a_reading_is_not_kept() -> None:
    study = study_of("p99_ms <= 1.2x", "p99_ms", 1.2)
    found, guard = judged(study, records_of(study, {FAST: 1.5}, {FAST: without_p99}))
    assert guard.state is Kept.UNREAD
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.GUARD)


def failing(count: int) -> Change:
    def change(record: Record) -> Record:
        return counted(record, failed_latency_us=no_latency().but(count=count, sum=5e3 * count, mean=5e3))

    return change


@pytest.mark.parametrize(
    ("metric", "failed", "beside", "wins"),
    [
        ("throughput", 8_000, 0, False),
        ("throughput", 8_000, 8_000, True),
        ("throughput", 0, 8_000, True),
        ("throughput", 2, 0, True),
        ("p99_ms", 8_000, 0, False),
        ("p99_ms", 0, 8_000, True),
    ],
)
def test_what_fails_more_than_the_baseline_cannot_win(
    metric: str, failed: int, beside: int, wins: bool
) -> None:
    study = a_study(blocks=8, goal=Goal(response=metric))
    records = records_of(study, {FAST: 1.5}, {FAST: failing(failed), "baseline": failing(beside)})
    if metric == "p99_ms":
        records = [sooner(record) if record.variant == FAST else record for record in records]
    found = analyse(study, a_run(study), records)
    fast = next(one for one in found.variants if one.name == FAST)
    told = (Verdict.FASTER, None) if wins else (Verdict.INCONCLUSIVE, Reason.FAILS_MORE)
    assert (fast.verdict, fast.reason) == told
    assert (found.answer.best == FAST) is wins
    of_some = metric == "p99_ms" and max(failed, beside) > 2
    assert metric_title(found).endswith("of those that succeeded") is of_some


def sooner(record: Record) -> Record:
    """A tenth of the latencies."""
    assert record.tally is not None
    latency = record.tally.latency_us
    assert latency.p99 is not None
    return counted(record, latency_us=latency.but(p99=latency.p99 / 10.0))


def test_a_guard_on_a_percentile_is_not_kept_by_failing() -> None:
    study = study_of("p99_ms <= 1.2x", "p99_ms", 1.2)
    records = [
        sooner(record) if record.variant == FAST else record
        for record in records_of(study, {FAST: 0.5}, {FAST: failing(8_000)})
    ]
    assert judged(study, records)[1].state is Kept.UNDECIDED
    failing_both = {FAST: failing(4_000), "baseline": failing(8_000)}
    records = [
        sooner(record) if record.variant == FAST else record
        for record in records_of(study, {FAST: 0.5}, failing_both)
    ]
    assert judged(study, records)[1].state is Kept.KEPT


def test_what_is_faster_with_an_undecided_guard_is_not_faster_yet() -> None:
    study = study_of("driver_cpu_us_per_op <= 1.0x", "driver_cpu_us_per_op", 1.0)
    records = records_of(study, {FAST: 1.5})
    found, guard = judged(study, records)
    assert guard.state is Kept.UNDECIDED
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.GUARD)
    assert analyse(study, a_run(study), records).answer.best is None


def test_an_undecided_guard_does_not_hide_that_a_variant_is_slower() -> None:
    study = study_of("driver_cpu_us_per_op <= 1.0x", "driver_cpu_us_per_op", 1.0)
    assert judged(study, records_of(study, {FAST: 0.5}))[0].verdict is Verdict.SLOWER


def test_guards_and_responses_are_one_family() -> None:
    method = analyse(ERRORS, a_run(ERRORS), records_of(ERRORS)).method
    assert method.comparisons == 2
    assert method.confidence_each == pytest.approx(0.95**0.5)
    assert analyse(a_study(), a_run(a_study()), records_of(a_study())).method.comparisons == 1
