from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.plan import blocks
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.order import Order
from dbdyno.study import BASELINE, TWIN, Design, Factor, ListedVariant, Study, Workload
from dbdyno.study.designs import trial_count, variants_of
from dbdyno.study.reference import Reference
from dbdyno.study.size import size_of_study
from dbdyno.study.trials import Plan

COMPUTED = [Design.ONE_AT_A_TIME, Design.LADDER, Design.FACTORIAL]
LEVELS = st.one_of(
    st.integers(-9, 9), st.sampled_from(["16M", "a,b", 'say "x"', "x, config.k1=2"]), st.booleans()
)
FACTORS = st.lists(st.lists(LEVELS, min_size=2, max_size=3, unique_by=str), max_size=4).map(
    lambda drawn: tuple(Factor(name=f"config.k{i}", levels=tuple(levels)) for i, levels in enumerate(drawn))
)


def study(factors: tuple[Factor, ...], design: Design = Design.ONE_AT_A_TIME, **rest: object) -> Study:
    fixed = {"title": "t", "engine": Reference(engine="mariadb"), "workload": Workload(name="tpcb")}
    return Study.model_validate({**fixed, "factors": factors, "design": design, **rest})


STUDIES = st.builds(
    lambda factors, design, blocks, aa: study(factors, design, blocks=blocks, aa=aa),
    FACTORS,
    st.sampled_from(COMPUTED),
    st.integers(1, 5),
    st.booleans(),
)
TWO = (Factor(name="config.a", levels=(1, 2, 3)), Factor(name="config.b", levels=("x", "y")))


def make_plan(study: Study, seed: int = 42) -> Plan:
    return blocks.make_plan(study, Order(seed=seed))


def levels_of(plan: Plan) -> list[tuple[Level, ...]]:
    return [tuple(variant.levels.values()) for variant in plan.variants]


@given(STUDIES)
def test_every_block_holds_every_variant_once(study: Study) -> None:
    plan = make_plan(study)
    assert [trial.index for trial in plan.trials] == list(range(len(plan.trials)))
    for block in range(study.blocks):
        trials = [trial for trial in plan.trials if trial.block == block]
        assert [trial.position for trial in trials] == list(range(len(plan.variants)))
        assert sorted(trial.variant.name for trial in trials) == sorted(
            variant.name for variant in plan.variants
        )
    assert len(plan.trials) == size_of_study(study).trials == len(plan.variants) * study.blocks


@given(STUDIES)
def test_names_are_unique_and_the_baseline_comes_first(study: Study) -> None:
    plan = make_plan(study)
    assert len({variant.name for variant in plan.variants}) == len(plan.variants)
    assert plan.variants[0].name == BASELINE
    assert plan.variants[0].levels == study.baseline
    assert all(list(variant.levels) == [factor.name for factor in study.factors] for variant in plan.variants)


@given(STUDIES)
def test_a_further_block_leaves_those_before_it_as_they_were(study: Study) -> None:
    more = make_plan(study.but(blocks=study.blocks + 1))
    assert more.trials[: size_of_study(study).trials] == make_plan(study).trials


@given(STUDIES)
def test_a_twin_stands_in_an_aa_study_only(study: Study) -> None:
    twins = [variant for variant in variants_of(study) if variant.twin]
    assert [(twin.name, twin.levels) for twin in twins] == ([(TWIN, study.baseline)] if study.aa else [])


@given(FACTORS)
def test_a_factorial_is_the_full_product(factors: tuple[Factor, ...]) -> None:
    plan = make_plan(study(factors, Design.FACTORIAL))
    assert levels_of(plan) == list(product(*(factor.levels for factor in factors)))


def test_one_at_a_time_changes_one_factor() -> None:
    assert levels_of(make_plan(study(TWO))) == [(1, "x"), (2, "x"), (3, "x"), (1, "y")]


def test_a_ladder_keeps_what_it_reached_in_the_order_written() -> None:
    assert levels_of(make_plan(study(TWO, Design.LADDER))) == [(1, "x"), (2, "x"), (3, "x"), (3, "y")]
    assert levels_of(make_plan(study(TWO[::-1], Design.LADDER))) == [("x", 1), ("y", 1), ("y", 2), ("y", 3)]


def test_a_list_is_taken_as_it_is() -> None:
    listed = (
        ListedVariant(name=BASELINE, levels={"config.a": 1, "config.b": "x"}),
        ListedVariant(name="both", levels={"config.a": 3, "config.b": "y"}),
    )
    plan = make_plan(study(TWO, Design.LIST, variants=listed, aa=True))
    assert [(variant.name, variant.levels) for variant in plan.variants] == [
        (BASELINE, {"config.a": 1, "config.b": "x"}),
        ("both", {"config.a": 3, "config.b": "y"}),
        (TWIN, {"config.a": 1, "config.b": "x"}),
    ]


def test_names_tell_levels_apart_that_python_holds_equal() -> None:
    plan = make_plan(study((Factor(name="config.a", levels=(1, True, "on, config.b=2")),)))
    assert [variant.name for variant in plan.variants] == [
        "baseline",
        "config.a=true",
        'config.a="on, config.b=2"',
    ]


def test_blocks_differ_in_their_order() -> None:
    plan = make_plan(study(TWO, Design.FACTORIAL, blocks=30))
    orders = {tuple(t.variant.name for t in plan.trials if t.block == block) for block in range(30)}
    assert len(orders) > 20, "a pair of blocks has one draw, forwards and backwards"


def test_every_variant_comes_first_about_as_often() -> None:
    """Chi-squared with 5 degrees of freedom: 20.5 is passed with probability 0.001, and the seed is fixed."""
    plan = make_plan(study(TWO, Design.FACTORIAL, blocks=1200), seed=7)
    first = [trial.variant.name for trial in plan.trials if trial.position == 0]
    counts = [first.count(variant.name) for variant in plan.variants]
    assert sum((count - 200) ** 2 / 200 for count in counts) < 20.5


def test_the_expected_duration_counts_everything() -> None:
    some = study(TWO, blocks=3)
    timed = some.but(workload=Workload(name="tpcb", warmup_s=2, duration_s=10))
    assert expected_duration_s(trial_count(timed), timed, overhead_s=1.5) == 4 * 3 * 13.5


def test_too_many_trials_are_refused_with_the_arithmetic() -> None:
    factors = tuple(Factor(name=f"config.k{i}", levels=tuple(range(10))) for i in range(40))
    with pytest.raises(
        UserError, match=r"10 x .* \(40 factors\) levels = over 1,000,000,000 variants, x 6 blocks"
    ):
        make_plan(study(factors, Design.FACTORIAL))


def test_further_baselines_have_a_trial_of_their_own_in_each_block() -> None:
    plan = make_plan(study(TWO).but(baselines=3))
    names = [variant.name for variant in plan.variants if variant.shares]
    assert names == ["baseline-2", "baseline-3"]
    assert all(variant.levels == plan.variants[0].levels for variant in plan.variants if variant.shares)
    assert len(plan.trials) == len(plan.variants) * study(TWO).blocks
