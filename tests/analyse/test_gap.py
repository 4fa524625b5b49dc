"""The gap: shares multiply to the total, do not depend on the order, and find what was put in."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse import analyse, explain_gap
from dbdyno.analyse.factorial import Cells
from dbdyno.analyse.gap import explain
from dbdyno.analyse.model import Ratio
from dbdyno.records.record import Outcome
from dbdyno.report.words.numbers import differs
from dbdyno.study import Design, Factor
from dbdyno.study.designs import variants_of
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.analyse.intervals_cases import within_binomial_error
from tests.analyse.noises import PLAIN

GAINS = {"config.cache": 5.0, "memory.pages": 2.0, "config.threads": 0.9}
STUDY = a_study({name: ["slow", "fast"] for name in GAINS}, design=Design.FACTORIAL, blocks=5)


def truth(together: float = 1.0) -> dict[str, float]:
    """The true ratio of every variant; `together` is what cache and pages gain beyond their product."""
    ratios = {}
    for variant in variants_of(STUDY):
        moved = [name for name, level in variant.levels.items() if level == "fast"]
        both = {"config.cache", "memory.pages"} <= set(moved)
        ratios[variant.name] = math.prod(GAINS[name] for name in moved) * (together if both else 1.0)
    return ratios


def value(ratio: Ratio | None) -> float:
    assert ratio is not None
    return ratio.ratio


def test_shares_find_the_gains_that_were_put_in() -> None:
    gap = analyse(STUDY, a_run(STUDY), records_of(STUDY, truth(), trial_sd=0.002)).gap
    assert gap is not None
    assert {share.factor: value(share.share) for share in gap.shares} == pytest.approx(GAINS, rel=0.01)
    assert value(gap.total) == pytest.approx(math.prod(GAINS.values()), rel=0.01)
    assert value(gap.interactions) == pytest.approx(1.0, rel=0.02)


def test_an_interaction_is_shown_apart_and_shared_evenly() -> None:
    gap = analyse(STUDY, a_run(STUDY), records_of(STUDY, truth(together=4.0), trial_sd=0.002)).gap
    assert gap is not None
    shares = {share.factor: share for share in gap.shares}
    assert value(gap.interactions) == pytest.approx(4.0, rel=0.02)
    assert value(shares["config.cache"].alone) == pytest.approx(5.0, rel=0.01)
    assert value(shares["config.cache"].last) == pytest.approx(20.0, rel=0.01)
    assert value(shares["config.cache"].share) == pytest.approx(10.0, rel=0.01)
    assert value(shares["memory.pages"].share) == pytest.approx(4.0, rel=0.01)


@given(
    logs=st.lists(st.floats(-3, 3), min_size=16, max_size=16),
    noise=st.lists(st.floats(-0.5, 0.5), min_size=48, max_size=48),
)
def test_shares_and_steps_multiply_to_the_total_exactly(logs: list[float], noise: list[float]) -> None:
    factors = tuple(Factor(name=f"config.f{index}", levels=(0, 1)) for index in range(4))
    settings = list(product((0, 1), repeat=4))
    cells: Cells = {
        setting: {("host", block): math.exp(logs[i] + noise[3 * i + block]) for block in range(3)}
        for i, setting in enumerate(settings)
    }
    gap = explain(factors, cells, settings[0], settings[-1], PLAIN)
    total = math.log(value(gap.total))
    for name in ("share", "step"):
        parts = sum(math.log(value(getattr(share, name))) for share in gap.shares)
        assert parts == pytest.approx(total, abs=1e-9)
    alone = sum(math.log(value(share.alone)) for share in gap.shares)
    assert alone + math.log(value(gap.interactions)) == pytest.approx(total, abs=1e-9)


@given(order=st.permutations(range(3)))
def test_shares_do_not_depend_on_the_order_of_the_factors(order: list[int]) -> None:
    random = np.random.default_rng(7)
    logs = {setting: random.normal(size=3) for setting in product((0, 1), repeat=3)}

    def shares(arranged: list[int]) -> dict[str, float]:
        factors = tuple(Factor(name=f"config.f{index}", levels=(0, 1)) for index in arranged)
        cells: Cells = {
            tuple(setting[index] for index in arranged): {("host", b): math.exp(log[b]) for b in range(3)}
            for setting, log in logs.items()
        }
        gap = explain(factors, cells, (0, 0, 0), (1, 1, 1), PLAIN)
        return {share.factor: value(share.share) for share in gap.shares}

    assert shares(order) == pytest.approx(shares([0, 1, 2]))


def test_a_setup_between_that_was_not_measured_is_named_and_nothing_is_shared_out() -> None:
    variants = variants_of(STUDY)
    lost = variants[3]
    records = [record for record in records_of(STUDY, truth()) if record.variant != lost.name]
    gap = explain_gap(STUDY, a_run(STUDY), records, variants[0], variants[-1])
    assert gap.missing == (tuple(lost.levels.values()),)
    assert (gap.total, gap.shares) == (None, ())


def test_a_gap_between_two_inner_variants_holds_only_the_factors_that_differ() -> None:
    variants = variants_of(STUDY)
    slow, fast = variants[0], variants[4]
    gap = explain_gap(STUDY, a_run(STUDY), records_of(STUDY, truth()), slow, fast)
    assert [share.factor for share in gap.shares] == ["config.cache"]
    assert gap.interactions is None


def test_a_factor_whose_fast_level_is_blocked_is_left_out_with_its_cause() -> None:
    stopped = ended(Outcome.BLOCKED, "the server forbids it to itself")
    blocked = [v.name for v in variants_of(STUDY) if v.levels["memory.pages"] == "fast"]
    records = records_of(STUDY, truth(), dict.fromkeys(blocked, stopped), trial_sd=0.002)
    gap = analyse(STUDY, a_run(STUDY), records).gap
    assert gap is not None
    assert [share.factor for share in gap.shares] == ["config.cache", "config.threads"]
    assert value(gap.total) == pytest.approx(5.0 * 0.9, rel=0.01)
    assert [(one.factor, one.level) for one in gap.left_out] == [("memory.pages", "fast")]
    assert gap.left_out[0].cause == "the server forbids it to itself"


def test_what_the_headline_says_of_a_gap_holds_together() -> None:
    """The total and all shares of a factorial without any effect; the others hold each by itself."""
    random, runs, blocks = np.random.default_rng(9), 300, 12
    factors = tuple(Factor(name=f"config.{letter}", levels=(0, 1)) for letter in "ab")
    wrong = alone = 0
    for _ in range(runs):
        cells: Cells = {
            setting: {("here", block): math.exp(random.normal(0.0, 0.02)) for block in range(blocks)}
            for setting in [(0, 0), (0, 1), (1, 0), (1, 1)]
        }
        gap = explain(factors, cells, (0, 0), (1, 1), PLAIN)
        ratios = [gap.total, *(share.share for share in gap.shares)]
        assert [one.confidence for one in ratios if one] == pytest.approx([0.95 ** (1 / 3)] * 3)
        wrong += any(differs(one) for one in ratios if one is not None)
        first = gap.shares[0].alone
        assert first is not None and first.confidence == 0.95
        alone += differs(first)
    assert wrong <= 0.05 * runs + 3.0 * math.sqrt(0.05 * 0.95 * runs)
    assert within_binomial_error(alone, runs, 0.05)
