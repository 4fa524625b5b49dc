"""From records to verdicts: what was built into the records is what the analysis finds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dbdyno.analyse.model import Analysis, Kept, Reason, Role, VariantResult, Verdict
from dbdyno.findings import analyse
from dbdyno.records.metrics import whole_seconds
from dbdyno.records.record import Doubt, Evidence, Outcome, Record
from dbdyno.study import Design, Goal, Guard, Study
from tests.analyse.factory import (
    DURATION_S,
    WARMUP_S,
    a_run,
    a_second,
    a_study,
    blocked,
    broken,
    changed,
    counted,
    ended,
    every_verdict,
    records_of,
    warned,
)
from tests.fakes import make_tally

FAST = "config.page_cache=64k"


def analysed(study: Study, records: list[Record]) -> Analysis:
    return analyse(study, a_run(study), records)


def the(analysis: Analysis, name: str = FAST) -> VariantResult:
    return next(variant for variant in analysis.variants if variant.name == name)


def with_tally(**changes: Any) -> Callable[[Record], Record]:
    return lambda record: counted(record, **changes)


def operations_of(record: Record) -> int:
    assert record.tally is not None
    return record.tally.operations


def only_in(blocks: set[int], change: Callable[[Record], Record]) -> Callable[[Record], Record]:
    return lambda record: change(record) if record.block in blocks else record


def test_a_real_effect_is_found_with_its_size() -> None:
    study = a_study()
    found = the(analysed(study, records_of(study, {FAST: 1.3})))
    assert found.verdict is Verdict.FASTER
    assert found.effect is not None and found.effect.low is not None and found.effect.high is not None
    assert found.effect.low <= 1.3 <= found.effect.high
    assert found.effect.ratio == pytest.approx(1.3, rel=0.02)
    assert found.changed == {"config.page_cache": "64k"}


def test_every_verdict_comes_out_as_it_went_in() -> None:
    study, records = every_verdict()
    analysis = analysed(study, records)
    verdicts = {variant.name: variant.verdict for variant in analysis.variants}
    assert verdicts[FAST] is Verdict.FASTER
    assert verdicts["config.page_size=32768"] is Verdict.SLOWER
    assert verdicts["config.forced_writes=off"] is Verdict.BROKEN
    assert verdicts["memory.allocator=jemalloc"] is Verdict.FAILED
    assert verdicts["memory.huge_pages=always"] is Verdict.BLOCKED
    assert verdicts["config.gc_policy=background"] is Verdict.INCONCLUSIVE
    assert verdicts["baseline"] is None and verdicts["baseline-twin"] is None
    assert analysis.answer.best == FAST


def test_the_order_of_records_changes_nothing() -> None:
    study, records = every_verdict()
    shuffled = list(records)
    Random(4).shuffle(shuffled)
    assert analysed(study, shuffled) == analysed(study, records)


def test_an_analysis_is_the_same_from_records_read_back() -> None:
    study, records = every_verdict()
    again = [Record.model_validate_json(record.model_dump_json()) for record in records]
    assert analysed(study, again) == analysed(study, records)


def test_the_unit_of_the_response_does_not_matter() -> None:
    study = a_study()
    records = records_of(study, {FAST: 1.1})
    doubled = [counted(record, operations=operations_of(record) * 2) for record in records]
    one, other = the(analysed(study, records)).effect, the(analysed(study, doubled)).effect
    assert one is not None and other is not None and one.low is not None and other.low is not None
    assert other.ratio == pytest.approx(one.ratio)
    assert other.low == pytest.approx(one.low)


def test_a_block_that_disturbs_all_variants_alike_cancels() -> None:
    study = a_study(blocks=6)
    quiet = the(analysed(study, records_of(study, {FAST: 1.1}, block_sd=0.0))).effect
    rough = the(analysed(study, records_of(study, {FAST: 1.1}, block_sd=0.5))).effect
    assert quiet is not None and rough is not None
    assert quiet.log_sd == pytest.approx(rough.log_sd, rel=0.05)


def test_fewer_comparisons_leave_narrower_intervals() -> None:
    few = a_study()
    many = a_study({"config.page_cache": ["2k", "64k"], "config.other": list(range(12))})
    assert analysed(few, records_of(few)).method.comparisons == 1
    method = analysed(many, records_of(many)).method
    assert method.comparisons == 12
    assert method.confidence_each == pytest.approx(0.95 ** (1 / 12))


def test_the_twin_is_no_comparison_and_its_interval_is_not_adjusted() -> None:
    study = a_study({"config.a": [1, 2, 3]}, aa=True)
    analysis = analysed(study, records_of(study))
    assert analysis.method.comparisons == 2
    twin = next(variant for variant in analysis.variants if variant.role is Role.TWIN)
    assert twin.effect is not None and twin.effect.confidence == 0.95
    assert twin.verdict is None
    assert analysis.aa is not None and analysis.aa.pairs == 6


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.BLOCKED])
def test_a_failed_trial_drops_its_pair_only_and_it_is_said(outcome: Outcome) -> None:
    study = a_study(blocks=7)
    records = records_of(study, {FAST: 1.3}, {FAST: only_in({2}, ended(outcome, "no luck"))})
    found = the(analysed(study, records))
    assert found.verdict is Verdict.FASTER
    assert found.effect is not None and found.effect.pairs == 6
    assert [(drop.block, drop.variant, drop.outcome) for drop in found.dropped] == [(2, FAST, outcome)]


def test_a_failed_baseline_trial_drops_the_pair_of_every_variant() -> None:
    study = a_study()
    records = records_of(study, {FAST: 1.3}, {"baseline": only_in({0, 1}, ended(Outcome.FAILED, "no luck"))})
    found = the(analysed(study, records))
    assert found.effect is not None and found.effect.pairs == 4
    assert {drop.variant for drop in found.dropped} == {"baseline"}


def test_one_broken_trial_breaks_a_variant_whatever_its_speed() -> None:
    study = a_study()
    analysis = analysed(
        study, records_of(study, {FAST: 3.0}, {FAST: only_in({4}, broken("sums differ by 1"))})
    )
    found = the(analysis)
    assert found.verdict is Verdict.BROKEN
    assert "sums differ by 1" in found.cause
    assert analysis.answer.best is None
    (exhibit,) = analysis.museum
    assert exhibit.trials == tuple(
        trial.record.trial for trial in analysis.trials if trial.record.outcome is Outcome.BROKEN
    )
    assert [check.holds for check in exhibit.checks] == [False]


def test_a_blocked_variant_shows_who_refused() -> None:
    study = a_study()
    analysis = analysed(study, records_of(study, changes={FAST: blocked("config.page_cache", "64k", "32k")}))
    (exhibit,) = analysis.museum
    assert exhibit.verdict is Verdict.BLOCKED
    assert exhibit.remedy == "ask for less, or raise the limit"
    (evidence,) = exhibit.evidence
    assert evidence.effective is not None and evidence.effective.value == "32k"


def test_a_variant_at_which_the_driver_was_the_limit_has_no_speed() -> None:
    def limited(record: Record) -> Record:
        return warned(Doubt.DRIVER_SATURATED, "thread 0")(ended(Outcome.FAILED, "thread 0")(record))

    study = a_study()
    found = the(analysed(study, records_of(study, {FAST: 3.0}, {FAST: only_in({4}, limited)})))
    assert (found.verdict, found.cause) == (Verdict.FAILED, "thread 0")


def test_a_broken_baseline_is_said_first() -> None:
    study = a_study()
    analysis = analysed(study, records_of(study, changes={"baseline": broken("sums differ")}))
    assert "sums differ" in analysis.answer.baseline_broken
    found = the(analysis)
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.NO_BASELINE)


@pytest.mark.parametrize(
    "change",
    [
        with_tally(operations=0),
        with_tally(duration_s=0.0),
        with_tally(operations=-5),
    ],
)
def test_a_response_that_is_no_number_above_zero_gives_no_pair(change: Callable[[Record], Record]) -> None:
    study = a_study()
    found = the(analysed(study, records_of(study, changes={FAST: change})))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.NO_RESPONSE)
    assert found.effect is None


def test_one_block_is_inconclusive_with_its_ratio_shown() -> None:
    study = a_study(blocks=1)
    found = the(analysed(study, records_of(study, {FAST: 2.0})))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)
    assert found.effect is not None and found.effect.ratio == pytest.approx(2.0, rel=0.1)
    assert found.effect.low is None and found.blocks_more is None


def test_no_records_at_all() -> None:
    study = a_study(aa=True)
    analysis = analysed(study, [])
    assert the(analysis).reason is Reason.NOT_RUN
    assert analysis.aa is not None and analysis.aa.comparisons == 0
    assert analysis.trials == () and analysis.trials_planned == 18


def test_half_a_run_is_analysed_as_far_as_it_went() -> None:
    study = a_study()
    records = records_of(study, {FAST: 1.3})[:7]
    found = the(analysed(study, records))
    assert found.effect is not None and found.effect.pairs == 3


def test_a_trial_recorded_twice_counts_once_with_its_last_record() -> None:
    study = a_study()
    records = records_of(study, {FAST: 1.3})
    stale = changed(
        records[0], finished_unix_s=records[0].finished_unix_s - 1, outcome=Outcome.FAILED, tally=None
    )
    assert analysed(study, [*records, stale]) == analysed(study, records)


def test_trials_of_different_hosts_are_never_paired() -> None:
    study = a_study()
    records = [
        record.but(host="other") if record.variant == FAST and record.block < 3 else record
        for record in records_of(study, {FAST: 1.3})
    ]
    found = the(analysed(study, records))
    assert found.effect is not None and found.effect.pairs == 3


def test_for_a_latency_lower_is_faster() -> None:
    study = a_study(goal=Goal(response="p99_ms"))
    found = the(analysed(study, records_of(study, {FAST: 2.0})))
    assert found.verdict is Verdict.FASTER
    assert found.effect is not None and found.effect.ratio == pytest.approx(0.5, rel=0.1)


def guarded(text: str, metric: str, bound: float, relative: bool, at_most: bool = True) -> Study:
    guard = Guard(text=text, metric=metric, bound=bound, relative=relative, at_most=at_most)
    return a_study(goal=Goal(guards=(guard,)))


@pytest.mark.parametrize(
    ("bound", "state", "verdict"),
    [(1.2, Kept.KEPT, Verdict.FASTER), (0.5, Kept.BROKEN, Verdict.BROKEN)],
)
def test_a_guard_against_the_baseline(bound: float, state: Kept, verdict: Verdict) -> None:
    study = guarded(f"p99_ms <= {bound}x", "p99_ms", bound, relative=True)
    found = the(analysed(study, records_of(study, {FAST: 1.3})))
    (guard,) = found.guards
    assert guard.state is state and found.verdict is verdict
    assert guard.value == pytest.approx(1 / 1.3, rel=0.05)


def test_a_guard_with_an_absolute_bound() -> None:
    for bound, at_most, state in [
        (1e6, True, Kept.KEPT),
        (1e-6, True, Kept.BROKEN),
        (1e6, False, Kept.BROKEN),
    ]:
        study = guarded("p99_ms", "p99_ms", bound, relative=False, at_most=at_most)
        (guard,) = the(analysed(study, records_of(study))).guards
        assert guard.state is state


def test_a_guard_whose_interval_holds_its_bound_is_undecided_and_breaks_nothing() -> None:
    study = guarded("p99_ms <= 1x", "p99_ms", 1.0, relative=True)
    noisy = records_of(study, trial_sd=0.05)
    found = the(analysed(study, noisy))
    (guard,) = found.guards
    assert guard.state is Kept.UNDECIDED
    assert found.verdict is not Verdict.BROKEN


def test_costs_are_shown_beside_the_response_unadjusted() -> None:
    study = a_study({"config.page_cache": ["2k", "64k", "128k"]})
    found = the(analysed(study, records_of(study, {FAST: 1.44})))
    cpu = found.cost("server_cpu_us_per_op")
    assert cpu is not None and cpu.confidence == 0.95
    assert cpu.ratio == pytest.approx((310 / 1.2 + 120) / 430, rel=0.01)


def test_a_trial_that_never_settles_is_marked() -> None:
    study = a_study()

    def late(record: Record) -> Record:
        seconds = range(-WARMUP_S, DURATION_S)
        return counted(record, series=[a_second(second, 1000 if second < 15 else 400) for second in seconds])

    analysis = analysed(study, records_of(study, changes={FAST: only_in({1}, late)}))
    marked = [trial.record.block for trial in analysis.trials if Doubt.NOT_SETTLED in trial.warnings]
    assert marked == [1]
    assert the(analysis).warnings == {Doubt.NOT_SETTLED: 1}


def test_seconds_cut_short_are_left_out_and_silent_ones_count_as_nothing_done() -> None:
    points = [a_second(second, 10) for second in (-3, -2, 0, 1, 3)]
    assert whole_seconds(make_tally(warmup_s=2.5, duration_s=3.2, series=points)) == (
        [-2, -1, 0, 1, 2],
        [10.0, 0.0, 10.0, 10.0, 0.0],
    )
    assert whole_seconds(make_tally(series=[])) == ([], [])


def test_the_latency_distribution_is_that_of_the_tally_in_its_own_unit() -> None:
    study = a_study(blocks=1)
    found = analysed(study, records_of(study))
    tally = found.trials[0].record.tally
    assert tally is not None and tally.latency_us.p99 is not None
    curve = found.variants[0 if found.trials[0].record.variant == "baseline" else 1].latency
    near = min(curve, key=lambda point: abs(point.above - 0.01))
    assert near.latency_ms == pytest.approx(tally.latency_us.p99 / 1000, rel=0.01)


def test_levels_that_python_holds_equal_are_told_apart() -> None:
    study = a_study({"config.a": [1, True]})
    found = analysed(study, records_of(study)).variants[1]
    assert found.changed == {"config.a": True}


def test_a_factorial_design_gives_main_effects_and_interactions() -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": [1, 2, 3]}, design=Design.FACTORIAL, blocks=8)
    ratios = {
        "config.a=on": 1.5,
        "config.b=2": 1.2,
        "config.b=3": 0.9,
        "config.a=on, config.b=2": 1.5 * 1.2 * 1.3,
        "config.a=on, config.b=3": 1.5 * 0.9,
    }
    tables = analysed(study, records_of(study, ratios)).factorial
    assert tables is not None
    mains = {(row.factor, row.level): row.effect.ratio for row in tables.main}
    assert mains["config.a", "on"] == pytest.approx(1.5 * 1.3 ** (1 / 3), rel=0.02)
    assert mains["config.b", 2] == pytest.approx(1.2 * 1.3 ** (1 / 2), rel=0.02)
    joint = {row.levels: row.effect for row in tables.interactions}
    assert joint["on", 2].ratio == pytest.approx(1.3, rel=0.03)
    assert joint["on", 2].low is not None and joint["on", 2].low > 1.0
    low, high = joint["on", 3].low, joint["on", 3].high
    assert low is not None and high is not None and low <= 1.0 <= high


def test_a_factorial_with_a_cell_missing_says_over_how_many_settings_it_averages() -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": [1, 2, 3]}, design=Design.FACTORIAL)
    gone = {"config.a=on, config.b=3": ended(Outcome.FAILED, "did not start")}
    tables = analysed(study, records_of(study, changes=gone)).factorial
    assert tables is not None
    (row,) = [row for row in tables.main if row.factor == "config.a"]
    assert (row.settings, row.settings_planned) == (2, 3)
    assert {row.levels for row in tables.interactions} == {("on", 2)}


def test_one_flaky_cell_does_not_empty_a_factors_effect() -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": [1, 2, 3]}, design=Design.FACTORIAL)
    flaky = {"config.a=on, config.b=3": only_in({0, 1, 2, 3, 4}, ended(Outcome.FAILED, "did not start"))}
    tables = analysed(study, records_of(study, {"config.a=on": 1.5}, flaky)).factorial
    assert tables is not None
    (row,) = [row for row in tables.main if row.factor == "config.a"]
    assert (row.settings, row.settings_planned, row.effect.pairs) == (2, 3, 6)
    assert row.effect.low is not None


def test_one_block_that_a_cell_lacks_costs_that_block_alone() -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": [1, 2, 3]}, design=Design.FACTORIAL)
    flaky = {"config.a=on, config.b=3": only_in({2}, ended(Outcome.FAILED, "did not start"))}
    tables = analysed(study, records_of(study, changes=flaky)).factorial
    assert tables is not None
    (row,) = [row for row in tables.main if row.factor == "config.a"]
    assert (row.settings, row.effect.pairs) == (3, 5)


def test_other_designs_have_no_factorial_tables() -> None:
    study, records = every_verdict()
    assert analysed(study, records).factorial is None


def test_evidence_of_no_effect_is_that_of_what_was_changed() -> None:
    study = a_study(goal=Goal(margin=0.5))
    analysis = analysed(study, records_of(study))
    (exhibit,) = analysis.museum
    assert exhibit.verdict is Verdict.NO_EFFECT
    assert [evidence.factor for evidence in exhibit.evidence] == ["config.page_cache"]
    assert all(isinstance(evidence, Evidence) for evidence in exhibit.evidence)


NOISE = (
    Doubt.STEAL, Doubt.HOST_BUSY, Doubt.THROTTLED, Doubt.BESIDE_BUSY, Doubt.SERVER_LOG, Doubt.NOT_SETTLED,
    Doubt.DEFERRED,
)  # fmt: skip


@pytest.mark.parametrize("doubt", NOISE)
def test_noise_discards_no_trial(doubt: Doubt) -> None:
    """The noisy trials are the slow ones, so an estimate without them would be another one."""
    study = a_study(blocks=8)
    slow = only_in({1, 4}, lambda record: counted(record, operations=operations_of(record) // 2))
    quiet = records_of(study, {FAST: 1.3}, {FAST: slow})
    noisy = [
        warned(doubt, "12 % of CPU time")(record)
        if record.variant == FAST and record.block in (1, 4)
        else record
        for record in quiet
    ]
    found, without = the(analysed(study, noisy)), the(analysed(study, quiet))
    assert found.warnings == {doubt: 2}
    assert found.effect is not None and found.effect == without.effect
