"""What the benchmark of searches knows of its surfaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benches.search import Asked, Found, Hills, keep, kept, tell_progress
from tests.searches import a_search, drawn


@pytest.mark.parametrize("factors", [4, 12, 18])
@pytest.mark.parametrize("seed", range(1, 6))
def test_whoever_climbs_from_anywhere_ends_at_the_peak_and_nobody_above_it(seed: int, factors: int) -> None:
    hills = Hills(seed, factors)
    study, _ = a_search(*hills.factors)
    levels = drawn(study, np.random.default_rng(seed))
    for factor in (*hills.factors, *hills.factors):
        levels = max(({**levels, factor.name: level} for level in factor.levels), key=hills)
    assert hills(levels) == pytest.approx(hills.peak())
    assert hills.peak() > 0.0


def found(seed: int, gain: float) -> Found:
    return Found(
        seed=seed, peak=1.0, tried=gain, confirmed=gain, search=gain, random=0.0, random_in_search_time=0.0,
        climbing=0.0, best_single=0.0, holds=True, changes=3, optimism=1.0, nothing=None,
    )  # fmt: skip


def test_two_states_are_compared_by_the_seeds_that_both_have(capsys: pytest.CaptureFixture[str]) -> None:
    before = [found(1, 0.5), found(2, 0.8)]
    tell_progress([found(2, 0.82), found(3, 0.1), found(1, 0.52)], before)
    assert "search against before, 2 seeds: +2.00% ± 0.00%" in capsys.readouterr().out
    tell_progress([found(3, 0.1)], before)
    assert capsys.readouterr().out == ""


def test_what_was_kept_is_held_against_the_same_question_only(tmp_path: Path) -> None:
    asked, path = Asked(budget_s=3600.0, flat=False), tmp_path / "kept.json"
    keep(path, asked, [found(1, 0.5)])
    assert kept(path, asked) == [found(1, 0.5)]
    with pytest.raises(SystemExit, match="holds searches of"):
        kept(path, Asked(budget_s=600.0, flat=False))
