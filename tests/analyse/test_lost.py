"""Blocks that failures took are not lost by chance: a verdict has to hold if they were the worst."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.estimate import with_lost
from dbdyno.analyse.model import Reason, VariantResult, Verdict
from dbdyno.findings import analyse
from dbdyno.records.record import Outcome, Record
from dbdyno.report.words.remarks import remark
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.analyse.noises import lost_when_slow

RUNS = 100
CANDIDATE = "config.page_cache=64k"


@pytest.mark.parametrize(("side", "wrong"), [(1, Verdict.FASTER), (0, Verdict.SLOWER)])
def test_who_fails_when_slow_is_rarely_called_the_better_one(side: int, wrong: Verdict) -> None:
    random = np.random.default_rng(5)
    called = sum(lost_when_slow(random, 48, 0.12, side) is wrong for _ in range(RUNS))
    # At most one in 40 is promised; eight of 100 come by chance once in 300 times at that share.
    assert called < 8


def analysed(ratio: float, lost: int = 2) -> tuple[Analysis, VariantResult]:
    failed = ended(Outcome.FAILED, "the server did not start")

    def change(record: Record) -> Record:
        return failed(record) if record.block < lost else record

    study = a_study(blocks=12)
    records = records_of(study, {CANDIDATE: ratio}, {CANDIDATE: change}, trial_sd=0.02)
    found = analyse(study, a_run(study), records)
    return found, next(one for one in found.variants if one.name == CANDIDATE)


def test_a_small_gain_that_rests_on_lost_blocks_is_no_verdict_and_says_so() -> None:
    found, variant = analysed(1.03)
    assert analysed(1.03, lost=0)[1].verdict is Verdict.FASTER
    assert (variant.verdict, variant.reason) == (Verdict.INCONCLUSIVE, Reason.LOST)
    assert "had they been the slowest of all" in remark(variant, found)


def test_a_large_gain_stands_though_some_blocks_were_lost() -> None:
    assert analysed(1.3)[1].verdict is Verdict.FASTER


def test_lost_blocks_count_as_worse_than_the_worst_for_whoever_lost_them() -> None:
    assert with_lost([1.0, 3.0], ours=1, theirs=0, higher_is_better=True)[2] < 1.0
    assert with_lost([1.0, 3.0], ours=0, theirs=1, higher_is_better=True)[2] > 3.0
    assert with_lost([1.0, 3.0], ours=1, theirs=0, higher_is_better=False)[2] > 3.0
    assert with_lost([1.0], ours=1, theirs=0, higher_is_better=True) == [1.0]
