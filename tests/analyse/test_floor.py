"""The floor of a run: what equal variants show by chance, and what blocks are worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.analysis import AnalysisInput, Basis, basis_of
from dbdyno.analyse.columns import BlockValues
from dbdyno.analyse.floor import blocking, neighbours, noisier, smallest, unseen_share, variances
from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.model import Ratio, Role
from dbdyno.findings import analyse
from dbdyno.findings.verdicts import find_floor
from dbdyno.records.record import Record
from dbdyno.report.words.noise import floor_text
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import without_estimates
from tests.analyse.remade import OPERATIONS, changed

LEVELS = {"config.page_cache": ["2k", "4k", "8k", "64k"]}


def analysed(seed: int, block_sd: float, trial_sd: float, blocks: int = 12, aa: bool = False) -> Analysis:
    study = a_study(LEVELS, blocks=blocks, aa=aa)
    records = records_of(study, seed=seed, block_sd=block_sd, trial_sd=trial_sd)
    return analyse(study, a_run(study), records)


@cache
def as_made(aa: bool) -> tuple[Record, ...]:
    """Records that simulated runs change, because their histograms take long to make."""
    return tuple(records_of(a_study(LEVELS, blocks=12, aa=aa)))


def basis(seed: int, block_sd: float, aa: bool = False, whole: bool = False) -> Basis:
    """What the findings of a simulated run of equal variants stand on."""
    study, random = a_study(LEVELS, blocks=12, aa=aa), np.random.default_rng(seed)
    blocks = random.normal(0.0, block_sd, study.blocks)
    speeds = [OPERATIONS * math.exp(blocks[one.block] + random.normal(0.0, 0.02)) for one in as_made(aa)]
    records = [changed(record, speed, {}) for record, speed in zip(as_made(aa), speeds, strict=True)]
    return basis_of(study, a_run(study), AnalysisInput.of(records), whole=whole)


@without_estimates
def test_equal_variants_rarely_differ_by_more_than_the_floor() -> None:
    beyond = compared = 0
    for seed in range(30):
        run = basis(seed, block_sd=0.05, whole=True)
        found = find_floor(run)
        assert found is not None and not found.twin
        ratios = [one.effect.ratio for one in run.results if one.role is Role.CANDIDATE and one.effect]
        beyond += sum(abs(math.log(ratio)) > math.log1p(found.difference) for ratio in ratios)
        compared += len(ratios)
    assert compared == 90 and beyond / compared <= 0.05


def test_the_floor_is_of_the_spread_within_blocks() -> None:
    spreads = [found.log_sd for seed in range(15) if (found := find_floor(basis(seed, block_sd=0.3)))]
    assert np.mean(spreads) == pytest.approx(0.02 * math.sqrt(2), rel=0.1)


def test_a_twin_gives_the_floor_where_there_is_one() -> None:
    spreads = [found.log_sd for seed in range(30) if (found := find_floor(basis(seed, 0.1, aa=True)))]
    assert np.mean(spreads) == pytest.approx(0.02 * math.sqrt(2), rel=0.1)
    assert analysed(1, 0.1, 0.02, aa=True).floor.twin  # type: ignore[union-attr]


def test_too_few_blocks_have_no_floor() -> None:
    assert analysed(1, 0.05, 0.02, blocks=5).floor is None


def test_the_interval_of_the_efficiency_holds_as_often_as_promised() -> None:
    # Blocks of variance s, trials of variance e: without blocks a trial has s + e.
    random, blocks, variants, between, within = np.random.default_rng(3), 10, 4, 0.03, 0.02
    true = 1.0 + (between / within) ** 2
    held = 0
    for _ in range(400):
        logs = random.normal(0, between, (blocks, 1)) + random.normal(0, within, (blocks, variants))
        values = [{("here", block): math.exp(log) for block, log in enumerate(row)} for row in logs.T]
        found = variances([BlockValues.of(each) for each in values])
        assert found is not None
        worth = blocking(found)
        assert worth.low < worth.efficiency < worth.high
        held += worth.low <= true <= worth.high
    assert 0.91 <= held / 400 <= 0.99


def test_blocks_that_have_nothing_in_common_are_worth_nothing() -> None:
    found = analysed(2, block_sd=0.0, trial_sd=0.02, blocks=40).floor
    assert found is not None
    assert found.blocking.low < 1.0 < found.blocking.high


def test_a_variant_that_lacks_a_block_is_left_out() -> None:
    values = [{("here", block): 100.0 + block + variant for block in range(6)} for variant in range(3)]
    del values[2]["here", 4]
    told = [BlockValues.of(each) for each in values]
    assert variances(told) == variances(told[:2]) is not None
    assert variances(told[:1]) is None


def test_several_baselines_lower_the_floor() -> None:
    study = a_study(LEVELS, blocks=120).but(baselines=3)
    found = analyse(study, a_run(study), records_of(study, trial_sd=0.02)).floor
    assert found is not None
    assert found.log_sd == pytest.approx(0.02 * math.sqrt(1 + 1 / 3), rel=0.15)


def alike_blocks(random: np.random.Generator, carried: float, blocks: int) -> list[float]:
    logs = random.normal(0.0, 0.02, blocks + 20)
    for block in range(1, len(logs)):
        logs[block] = carried * logs[block - 1] + math.sqrt(1.0 - carried**2) * logs[block]
    found: list[float] = logs[20:].tolist()
    return found


@pytest.mark.parametrize(
    ("carried", "blocks", "least", "most"),
    [(0.0, 12, 0.01, 0.09), (0.0, 60, 0.01, 0.09), (0.3, 12, 0.12, 0.35), (0.5, 24, 0.5, 0.9)],
)
def test_blocks_that_are_alike_are_told_from_independent_ones(
    carried: float, blocks: int, least: float, most: float
) -> None:
    """By a normal error of 1 / sqrt(n) that was told in 7 % of runs of 12 blocks at 0.3."""
    random = np.random.default_rng(7)
    found = [neighbours([alike_blocks(random, carried, blocks)]) for _ in range(200)]
    assert least <= np.mean([one.p < 0.05 for one in found]) <= most
    assert np.mean([one.high >= carried for one in found]) >= 0.85


def test_a_report_tells_how_neighbouring_blocks_correlate() -> None:
    found = analysed(1, block_sd=0.05, trial_sd=0.02)
    assert found.floor is not None and found.floor.neighbours < found.floor.neighbours_high
    assert "nothing shows that they do" in floor_text(found) and "narrow" not in floor_text(found)
    above = found.floor.but(neighbours=0.5, neighbours_p=0.01)
    assert "too narrow, by about 1.7" in floor_text(found.but(floor=above))


def seen_of_ten(smallest_of: Callable[[list[Ratio]], float], runs: int = 150) -> float:
    """How often a difference is found that is as small as a run of ten equal candidates promises."""
    random, found = np.random.default_rng(7), 0
    for _ in range(runs):
        logs = random.normal(0.0, 0.02, (10, 12))
        effects = [one for row in logs if (one := ratio_of("m", row, 0.95)) is not None]
        other = ratio_of("m", random.normal(math.log1p(smallest_of(effects)), 0.02, 12), 0.95)
        assert other is not None and other.low is not None
        found += other.low > 1.0
    return found / runs


def test_the_smallest_difference_of_ten_candidates_is_found_in_every_second_run() -> None:
    assert 0.38 <= seen_of_ten(lambda effects: smallest(effects) or 0.0) <= 0.62
    # Of ten intervals the narrowest is narrow by chance.
    assert seen_of_ten(lambda effects: min(smallest([one]) or 0.0 for one in effects)) < 0.33


def test_equal_comparisons_are_seldom_called_noisier() -> None:
    random, called = np.random.default_rng(7), 0
    for _ in range(300):
        effects = {str(name): ratio_of("m", random.normal(0.0, 0.02, 12), 0.95) for name in range(10)}
        called += bool(noisier(effects))
    assert called / 300 <= 0.06


def test_a_run_without_an_interval_has_no_smallest_difference() -> None:
    assert smallest([None, Ratio(metric="m", pairs=1, ratio=1.1, confidence=0.95)]) is None


@pytest.mark.parametrize("blocks", [6, 12, 24])
def test_a_stall_that_may_be_in_no_block_is_in_none_of_one_run_in_twenty(blocks: int) -> None:
    """Where a candidate alone stalls in one block of ten, 12 blocks hold no stall in 28 % of runs, and their
    interval then lies too high."""
    struck = np.random.default_rng(7).random((20_000, blocks)) < unseen_share(blocks)
    assert np.mean(~struck.any(axis=1)) == pytest.approx(0.05, abs=0.005)
    found = analysed(1, block_sd=0.05, trial_sd=0.02)
    assert "fewer than 22 % of blocks can be in none of these" in floor_text(found)
