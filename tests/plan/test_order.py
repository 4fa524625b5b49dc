"""The order of a run: balanced over every pair of blocks, so that a drift favours no variant."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import t as student

from dbdyno.plan.order import Order
from dbdyno.study.trials import Variant
from tests.fakes import make_run, make_study

DRIFT = math.log(1.02)
"""What each trial's log speed gains on the trial before it: 2 %."""

SEEDS = some.integers(0, 2**63 - 1)
COUNTS = some.integers(1, 12)


def variants(count: int) -> tuple[Variant, ...]:
    return tuple(Variant(name=f"v{number}", levels={}) for number in range(count))


def positions(order: Order, count: int, block: int) -> list[int]:
    """The position of each variant in a block."""
    drawn = order.of_block(variants(count), block)
    return [drawn.index(variant) for variant in variants(count)]


@given(SEEDS, COUNTS, some.integers(0, 500), some.integers(0, 500))
def test_rounds_of_slices_come_in_mirrored_pairs(seed: int, count: int, block: int, pair: int) -> None:
    order, trials = Order(seed=seed), range(count)
    first, second = (order.of_round(trials, block, 2 * pair + half) for half in (0, 1))
    assert sorted(first) == list(trials)
    assert second == first[::-1]


@given(SEEDS, COUNTS, some.integers(0, 500))
def test_every_variant_has_the_same_mean_position_over_a_pair_of_blocks(
    seed: int, count: int, pair: int
) -> None:
    order = Order(seed=seed)
    both = zip(positions(order, count, 2 * pair), positions(order, count, 2 * pair + 1), strict=True)
    assert {first + second for first, second in both} == {count - 1}


@given(SEEDS, some.integers(2, 12), some.integers(1, 5))
def test_of_two_variants_each_comes_first_in_half_of_the_blocks(seed: int, count: int, pairs: int) -> None:
    order = Order(seed=seed)
    blocks = [positions(order, count, block) for block in range(2 * pairs)]
    for one, other in combinations(range(count), 2):
        assert sum(block[one] < block[other] for block in blocks) == pairs


@given(SEEDS, COUNTS, some.integers(0, 500))
def test_a_block_holds_every_variant_once_and_its_order_repeats(seed: int, count: int, block: int) -> None:
    assert sorted(positions(Order(seed=seed), count, block)) == list(range(count))
    assert Order(seed=seed).of_block(variants(count), block) == Order(seed=seed).of_block(
        variants(count), block
    )


@pytest.mark.parametrize(
    ("mirrored", "orders"),
    [
        (True, [[4, 2, 1, 5, 0, 3], [3, 0, 5, 1, 2, 4], [5, 4, 1, 0, 3, 2], [2, 3, 0, 1, 4, 5]]),
        # So drew the runs that know no mirror.
        (False, [[4, 2, 1, 5, 0, 3], [4, 3, 0, 5, 2, 1], [5, 4, 1, 0, 3, 2]]),
    ],
)
def test_the_order_of_a_seed_never_changes(mirrored: bool, orders: list[list[int]]) -> None:
    """Records of an interrupted run are matched with an order drawn anew, perhaps by another Python."""
    order, six = Order(seed=42, mirrored=mirrored), variants(6)
    drawn = [[six.index(variant) for variant in order.of_block(six, block)] for block in range(len(orders))]
    assert drawn == orders


def test_a_run_keeps_the_order_that_it_began_with() -> None:
    run = make_run(make_study()).but(seed=5)
    assert Order.of(run) == Order(seed=5, mirrored=True)
    stored = {name: value for name, value in run.model_dump().items() if name != "mirrored"}
    assert Order.of(type(run).model_validate(stored)) == Order(seed=5, mirrored=False)


def log_ratios(order: Order, runs: int) -> np.ndarray:
    """Runs of 8 blocks of 4 variants that do not differ, each trial 2 % faster than the one before it: the
    log ratios to the baseline, by run, block and candidate."""
    noise = np.random.default_rng(1).normal(0.0, 0.02, (runs, 8, 4))
    drift = [[4 * block + position for position in positions(order, 4, block)] for block in range(8)]
    logs = noise + DRIFT * np.array(drift)
    return logs[:, :, 1:] - logs[:, :, :1]


@pytest.mark.parametrize("seed", [1, 2, 3, 42])
def test_a_drift_of_two_percent_a_trial_leaves_the_mean_log_ratio_unbiased(seed: int) -> None:
    means = log_ratios(Order(seed=seed), runs=2000).mean(axis=(0, 1))
    # Each has a standard error of 0.02 * sqrt(2 / 16,000) = 0.00022.
    assert np.abs(means).max() < 0.001


def test_without_the_mirror_one_order_favours_a_variant_in_every_run_that_shares_it() -> None:
    means = log_ratios(Order(seed=1, mirrored=False), runs=2000).mean(axis=(0, 1))
    assert np.abs(means).max() > 0.02


@pytest.mark.parametrize(("mirrored", "least", "most"), [(True, 0.0, 0.05), (False, 0.10, 1.0)])
def test_a_drift_raises_no_false_alarms_in_mirrored_blocks(mirrored: bool, least: float, most: float) -> None:
    ratios = log_ratios(Order(seed=1, mirrored=mirrored), runs=2000)
    half_widths = student.ppf(0.975, 7) * ratios.std(axis=1, ddof=1) / math.sqrt(8)
    alarms = (np.abs(ratios.mean(axis=1)) > half_widths).mean(axis=0)
    assert least <= alarms.max() <= most
