"""The mean that stands beside a signed-rank interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.effects import variant_result
from dbdyno.analyse.model import Reason, VariantResult, Verdict
from dbdyno.findings import analyse
from dbdyno.report.words import answer
from dbdyno.report.words.remarks import remark
from dbdyno.study import Goal, Interval
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import Values, method_of, trials_of

BLOCKS, RUNS = 24, 60


def compared(logs: Values, interval: Interval = Interval.SIGNED_RANK) -> VariantResult:
    """A variant whose log ratios these are, judged by the interval."""
    goal = Goal(margin=0.005, interval=interval)
    both = np.column_stack([np.zeros(len(logs)), logs])
    baseline, variant = trials_of(both, both)
    return variant_result(variant, baseline, goal, method_of(goal, 1, interval), ())


def with_slow_blocks(random: np.random.Generator) -> Values:
    """2 % faster but for one block in ten, which loses 35 %: the mean is 2.3 % slower."""
    return random.normal(0.02, 0.01, BLOCKS) + math.log(0.65) * (random.random(BLOCKS) < 0.1)


def test_a_mean_that_is_slower_is_seldom_called_faster() -> None:
    """No rule can tell where no block happened to be slow, in 8 % of such runs."""
    random = np.random.default_rng(3)
    called = sum(compared(with_slow_blocks(random)).verdict is Verdict.FASTER for _ in range(RUNS))
    assert called / RUNS <= 0.2, f"{called} of {RUNS}"


@pytest.mark.parametrize(
    ("middle", "slow", "verdict", "reason"),
    [
        (0.05, 0, Verdict.FASTER, None),
        (0.05, 1, Verdict.FASTER, None),
        (0.05, 2, Verdict.INCONCLUSIVE, Reason.MEAN),
        (-0.05, 4, Verdict.SLOWER, None),
        (0.0, 0, Verdict.NO_EFFECT, None),
        (0.0, 2, Verdict.INCONCLUSIVE, Reason.MEAN),
    ],
)
def test_where_middle_and_mean_disagree_nothing_is_said(
    middle: float, slow: int, verdict: Verdict, reason: Reason | None
) -> None:
    logs = middle + np.linspace(-0.002, 0.002, BLOCKS)
    logs[:slow] += math.log(0.65)
    found = compared(logs)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.mean is not None and found.mean.ratio == pytest.approx(math.exp(logs.mean()), rel=1e-4)
    assert compared(logs, Interval.STUDENT).mean is None


def test_a_report_tells_the_mean_beside_the_middle() -> None:
    study = a_study(blocks=8, goal=Goal(interval=Interval.SIGNED_RANK))
    analysis = analyse(study, a_run(study), records_of(study, {"config.page_cache=64k": 1.2}, trial_sd=0.01))
    told = [note for note in answer.notes(analysis) if "its ratio is the middle of its blocks" in note]
    assert len(told) == 1 and "their mean is 1." in told[0]
    disagreeing = compared(np.array([*[0.05] * (BLOCKS - 2), -0.4, -0.4]) + np.linspace(0, 0.001, BLOCKS))
    assert remark(disagreeing, analysis).startswith("the middle of its blocks is 1.05")
