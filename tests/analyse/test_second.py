"""CPU per transaction is told of every run that read it, and seldom as different where nothing differs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.analysis import AnalysisInput, basis_of
from dbdyno.analyse.found import SecondResponse
from dbdyno.analyse.model import Analysis, Verdict
from dbdyno.analyse.second import METRIC, aa_check, pooled
from dbdyno.findings import analyse
from dbdyno.findings.verdicts import find_second
from dbdyno.records.record import Record
from dbdyno.report.words.noise import second_text
from dbdyno.study import Study
from tests.analyse.factory import a_run
from tests.analyse.remade import OPERATIONS, OTHERS, STUDY, as_made, changed, with_goal

TRIAL_SD = 0.05


def spending(seed: int, cpu_sd: float, costs: float = 1.0) -> list[Record]:
    """A run in which the second variant costs `costs` times as much, and no speed differs."""
    random = np.random.default_rng(seed)
    return [
        costing(
            record,
            operations=OPERATIONS * math.exp(random.normal(0.0, TRIAL_SD)),
            cost=math.exp(random.normal(0.0, cpu_sd)) * (costs if record.variant == OTHERS[0] else 1.0),
        )
        for record in as_made()
    ]


def analysed(seed: int, cpu_sd: float, costs: float = 1.0, study: Study = STUDY) -> Analysis:
    return analyse(study, a_run(study), spending(seed, cpu_sd, costs))


def told_of(cpu_sd: float) -> list[SecondResponse]:
    """What 100 runs tell in which no variant differs, without the rest of their analyses."""
    bases = (
        basis_of(STUDY, a_run(STUDY), AnalysisInput.of(spending(seed, cpu_sd)), whole=False)
        for seed in range(100)
    )
    return [one for basis in bases if (one := find_second(basis))]


def costing(record: Record, operations: float, cost: float) -> Record:
    spent_s = operations * 430e-6 * cost
    return changed(record, operations, {"server_cpu_user_s": spent_s, "server_cpu_system_s": 0.0})


@pytest.fixture(scope="module")
def equal() -> list[SecondResponse]:
    """CPU repeats five times as well as time."""
    return told_of(0.01)


def test_a_simulated_run_tells_what_a_whole_analysis_tells(equal: list[SecondResponse]) -> None:
    assert analysed(0, cpu_sd=0.01).second in equal


def test_equal_costs_are_told_apart_in_one_run_of_twenty_at_most(equal: list[SecondResponse]) -> None:
    assert len(equal) >= 95
    wrong = sum(any(ratio.differs for ratio in one.ratios) for one in equal)
    # 5 are promised; 11 or more come in one series of 87.
    assert wrong < 11
    assert all(one.spread_share < 0.5 for one in equal)


def test_a_cost_that_repeats_no_better_is_told_apart_as_seldom() -> None:
    """Told only where its spread happens to be small, 18 to 26 % of equal variants were told apart."""
    told = told_of(TRIAL_SD)
    assert len(told) == 100
    assert sum(any(ratio.differs for ratio in one.ratios) for one in told) < 11


def test_a_cost_is_told_where_time_cannot_tell_it() -> None:
    analysis = analysed(3, cpu_sd=0.005, costs=1.02)
    told = analysis.second
    assert told is not None and told.metric == METRIC
    assert [one.variant for one in told.ratios if one.differs] == [OTHERS[0]]
    assert told.ratios[0].low < 1.02 < told.ratios[0].high
    assert analysis.candidates[0].verdict is Verdict.INCONCLUSIVE
    text = second_text(analysis)
    assert text.startswith("Server CPU per transaction, whose ratios spread ")
    assert f"by it, {OTHERS[0]} has " in text and "no difference was found with 2 variants" in text
    assert text.endswith("they say what the work costs, and nothing of its speed.")


@pytest.mark.parametrize("response", [METRIC, "server_cpu_user_us_per_op"])
def test_a_study_of_cpu_time_has_no_second_response(response: str) -> None:
    analysis = analysed(1, cpu_sd=0.01, study=with_goal(STUDY, response=response))
    assert analysis.second is None and second_text(analysis) == ""


def test_the_share_of_pairs_called_different_is_the_one_promised() -> None:
    random = np.random.default_rng(11)
    check = aa_check("throughput", random.normal(0, 0.03, 6000).tolist(), 0.95)
    assert check.comparisons == 1000
    assert abs(check.called / 1000 - 0.05) <= 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert check.share_low <= 0.05 <= check.share_high


def test_an_instrument_that_drifts_is_caught() -> None:
    # Blocks disturb twin and baseline differently, and neighbours alike: a host that changes slowly.
    random = np.random.default_rng(12)
    drift = np.repeat(random.normal(0, 0.03, 40), 6) + random.normal(0, 0.005, 240)
    check = aa_check("throughput", drift.tolist(), 0.95)
    assert check.comparisons == 40
    assert check.share_low > check.promised


@pytest.mark.parametrize(
    ("blocks", "comparisons"), [(0, 0), (1, 0), (5, 0), (6, 1), (11, 1), (12, 2), (61, 10)]
)
def test_every_block_is_in_one_comparison_of_six_blocks_or_more(blocks: int, comparisons: int) -> None:
    check = aa_check("throughput", [0.01 * (-1) ** index for index in range(blocks)], 0.95)
    assert (check.pairs, check.comparisons) == (blocks, comparisons)


def test_two_comparisons_tell_next_to_nothing_of_the_share() -> None:
    check = aa_check("throughput", [0.01 * (-1) ** index for index in range(12)], 0.95)
    assert (check.called, check.comparisons) == (0, 2)
    # 1 - 0.025^(1/2): with that share, two of two would go well in one of forty instruments.
    assert check.share_low == 0.0 and check.share_high == pytest.approx(1 - 0.025**0.5)


def test_runs_are_pooled_by_counting() -> None:
    random = np.random.default_rng(13)
    checks = [aa_check("throughput", random.normal(0, 0.03, 12).tolist(), 0.95) for _ in range(5)]
    whole = pooled(checks)
    assert whole.comparisons == 10 and whole.pairs == 60
    assert whole.called == sum(check.called for check in checks)


def test_checks_that_promised_different_shares_are_not_pooled() -> None:
    with pytest.raises(ValueError, match="promised the same"):
        pooled([aa_check("m", [0.0, 0.1], 0.95), aa_check("m", [0.0, 0.1], 0.9)])
