"""A run against another: side by side by blocks, against stored runs by runs; and no more alarms than
promised."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.gate import (
    RUNS_OWN_LEAST,
    GateWay,
    PastRun,
    Source,
    _against_runs,
    _floor_of,
    against_stored,
    log_mean,
    noise_floor,
    side_by_side,
    with_floor,
)
from dbdyno.analyse.intervals import judge, ratio_of
from dbdyno.analyse.model import Kept, Reason, Verdict
from dbdyno.findings import analyse
from dbdyno.findings.gate import sentence
from dbdyno.records.record import Outcome
from dbdyno.study import Goal, Guard, Interval
from tests.analyse.factory import broken, counted, ended, records_of
from tests.analyse.gate_cases import SETUP, an_analysis, past_of
from tests.fakes import no_latency

STALLS = Guard(text="p99_ms <= 1.2x", metric="p99_ms", bound=1.2, relative=True)


@cache
def then() -> Analysis:
    """A run that was stored."""
    return an_analysis("then", seed=2)


def stored(now: Analysis, past: list[PastRun], reference: Analysis | None = None):  # type: ignore[no-untyped-def]
    return against_stored("main", now, reference or then(), SETUP, past)


@pytest.mark.parametrize(
    ("speed", "verdict"), [(0.8, Verdict.SLOWER), (1.25, Verdict.FASTER), (1.0, Verdict.NO_EFFECT)]
)
def test_runs_that_took_turns_are_paired_by_block(speed: float, verdict: Verdict) -> None:
    gate = side_by_side("main", an_analysis(speed=speed), an_analysis("main"))
    assert (gate.way, gate.result.verdict) == (GateWay.SIDE_BY_SIDE, verdict)
    assert gate.result.effect is not None and gate.result.effect.pairs == 6
    assert gate.result.effect.ratio == pytest.approx(speed, rel=1e-4)


@pytest.mark.parametrize(("extended", "most"), [(True, 0.05), (False, 1.0)])
def test_whoever_asks_for_more_blocks_until_it_is_settled_is_rarely_wrong(
    extended: bool, most: float
) -> None:
    """By more blocks of one run no more often than promised; by a fresh run each time far more often."""
    random, runs, wrong = np.random.default_rng(6), 200, 0
    now = an_analysis()
    longer = now.run.but(sequential=extended)
    method = side_by_side(
        "main", analyse(now.study, longer, records_of(now.study)), an_analysis("main")
    ).method
    assert method.interval is (Interval.ANYTIME if extended else Interval.STUDENT)
    for _ in range(runs):
        logs: list[float] = []
        for blocks in (6, 12, 24, 48):
            logs = [*logs[: blocks if extended else 0]]
            logs += random.normal(0.0, 0.05, blocks - len(logs)).tolist()
            effect = ratio_of(method.response, logs, method.confidence_each, method.interval)
            assert effect is not None
            verdict, _ = judge(effect, method)
            if verdict is not Verdict.INCONCLUSIVE:
                wrong += verdict is not Verdict.NO_EFFECT
                break
    assert wrong <= most * runs + 3.0 * math.sqrt(0.05 * 0.95 * runs)
    assert extended or wrong > 0.1 * runs


def test_a_guard_is_held_against_the_reference() -> None:
    goal = Goal(guards=(STALLS,))

    def slow_tail(record):  # type: ignore[no-untyped-def]
        latency = dict(record.tally.latency_us)
        return counted(record, latency_us={**latency, "p99": latency["p99"] * 3.0})

    gate = side_by_side("main", an_analysis(change=slow_tail, goal=goal), an_analysis("main", goal=goal))
    assert gate.result.verdict is Verdict.BROKEN
    assert [guard.state for guard in gate.result.guards] == [Kept.BROKEN]


def test_a_broken_invariant_breaks_the_run_whatever_its_speed() -> None:
    change = broken("account 118, history 117")
    assert (
        side_by_side("main", an_analysis(change=change), an_analysis("main")).result.verdict is Verdict.BROKEN
    )
    assert stored(an_analysis(change=change), past_of(*[0.0] * 8)).result.verdict is Verdict.BROKEN


def test_a_reference_that_did_not_hold_gives_no_verdict() -> None:
    reference = an_analysis("main", change=broken("account 118, history 117"))
    assert side_by_side("main", an_analysis(), reference).result.verdict is Verdict.INCONCLUSIVE
    gate = stored(an_analysis(), past_of(*[0.0] * 8), reference)
    assert (gate.result.verdict, gate.result.reason) == (Verdict.INCONCLUSIVE, Reason.BASELINE_BROKEN)


def test_one_run_against_one_stored_run_gives_no_verdict() -> None:
    now = an_analysis(speed=0.5)
    value = log_mean(then())
    assert value is not None
    gate = with_floor(stored(now, past_of(value)), SETUP, past_of(value))
    assert (gate.result.verdict, gate.result.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)
    assert gate.result.effect is not None and gate.result.effect.low is None
    assert gate.floor is None and gate.alarms.comparisons == 0


def test_enough_runs_of_one_setup_tell_a_change_from_the_days() -> None:
    value = log_mean(an_analysis())
    assert value is not None
    past = past_of(*(value + math.log(speed) for speed in (1.0, 1.01, 0.99, 1.02, 0.98, 1.0)))
    assert stored(an_analysis(speed=0.8), past).result.verdict is Verdict.SLOWER
    assert stored(an_analysis(speed=0.97), past).result.verdict is Verdict.INCONCLUSIVE
    assert stored(an_analysis(speed=0.8), past[:3]).result.verdict is Verdict.SLOWER
    assert stored(an_analysis(speed=0.8), past[:2]).result.verdict is Verdict.INCONCLUSIVE
    assert stored(an_analysis(speed=0.8), [one.but(setup="x") for one in past]).result.reason


def test_the_spread_is_pooled_within_setups() -> None:
    """Two setups of which one is ten times as fast: their own spreads count, not the distance of the two."""
    slow, fast = [0.0, 0.1, 0.2], [2.3, 2.4]
    past = [*past_of(*slow), *past_of(*fast, setup="fast"), *past_of(9.0, setup="one")]
    floor = _floor_of(Source.POOLED, [past[:3], past[3:5]], [past[:3], past[3:5]], 0.95)
    assert (floor.runs, floor.setups, floor.degrees) == (5, 2, 3)
    squares = np.var(slow) * 3 + np.var(fast) * 2
    assert floor.log_sd == pytest.approx(math.sqrt(squares / 3))
    # Student's 0.975 quantile with three degrees of freedom is 3.1824.
    assert floor.ratio == pytest.approx(math.exp(3.1824 * floor.log_sd * math.sqrt(2.0)), rel=1e-4)


def test_the_spread_is_the_setup_s_own_or_that_of_whatever_reaches_farthest() -> None:
    quiet, noisy = past_of(0.0, 0.01, -0.01, 0.01, setup="quiet"), past_of(0.0, 0.2, -0.2, setup="noisy")
    both = [*quiet, *noisy]
    found = {setup: noise_floor(both, setup, 0.95) for setup in ("quiet", "noisy", "new")}
    assert [one.source if one else None for one in found.values()] == [
        Source.OWN, Source.OWN, Source.NOISIEST
    ]  # fmt: skip
    ratios = [one.ratio for one in found.values() if one]
    assert ratios[0] < 1.1 and ratios[1] == ratios[2] > 2.0
    assert noise_floor(past_of(0.0, 0.1, setup="two"), "new", 0.95).source is Source.POOLED  # type: ignore[union-attr]
    assert noise_floor(past_of(0.0), SETUP, 0.95) is None


def called_different(own: int, spread: float, runs: int = 400) -> float:
    """The share of equal runs that are called different from a setup with so many runs and this spread,
    beside five setups whose runs spread by 1 %."""
    random, called = np.random.default_rng(7), 0
    method = side_by_side("main", an_analysis(), an_analysis("main")).method
    for _ in range(runs):
        past = past_of(*random.normal(0.0, spread, own))
        for count in (2, 3, 4, 5, 6):
            past += past_of(*random.normal(0.0, 0.01, count), setup=f"other {count}")
        effect = _against_runs(float(random.normal(0.0, spread)), SETUP, past, method)
        assert effect is not None
        verdict, _ = judge(effect, method.but(margin=0.0, blocks_least=RUNS_OWN_LEAST))
        called += verdict in (Verdict.FASTER, Verdict.SLOWER)
    return called / runs


@pytest.mark.parametrize("own", [1, 2, 3, 6])
def test_equal_runs_of_a_setup_that_is_noisier_than_others_are_seldom_called_different(own: int) -> None:
    """With the spread pooled over all setups, 18 to 30 % are."""
    assert called_different(own, 0.02) <= 0.09


def test_an_open_gate_says_in_its_first_line_what_it_can_see_and_what_sees_more() -> None:
    value = log_mean(an_analysis())
    assert value is not None
    told = sentence(stored(an_analysis(), past_of(*(value + day for day in (0.0, 0.05, -0.05)))))
    assert told.startswith("Inconclusive: ") and "run can see: 28 %" in told
    assert 'response = "instructions_per_op"' in told


def test_runs_that_fail_more_than_a_stored_one_are_not_faster() -> None:
    def failing(record):  # type: ignore[no-untyped-def]
        return counted(record, failed_latency_us=no_latency().but(count=record.tally.operations // 20))

    value = log_mean(an_analysis())
    assert value is not None
    past = past_of(*(value + day for day in (0.0, 0.01, -0.01)))
    assert stored(an_analysis(speed=1.25), past).result.verdict is Verdict.FASTER
    result = stored(an_analysis(speed=1.25, change=failing), past).result
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, Reason.FAILS_MORE)
    slower = stored(an_analysis(speed=0.8, change=failing), past).result
    assert slower.verdict is Verdict.SLOWER


def test_runs_of_one_setup_are_called_different_no_more_often_than_promised() -> None:
    """Every run has a day of its own, ten times as far from the others as its blocks from each other."""
    random = np.random.default_rng(4)
    now, alarms, comparisons = an_analysis(), 0, 150
    value = log_mean(now)
    assert value is not None
    for _ in range(comparisons):
        # The run is where it is, so its day moves all others.
        today, *days = random.normal(0.0, 0.1, 9)
        gate = stored(now, past_of(*(value + day - today for day in days)))
        alarms += gate.result.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert alarms <= 0.05 * comparisons + 3.0 * math.sqrt(0.05 * 0.95 * comparisons)
    assert alarms > 0, "an interval that never misses is no 95 % interval"


def test_false_alarms_of_the_past_are_counted_by_the_same_rule() -> None:
    quiet = past_of(0.0, 0.001, -0.001, 0.002, -0.002, 0.0, 0.001, -0.001)
    gate = stored(an_analysis(), quiet)
    assert gate.alarms.comparisons == len(quiet) - RUNS_OWN_LEAST and gate.alarms.called == 0
    jumped = stored(an_analysis(), [*quiet[:-1], quiet[-1].but(log_mean=1.0)])
    assert jumped.alarms.called == 1 and jumped.alarms.share_low > 0.0


def test_pairs_that_took_turns_before_count_as_alarms_where_they_were_told_apart() -> None:
    same, apart = (an_analysis("a"), an_analysis("b")), (an_analysis("c", speed=0.5), an_analysis("d"))
    alarms = side_by_side("main", an_analysis(), an_analysis("main"), [same, apart]).alarms
    assert (alarms.comparisons, alarms.called) == (2, 1)


def test_a_run_without_a_speed_has_no_verdict_but_its_end() -> None:
    failed = ended(Outcome.FAILED, "the server did not start", "")
    gate = stored(an_analysis(change=failed), past_of(*[0.0] * 8))
    assert (gate.result.verdict, gate.result.effect) == (Verdict.FAILED, None)
