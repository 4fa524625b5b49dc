"""The gap from a fraction of the variants: what was put in is found, what cannot be told apart is said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analyse import analyse, explain_gap
from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.factorial import Block, Cells, Setting
from dbdyno.analyse.fractional import explain_fraction
from dbdyno.analyse.model import Gap, Ratio
from dbdyno.records.record import Outcome
from dbdyno.report.words.numbers import differs
from dbdyno.study import Design, Factor, Study, fraction
from dbdyno.study.designs import variants_of
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.analyse.noises import PLAIN

COUNTS = sorted(fraction.GENERATORS)
Effects = Mapping[tuple[int, ...], float]
"""Log effects by the factors that make them: what all of them at their second level add together."""


def factors_of(count: int) -> tuple[Factor, ...]:
    return tuple(Factor(name=f"config.f{index}", levels=("slow", "fast")) for index in range(count))


def cells_of(count: int, effects: Effects, noise: tuple[float, ...] = (0.0, 0.0)) -> Cells:
    """Responses whose log is a sum of halves of effects with their variants' signs; `noise` is by block."""
    cells: dict[Setting, dict[Block, float]] = {}
    for signs in fraction.points(count):
        log = sum(effect / 2 * math.prod(signs[i] for i in which) for which, effect in effects.items())
        setting = tuple("fast" if sign > 0 else "slow" for sign in signs)
        cells[setting] = {("host", block): math.exp(log + each) for block, each in enumerate(noise)}
    return cells


def log(ratio: Ratio | None) -> float:
    assert ratio is not None
    return math.log(ratio.ratio)


def explained(count: int, effects: Effects, noise: tuple[float, ...] = (0.0, 0.0)) -> Gap:
    return explain_fraction(factors_of(count), cells_of(count, effects, noise), PLAIN)


sizes = st.floats(-2, 2)


@settings(max_examples=40)
@given(count=st.sampled_from(COUNTS), data=st.data())
def test_shares_are_found_whatever_pairs_interact(count: int, data: st.DataObject) -> None:
    mains: Effects = {(i,): data.draw(sizes) for i in range(count)}
    pairs: Effects = {pair: data.draw(sizes) for pair in combinations(range(count), 2)}
    gap = explained(count, {**mains, **pairs}, (0.3, -0.7))
    assert [log(share.share) for share in gap.shares] == pytest.approx(list(mains.values()), abs=1e-9)
    assert log(gap.residual) == pytest.approx(0.0, abs=1e-9)
    assert log(gap.total) == pytest.approx(sum(mains.values()), abs=1e-9)


@settings(max_examples=40)
@given(count=st.sampled_from(COUNTS), data=st.data())
def test_interactions_told_together_come_to_their_sum(count: int, data: st.DataObject) -> None:
    pairs: Effects = {pair: data.draw(sizes) for pair in combinations(range(count), 2)}
    gap = explained(count, pairs)
    for one, group in zip(gap.confounded, fraction.together(count), strict=True):
        # A difference of differences is twice the effect as textbooks count it.
        true = 2 * sum(s * pairs[which] for which, s in zip(group.interactions, group.signs, strict=True))
        assert log(one.effect) == pytest.approx(true, abs=1e-8)
        assert len(one.interactions) == len(one.signs)


@settings(max_examples=40)
@given(count=st.sampled_from(COUNTS), data=st.data())
def test_the_product_multiplies_out_whatever_was_measured(count: int, data: st.DataObject) -> None:
    cells: Cells = {
        tuple("fast" if sign > 0 else "slow" for sign in signs): {
            ("host", block): math.exp(data.draw(sizes)) for block in range(3)
        }
        for signs in fraction.points(count)
    }
    gap = explain_fraction(factors_of(count), cells, PLAIN)
    parts = sum(log(share.share) for share in gap.shares) + log(gap.residual)
    assert parts == pytest.approx(log(gap.total), abs=1e-9)


@pytest.mark.parametrize("count", COUNTS)
def test_an_interaction_of_three_is_in_the_shares_that_name_it_or_in_the_residual(count: int) -> None:
    for three in combinations(range(count), 3):
        gap = explained(count, {three: 1.0})
        names = tuple(f"config.f{index}" for index in three)
        holding = [share for share in gap.shares if names in share.holds_besides]
        assert sum(abs(log(share.share)) for share in gap.shares) == pytest.approx(len(holding), abs=1e-9)
        assert log(gap.residual) == pytest.approx(1.0 - sum(log(s.share) for s in gap.shares), abs=1e-9)


def a_fractional(blocks: int = 5) -> Study:
    gains = {f"config.f{index}": ["slow", "fast"] for index in range(7)}
    return a_study(gains, design=Design.FRACTIONAL, blocks=blocks)


def test_a_fraction_is_planned_measured_and_explained() -> None:
    study = a_fractional()
    variants = variants_of(study)
    assert len(variants) == 33 and variants[0].levels == study.baseline
    ratios = {
        variant.name: math.prod(
            2.0 if name == "config.f3" else 1.1 for name, level in variant.levels.items() if level == "fast"
        )
        for variant in variants
    }
    gap = analyse(study, a_run(study), records_of(study, ratios, trial_sd=0.002)).gap
    assert gap is not None and gap.variants_measured == 33 and gap.blocks == 5
    shares = {share.factor: math.exp(log(share.share)) for share in gap.shares}
    assert shares["config.f3"] == pytest.approx(2.0, rel=0.01)
    assert shares["config.f0"] == pytest.approx(1.1, rel=0.01)
    assert log(gap.residual) == pytest.approx(0.0, abs=0.02)


def test_a_fraction_with_a_level_that_is_never_measured_shares_nothing_out_and_says_why() -> None:
    study = a_fractional(blocks=2)
    variants = variants_of(study)
    refused = [variant.name for variant in variants if variant.levels["config.f2"] == "fast"]
    stopped = ended(Outcome.BLOCKED, "the server refuses it")
    records = records_of(study, changes=dict.fromkeys(refused, stopped))
    gap = explain_gap(study, a_run(study), records, variants[0], variants[-1])
    assert gap.total is None and len(gap.missing) == len(refused)
    assert [(one.factor, one.cause) for one in gap.left_out] == [("config.f2", "the server refuses it")]


@pytest.mark.parametrize(("images", "luck"), [(1, 0.0), (6, 1.0)])
def test_what_a_fraction_says_of_equal_variants_holds_together(images: int, luck: float) -> None:
    """Total and shares of a gap that is none, in runs of 24 blocks whose pairs take images in turn."""
    random, count, blocks, runs, wrong = np.random.default_rng(8), COUNTS[0], 24, 300, 0
    places = np.arange(blocks) // 2 % images
    shared = {("host", block): (-1, int(place)) for block, place in enumerate(places)}
    estimator = Estimator(PLAIN.method, shared)
    for _ in range(runs):
        cells = {setting: dict(each) for setting, each in cells_of(count, {}, (0.0,) * blocks).items()}
        for each in cells.values():
            logs = random.normal(0.0, 0.02 * luck, images)[places] + random.normal(0.0, 0.02, blocks)
            each.update({block: math.exp(one) for block, one in zip(each, logs, strict=True)})
        gap = explain_fraction(factors_of(count), cells, estimator)
        wrong += any(differs(one) for one in (gap.total, *(share.share for share in gap.shares)) if one)
    assert wrong / runs <= 0.09
