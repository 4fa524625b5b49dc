"""The interval of a ratio where each image of the data favours a variant in its own way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.effects import variant_result
from dbdyno.analyse.images import IMAGES_LEAST
from dbdyno.analyse.model import Ratio, VariantResult
from dbdyno.study import Goal, Interval
from tests.analyse.noises import Values, false_alarms_of_images, method_of, trials_of

SEED = 20
BLOCKS = 24


def compared(logs: Values, images: int | None, interval: Interval = Interval.STUDENT) -> VariantResult:
    """A candidate beside its baseline, where pairs of blocks took so many images in turn."""
    goal = Goal(margin=0.001, interval=interval)
    baseline, candidate = trials_of(logs, 0.0 * logs, images)
    return variant_result(candidate, baseline, goal, method_of(goal, 1, interval), ())


def effect_of(logs: Values, images: int | None, interval: Interval = Interval.STUDENT) -> Ratio:
    effect = compared(logs, images, interval).effect
    assert effect is not None
    return effect


def drawn(images: int, luck_sd: float) -> Values:
    random = np.random.default_rng(SEED)
    luck = random.normal(0.0, luck_sd, images)[np.arange(BLOCKS) // 2 % images]
    logs = np.zeros((BLOCKS, 2))
    logs[:, 1] = luck + random.normal(0.0, 0.01, BLOCKS)
    return logs


@pytest.mark.parametrize("images", [4, 6, 8])
def test_the_interval_is_over_the_means_of_images_that_differ(images: int) -> None:
    logs = drawn(images, 0.1)
    effect = effect_of(logs, images)
    assert effect.images == images and effect.pairs == BLOCKS
    number = np.arange(BLOCKS) // 2 % images
    means = np.array([logs[number == image, 1].mean() for image in range(images)])
    # Operations of simulated trials are whole numbers.
    assert math.log(effect.ratio) == pytest.approx(means.mean(), abs=1e-4)
    from scipy import stats

    low, high = stats.t.interval(0.95, images - 1, means.mean(), stats.sem(means))
    assert effect.low is not None and effect.high is not None
    assert (math.log(effect.low), math.log(effect.high)) == pytest.approx((low, high), abs=1e-3)


@pytest.mark.parametrize("images", [1, 2, IMAGES_LEAST - 1])
def test_too_few_images_leave_the_interval_over_blocks(images: int) -> None:
    logs = drawn(images, 0.1)
    assert effect_of(logs, images) == effect_of(logs, None)


def test_images_that_do_not_differ_leave_the_interval_over_blocks() -> None:
    logs = drawn(6, 0.0)
    logs[:, 1] = np.tile((0.01, -0.01), BLOCKS // 2)
    assert effect_of(logs, 6).images is None


def test_an_interval_of_all_looks_holds_that_over_images() -> None:
    logs = drawn(6, 0.1)
    both, by_block = effect_of(logs, 6, Interval.ANYTIME), effect_of(logs, None, Interval.ANYTIME)
    by_image = effect_of(logs, 6)
    assert both.images == 6 and by_block.images is None
    for one in (by_block, by_image):
        assert both.low is not None and one.low is not None and both.low <= one.low
        assert both.high is not None and one.high is not None and both.high >= one.high


def test_signed_ranks_stay_over_blocks() -> None:
    assert effect_of(drawn(6, 0.1), 6, Interval.SIGNED_RANK).images is None


def test_more_blocks_of_images_that_differ_are_not_promised_to_settle_it() -> None:
    result = compared(drawn(6, 0.1), 6)
    assert result.blocks_more is None and result.blocks_more_even is None


@pytest.mark.parametrize(("images", "least", "most"), [(2, 0.3, 0.6), (6, 0.02, 0.1), (8, 0.02, 0.1)])
def test_equal_variants_are_seldom_told_apart_where_images_favour_them(
    images: int, least: float, most: float
) -> None:
    """With two images nothing can be done, and the report says so."""
    share = false_alarms_of_images(np.random.default_rng(SEED), images, blocks=24, luck=1.0, runs=600)
    assert least <= share <= most
