"""The order of a run: balanced over every pair of blocks, so that a drift favours no variant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from scipy.stats import t as student

from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.kinds.registry import ask_for
from dbdyno.plan import blocks
from dbdyno.plan.blocks import Order, expected_duration_s, soak_expected_s
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import SoakRun, of_kind
from dbdyno.study import BASELINE, TWIN, Design, Factor, ListedVariant, Study, Workload
from dbdyno.study.designs import size_of_study, trial_count, variants_of
from dbdyno.study.nouns import Reference
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Plan, Trial, Variant, rung_of
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.fakes import make_run, make_study

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


SOAK = Soak(clients=(1, 2, 3), duration_s=10.0, disturb=())
STUDY = a_study(blocks=3)
RUN = of_kind(SoakRun, a_run(STUDY), soak=SOAK)
OTHER = "config.page_cache=64k"


def next_trials(records: Sequence[Record]) -> Sequence[Trial]:
    return ask_for(RUN)(STUDY, RUN, records)


def test_each_rung_holds_every_variant_with_the_phases_of_its_clients() -> None:
    records = records_of(STUDY)
    for rung in range(3):
        trials = next_trials([record for record in records if record.block < rung])
        assert {trial.variant.name for trial in trials} == {"baseline", OTHER}
        assert {trial.block for trial in trials} == {rung}
        assert all(trial.phases == rung_of(SOAK, STUDY, rung) for trial in trials)
    assert next_trials(records) == ()


def test_a_soak_that_was_cut_short_goes_on_with_what_is_not_whole() -> None:
    records = records_of(STUDY)
    first, second = (record for record in records if record.block == 0)
    assert [trial.index for trial in next_trials([first])] == [second.trial]
    cut = second.but(whole=False)
    assert [trial.index for trial in next_trials([first, cut])] == [second.trial]


def test_a_variant_that_fell_climbs_no_further_and_the_others_do() -> None:
    records = records_of(STUDY, changes={OTHER: ended(Outcome.BROKEN, "it died")})
    lowest = [record for record in records if record.block == 0]
    assert {trial.variant.name for trial in next_trials(lowest)} == {"baseline"}
    fallen = [record.but(outcome=Outcome.FAILED) for record in lowest]
    assert next_trials(fallen) == ()


def test_the_time_is_that_of_all_rungs_and_variants() -> None:
    each_s = sum(phase.takes_s for phase in rung_of(SOAK, STUDY, 0))
    assert soak_expected_s(SOAK, STUDY, 2.0) == 2 * 3 * (each_s + 2.0)
