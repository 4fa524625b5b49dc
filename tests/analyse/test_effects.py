"""The whole verdict: how a variant's blocks ended, its guards and its interval, and how often chance alone
gives one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse.analysis import AnalysisInput, basis_of
from dbdyno.analyse.model import Analysis, Kept, Reason, Role, VariantResult, Verdict
from dbdyno.findings import analyse
from dbdyno.plan.sequential import decided
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import Run
from dbdyno.report.words.noise import adjusted_text
from dbdyno.report.words.remarks import remark
from dbdyno.study import Arrangement, Goal, Guard, Interval, Study
from dbdyno.study.nouns import Adjustment
from tests.analyse.factory import a_run, a_study, broken, ended, records_of, warned
from tests.analyse.noises import GUARD, NOISES, Guards, false_alarm, without_estimates
from tests.analyse.remade import OPERATIONS, OTHERS, STUDY, as_made, changed, with_goal

FAST = "config.page_cache=64k"
FAILED = ended(Outcome.FAILED, "the server died of SIGSEGV")
Change = Callable[[Record], Record]


def in_blocks(blocks: set[int], change: Change) -> Change:
    return lambda record: change(record) if record.block in blocks else record


def the(study: Study, records: list[Record], sequential: bool = False) -> VariantResult:
    run = a_run(study).but(sequential=sequential)
    return next(one for one in analyse(study, run, records).variants if one.name == FAST)


def left_out(study: Study, records: list[Record]) -> bool:
    return FAST in decided(study, a_run(study).but(sequential=True), records)


@pytest.mark.parametrize(
    ("lost", "verdict"), [(10, Verdict.FAILED), (3, Verdict.FAILED), (2, Verdict.FASTER)]
)
def test_the_share_of_lost_blocks_decides(lost: int, verdict: Verdict) -> None:
    study = a_study(blocks=12)
    records = records_of(study, {FAST: 1.5}, {FAST: in_blocks(set(range(lost)), FAILED)})
    assert the(study, records).verdict is verdict


@pytest.mark.parametrize(("blocks", "over"), [(1, False), (2, False), (3, True)])
def test_a_sequential_run_gives_a_server_that_failed_another_chance(blocks: int, over: bool) -> None:
    study = a_study(blocks=blocks)
    assert left_out(study, records_of(study, changes={FAST: FAILED})) is over


def test_a_sequential_run_goes_on_after_one_failure_and_one_limit_of_the_driver() -> None:
    study = a_study(blocks=2)
    limited = warned(Doubt.DRIVER_SATURATED, "thread 0")
    change = in_blocks({0}, lambda record: limited(FAILED(record)))
    assert not left_out(study, records_of(study, changes={FAST: change}))


@pytest.mark.parametrize("change", [ended(Outcome.BLOCKED, "no such device"), broken("sums differ")])
def test_what_no_further_block_can_change_ends_at_once(change: Change) -> None:
    study = a_study(blocks=1)
    assert left_out(study, records_of(study, changes={FAST: change}))


def idle(reason: str) -> Change:
    def change(record: Record) -> Record:
        evidence = tuple(one.but(idle=reason) for one in record.evidence)
        return record.but(evidence=evidence)

    return change


def test_a_variant_is_idle_where_no_trial_of_either_side_had_use_for_it() -> None:
    study = a_study()
    both = {"baseline": idle("no log"), FAST: idle("no log")}
    assert the(study, records_of(study, changes=both)).idle == "no log"
    assert the(study, records_of(study, changes={FAST: idle("no log")})).idle == ""
    once = {**both, FAST: in_blocks({0, 1}, idle("no log"))}
    assert the(study, records_of(study, changes=once)).idle == ""
    assert the(study, records_of(study)).idle == ""


def test_one_reading_breaks_no_guard() -> None:
    goal = Goal(guards=(Guard(text="p99_ms <= 1.0x", metric="p99_ms", bound=1.0, relative=True),))
    study = a_study(blocks=1, goal=goal)
    records = records_of(study, {FAST: 0.5})
    found = the(study, records, sequential=True)
    assert [guard.state for guard in found.guards] == [Kept.UNDECIDED]
    assert found.verdict is Verdict.INCONCLUSIVE and not left_out(study, records)


def test_faster_stands_in_a_sequential_run_only_beyond_the_margin() -> None:
    study = a_study(blocks=12, goal=Goal(margin=0.05))
    near, far = records_of(study, {FAST: 1.045}), records_of(study, {FAST: 1.2})
    assert the(study, near, sequential=True).verdict is Verdict.FASTER and not left_out(study, near)
    assert the(study, far, sequential=True).verdict is Verdict.FASTER and left_out(study, far)
    assert left_out(study, records_of(study, {FAST: 1.0}))


@pytest.mark.parametrize("blocks", [2, 5])
def test_fewer_than_six_blocks_give_no_verdict(blocks: int) -> None:
    study = a_study(blocks=blocks)
    found = the(study, records_of(study, {FAST: 2.0}))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)
    assert found.blocks_more == 6 - blocks


def test_no_variant_is_faster_than_a_baseline_that_did_not_hold() -> None:
    study = a_study(blocks=8)
    changes = {"baseline": in_blocks({3}, broken("sums differ"))}
    found = the(study, records_of(study, {FAST: 1.5}, changes))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.BASELINE_BROKEN)
    assert left_out(study, records_of(study, {FAST: 1.5}, changes))


def test_costs_of_a_sequential_run_have_its_intervals() -> None:
    study = a_study(blocks=8)
    records = records_of(study, {FAST: 1.5})
    (once, looked) = (the(study, records, sequential).cost("p99_ms") for sequential in (False, True))
    assert once is not None and looked is not None and once.low is not None and looked.low is not None
    assert looked.low < once.low


RUNS = 200


def few_enough(alarms: int, runs: int) -> bool:
    """Whether so many alarms come up in one of a thousand instruments that raise 5 % of them."""
    return bool(stats.binom.sf(alarms - 1, runs, 0.05) > 1e-3)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(
    ("interval", "blocks", "guards"),
    [(Interval.STUDENT, 6, ()), (Interval.STUDENT, 6, (GUARD,)), (Interval.SIGNED_RANK, 10, ())],
)
def test_chance_alone_gives_a_verdict_in_one_of_twenty_runs_at_most(
    name: str, interval: Interval, blocks: int, guards: Guards
) -> None:
    random = np.random.default_rng(41)
    alarms = sum(false_alarm(NOISES[name], random, blocks, interval, guards) for _ in range(RUNS))
    assert few_enough(alarms, RUNS), f"{alarms} of {RUNS}"


@pytest.mark.parametrize("name", NOISES)
def test_chance_alone_ends_one_of_twenty_sequential_runs_at_most(name: str) -> None:
    random = np.random.default_rng(42)
    alarms = sum(false_alarm(NOISES[name], random, 12, Interval.ANYTIME) for _ in range(RUNS // 5))
    assert few_enough(alarms, RUNS // 5), f"{alarms} of {RUNS // 5}"


@pytest.mark.parametrize(("speed", "carried"), [(1.03, 2), (1.5, 0)])
def test_a_verdict_that_few_blocks_carry_says_so(speed: float, carried: int) -> None:
    study = a_study(blocks=16)
    found = the(study, records_of(study, {FAST: speed}, trial_sd=0.03))
    assert (found.verdict, found.carried_by) == (Verdict.FASTER, carried)
    told = remark(found, analyse(study, a_run(study), records_of(study)))
    assert ("2 of its 16 blocks carry that" in told) == bool(carried)


ADJUSTED = with_goal(STUDY, adjust=Adjustment.OTHER_CPU)
SLOPE = 0.02
"""How much of the log speed goes for each second of CPU that others use."""


def disturbed(seed: int, faster: float = 1.0, others_s: float = 3.0) -> list[Record]:
    """A run on a host whose other processes use `others_s` of CPU on average in a trial, now more, now less.
    The second variant is `faster` times as fast as all others."""
    random = np.random.default_rng(seed)
    records = []
    for record in as_made():
        beside_s = random.exponential(others_s) if others_s else 0.0
        log = random.normal(0.0, 0.01) - SLOPE * beside_s
        speed = OPERATIONS * math.exp(log) * (faster if record.variant == OTHERS[0] else 1.0)
        records.append(changed(record, speed, {"other_cpu_s": beside_s}))
    return records


def analysed(seed: int, others_s: float = 3.0) -> Analysis:
    return analyse(ADJUSTED, a_run(ADJUSTED), disturbed(seed, others_s=others_s))


@without_estimates
def judged(study: Study, run: Run, records: list[Record]) -> list[VariantResult]:
    """What is told of the candidates, without the rest of an analysis."""
    results = basis_of(study, run, AnalysisInput.of(records)).results
    return [one for one in results if one.role is Role.CANDIDATE]


@pytest.fixture(scope="module")
def equal() -> list[list[VariantResult]]:
    """100 runs in which no variant differs."""
    return [judged(ADJUSTED, a_run(ADJUSTED), disturbed(seed)) for seed in range(100)]


def test_equal_variants_are_called_different_in_one_run_of_twenty_at_most(
    equal: list[list[VariantResult]],
) -> None:
    told = (Verdict.FASTER, Verdict.SLOWER)
    wrong = sum(any(one.verdict in told for one in candidates) for candidates in equal)
    # 5 are promised; 11 or more come in one series of 87.
    assert wrong < 11


def test_a_simulated_run_is_judged_as_a_whole_analysis_judges_it(equal: list[list[VariantResult]]) -> None:
    whole = analysed(1).candidates
    assert [(one.verdict, one.effect, one.unadjusted) for one in equal[1]] == [
        (one.verdict, one.effect, one.unadjusted) for one in whole
    ]


def test_intervals_are_narrower_where_others_explain_what_blocks_differ_by(
    equal: list[list[VariantResult]],
) -> None:
    narrower = [
        math.log(one.effect.high / one.effect.low) / math.log(one.unadjusted.high / one.unadjusted.low)
        for candidates in equal
        for one in candidates
        if one.effect and one.unadjusted and one.effect.high and one.unadjusted.high
        and one.effect.low and one.unadjusted.low
    ]  # fmt: skip
    assert len(narrower) == 300
    assert np.median(narrower) < 0.3


def test_a_difference_is_told_as_large_as_it_is_and_only_with_the_adjustment() -> None:
    run = a_run(ADJUSTED)
    found = [judged(ADJUSTED, run, disturbed(seed, faster=1.03))[0] for seed in range(40)]
    assert np.mean([math.log(one.effect.ratio) for one in found if one.effect]) == pytest.approx(
        math.log(1.03), abs=0.003
    )
    assert sum(one.verdict is Verdict.FASTER for one in found) >= 30
    plain = [one.unadjusted for one in found if one.unadjusted and one.unadjusted.low]
    assert len(plain) == 40 and sum(one.low > 1.0 for one in plain if one.low) <= 10


def test_both_ratios_are_told() -> None:
    analysis = analysed(1)
    text = adjusted_text(analysis)
    assert text.startswith(
        "Verdicts rest on ratios at equal CPU time of other processes, as the study asks: "
    )
    assert text.count(" instead of ") == len(analysis.candidates) == 3
    assert adjusted_text(analyse(STUDY, a_run(STUDY), as_made())) == ""


def test_what_never_differed_takes_nothing_off() -> None:
    analysis = analysed(1, others_s=0.0)
    assert all(one.effect is not None and one.unadjusted is None for one in analysis.candidates)
    assert adjusted_text(analysis).startswith("Nothing was adjusted for the CPU time of other processes")


def test_other_intervals_and_few_blocks_are_not_adjusted() -> None:
    for study in (
        with_goal(ADJUSTED, interval=Interval.SIGNED_RANK),
        ADJUSTED.but(blocks=6),
    ):
        records = [record for record in as_made() if record.block < study.blocks]
        found = analyse(study, a_run(study), records)
        assert all(one.unadjusted is None for one in found.candidates)


ONE_AFTER_ANOTHER = a_run(STUDY).but(arrangement=Arrangement.ONE_AFTER_THE_OTHER, mirrored=True)


def drifting(seed: int, drift: float, faster: float = 1.0) -> list[Record]:
    """A run whose trials follow one another on a host that is slower by `drift` with each."""
    random = np.random.default_rng(seed)
    return [
        changed(
            record,
            OPERATIONS
            * math.exp(random.normal(0.0, 0.01) - drift * record.trial)
            * (faster if record.variant == OTHERS[0] else 1.0),
            {},
        )
        for record in as_made()
    ]


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_equal_variants_are_seldom_called_different_by_their_places(drift: float) -> None:
    told = (Verdict.FASTER, Verdict.SLOWER)
    found = [judged(STUDY, ONE_AFTER_ANOTHER, drifting(seed, drift)) for seed in range(100)]
    assert sum(any(one.verdict in told for one in candidates) for candidates in found) < 11


def test_a_drift_from_trial_to_trial_is_taken_off_where_trials_follow_one_another() -> None:
    found = analyse(STUDY, ONE_AFTER_ANOTHER, drifting(1, 0.03, faster=1.05))
    one = found.candidates[0]
    assert one.effect and one.unadjusted and one.effect.low and one.effect.high
    assert one.unadjusted.low and one.unadjusted.high
    assert one.effect.low <= 1.05 <= one.effect.high and one.verdict is Verdict.FASTER
    plain = math.log(one.unadjusted.high / one.unadjusted.low)
    assert math.log(one.effect.high / one.effect.low) < 0.5 * plain
    assert adjusted_text(found).startswith("Trials followed one another, and a host drifts.")
