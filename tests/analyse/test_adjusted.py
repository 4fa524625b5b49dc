"""What other processes did to a block is taken off, and nothing else is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Analysis, Verdict
from dbdyno.report.words.noise import adjusted_text
from dbdyno.study import Arrangement, Interval
from dbdyno.study.nouns import Adjustment
from tests.analyse.factory import a_run
from tests.analyse.remade import OPERATIONS, OTHERS, STUDY, as_made, changed, with_goal

ADJUSTED = with_goal(STUDY, adjust=Adjustment.OTHER_CPU)
SLOPE = 0.02
"""How much of the log speed goes for each second of CPU that others use."""


def analysed(seed: int, faster: float = 1.0, trial_sd: float = 0.01, others_s: float = 3.0) -> Analysis:
    """A run on a host whose other processes use `others_s` of CPU on average in a trial, now more, now less.
    The second variant is `faster` times as fast as all others."""
    random = np.random.default_rng(seed)
    records = []
    for record in as_made():
        beside_s = random.exponential(others_s) if others_s else 0.0
        log = random.normal(0.0, trial_sd) - SLOPE * beside_s
        speed = OPERATIONS * math.exp(log) * (faster if record.variant == OTHERS[0] else 1.0)
        records.append(changed(record, speed, {"other_cpu_s": beside_s}))
    return analyse(ADJUSTED, a_run(ADJUSTED), records)


@pytest.fixture(scope="module")
def equal() -> list[Analysis]:
    """100 runs in which no variant differs."""
    return [analysed(seed) for seed in range(100)]


def test_equal_variants_are_called_different_in_one_run_of_twenty_at_most(equal: list[Analysis]) -> None:
    told = (Verdict.FASTER, Verdict.SLOWER)
    wrong = sum(any(one.verdict in told for one in analysis.candidates) for analysis in equal)
    # 5 are promised; 11 or more come in one series of 87.
    assert wrong < 11


def test_intervals_are_narrower_where_others_explain_what_blocks_differ_by(equal: list[Analysis]) -> None:
    narrower = [
        math.log(one.effect.high / one.effect.low) / math.log(one.unadjusted.high / one.unadjusted.low)
        for analysis in equal
        for one in analysis.candidates
        if one.effect and one.unadjusted and one.effect.high and one.unadjusted.high
        and one.effect.low and one.unadjusted.low
    ]  # fmt: skip
    assert len(narrower) == 300
    assert np.median(narrower) < 0.3


def test_a_difference_is_told_as_large_as_it_is_and_only_with_the_adjustment() -> None:
    found = [analysed(seed, faster=1.03).candidates[0] for seed in range(40)]
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


def drifting(seed: int, drift: float, faster: float = 1.0) -> Analysis:
    """A run whose trials follow one another on a host that is slower by `drift` with each."""
    random = np.random.default_rng(seed)
    records = [
        changed(
            record,
            OPERATIONS
            * math.exp(random.normal(0.0, 0.01) - drift * record.trial)
            * (faster if record.variant == OTHERS[0] else 1.0),
            {},
        )
        for record in as_made()
    ]
    run = a_run(STUDY).but(arrangement=Arrangement.ONE_AFTER_THE_OTHER, mirrored=True)
    return analyse(STUDY, run, records)


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_equal_variants_are_seldom_called_different_by_their_places(drift: float) -> None:
    told = (Verdict.FASTER, Verdict.SLOWER)
    found = [drifting(seed, drift) for seed in range(100)]
    assert sum(any(one.verdict in told for one in analysis.candidates) for analysis in found) < 11


def test_a_drift_from_trial_to_trial_is_taken_off_where_trials_follow_one_another() -> None:
    found = drifting(1, 0.03, faster=1.05)
    one = found.candidates[0]
    assert one.effect and one.unadjusted and one.effect.low and one.effect.high
    assert one.unadjusted.low and one.unadjusted.high
    assert one.effect.low <= 1.05 <= one.effect.high and one.verdict is Verdict.FASTER
    plain = math.log(one.unadjusted.high / one.unadjusted.low)
    assert math.log(one.effect.high / one.effect.low) < 0.5 * plain
    assert adjusted_text(found).startswith("Trials followed one another, and a host drifts.")
