"""The floor of a run: what equal variants show by chance, and what blocks are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse import Analysis, analyse
from dbdyno.analyse.columns import Values
from dbdyno.analyse.floor import blocking, neighbours, variances
from dbdyno.report.words.noise import floor_text
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.noises import correlated

LEVELS = {"config.page_cache": ["2k", "4k", "8k", "64k"]}


def analysed(seed: int, block_sd: float, trial_sd: float, blocks: int = 12, aa: bool = False) -> Analysis:
    study = a_study(LEVELS, blocks=blocks, aa=aa)
    records = records_of(study, seed=seed, block_sd=block_sd, trial_sd=trial_sd)
    return analyse(study, a_run(study), records)


def test_equal_variants_rarely_differ_by_more_than_the_floor() -> None:
    beyond = compared = 0
    for seed in range(30):
        found = analysed(seed, block_sd=0.05, trial_sd=0.02)
        assert found.floor is not None and not found.floor.twin
        ratios = [variant.effect.ratio for variant in found.candidates if variant.effect]
        beyond += sum(abs(math.log(ratio)) > math.log1p(found.floor.difference) for ratio in ratios)
        compared += len(ratios)
    assert beyond / compared <= 0.05


def test_the_floor_is_of_the_spread_within_blocks() -> None:
    spreads = [
        found.log_sd for seed in range(15) if (found := analysed(seed, block_sd=0.3, trial_sd=0.02).floor)
    ]
    assert np.mean(spreads) == pytest.approx(0.02 * math.sqrt(2), rel=0.1)


def test_a_twin_gives_the_floor_where_there_is_one() -> None:
    spreads = [found.log_sd for seed in range(30) if (found := analysed(seed, 0.1, 0.02, aa=True).floor)]
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
        found = variances([Values.of(each) for each in values])
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
    told = [Values.of(each) for each in values]
    assert variances(told) == variances(told[:2]) is not None
    assert variances(told[:1]) is None


def test_several_baselines_lower_the_floor() -> None:
    study = a_study(LEVELS, blocks=120).but(baselines=3)
    found = analyse(study, a_run(study), records_of(study, trial_sd=0.02)).floor
    assert found is not None
    assert found.log_sd == pytest.approx(0.02 * math.sqrt(1 + 1 / 3), rel=0.15)


@pytest.mark.parametrize(("alike", "least", "most"), [(False, 0.0, 0.06), (True, 0.7, 1.0)])
def test_blocks_that_are_alike_are_told_from_independent_ones(alike: bool, least: float, most: float) -> None:
    random, blocks, found = np.random.default_rng(7), 60, []
    for _ in range(200):
        logs = correlated(random, blocks, 2) if alike else random.normal(0.0, 0.02, (blocks, 2))
        found.append(neighbours([(logs[:, 1] - logs[:, 0]).tolist()]))
    assert np.mean(found) == pytest.approx(0.5 if alike else 0.0, abs=0.04)
    told = np.mean(np.array(found) - 1.96 / math.sqrt(blocks) > 0.0)
    assert least <= told <= most


def test_a_report_tells_how_neighbouring_blocks_correlate() -> None:
    found = analysed(1, block_sd=0.05, trial_sd=0.02)
    assert found.floor is not None and found.floor.neighbours_low < 0.0 < found.floor.neighbours_high
    assert "Neighbouring blocks correlate by " in floor_text(found) and "narrow" not in floor_text(found)
    above = found.floor.but(neighbours_low=0.1)
    assert "too narrow" in floor_text(found.but(floor=above))
