"""The A/A check: honest instruments pass it as often as promised, and crooked ones do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse.twin import aa_check, pooled


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
