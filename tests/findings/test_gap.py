"""The gap explained, in each form: from all variants, from a fraction, and with a factor left out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.model import Gap, LeftOut, Ratio
from dbdyno.findings import analyse, gap
from dbdyno.findings.factors import Block, Cells, Setting
from dbdyno.findings.gap import explain_gap
from dbdyno.findings.gap_shares import explain, explain_fraction
from dbdyno.records.record import Outcome
from dbdyno.report.renderers import html
from dbdyno.report.words.numbers import differs
from dbdyno.study import Design, Factor, Study, designs
from dbdyno.study.designs import variants_of
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.analyse.intervals_cases import within_binomial_error
from tests.analyse.noises import PLAIN
from tests.report.cases import fraction_of_seven, two_factors
from tests.report.forms import as_markdown, as_page, print_sections


def gap_of(case: str) -> Gap:
    found = (fraction_of_seven() if case == "fraction" else two_factors()).gap
    assert found is not None
    if case != "left out":
        return found
    lost = LeftOut(factor="memory.thp", level="always", cause="the server forbids it to itself\x1b[31m")
    return found.model_copy(update={"left_out": (lost,)})


@pytest.mark.parametrize("case", ["whole", "fraction", "left out"])
def test_as_printed(case: str, snapshot: SnapshotAssertion) -> None:
    console = Console(width=110, highlight=False)
    with console.capture() as shown:
        print_sections(gap.sections(gap_of(case)), console)
    assert "\n".join(line.rstrip() for line in shown.get().split("\n")) == snapshot


@pytest.mark.parametrize("case", ["whole", "fraction"])
def test_every_bar_begins_at_one_and_has_its_interval(case: str) -> None:
    found = gap_of(case)
    bars = gap.figure(found).found[0]
    assert isinstance(bars, list)
    *parts, total = bars
    assert math.prod(one["ratio"] for one in parts) == pytest.approx(total["ratio"])
    assert all(one["low"] <= one["ratio"] <= one["high"] for one in (*parts, total))
    assert (parts[-1]["step"] == gap.RESIDUAL) == (case == "fraction")
    spec = html.drawn(gap.figure(found))
    assert isinstance(spec, dict)
    rows = spec["layer"][0]["data"]["values"] if "data" in spec["layer"][0] else spec["data"]["values"]
    assert {one["one"] for one in rows} == {1.0}


def test_the_page_and_markdown_hold_the_product_and_what_cannot_be_told_apart() -> None:
    analysis = fraction_of_seven()
    page, text = as_page(analysis), as_markdown(analysis)
    for told in ("C×E + F×G", gap.RESIDUAL):
        assert told in page and told in text
    assert "## The gap explained" in text


def test_json_names_the_interactions_of_three_that_a_share_holds() -> None:
    shares = json.loads(gap_of("fraction").model_dump_json())["shares"]
    named = {share["factor"]: share["holds_besides"] for share in shares}
    assert named["config.setting_c"] == [["config.setting_e", "config.setting_f", "workload.clients"]]
    assert named["config.setting_a"] == []


@pytest.mark.parametrize(
    ("gains", "said", "unsaid"),
    [
        ((1.0, 1.0), "The data cannot say whether there is a gap", "largest part"),
        ((1.5, 1.5), "cannot say which part is the largest", "Its largest part"),
        ((3.0, 1.1), "Its largest part is config.a", "cannot say"),
    ],
)
def test_a_largest_part_is_named_only_where_it_is_told(
    gains: tuple[float, float], said: str, unsaid: str
) -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": ["off", "on"]}, design=Design.FACTORIAL, blocks=8)
    names = ("config.a=on", "config.b=on")
    ratios = dict(zip(names, gains, strict=True)) | {", ".join(names): gains[0] * gains[1]}
    found = analyse(study, a_run(study), records_of(study, ratios)).gap
    assert found is not None
    assert said in gap.title(found) and unsaid not in gap.title(found)


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


COUNTS = sorted(designs.GENERATORS)
Effects = Mapping[tuple[int, ...], float]
"""Log effects by the factors that make them: what all of them at their second level add together."""


def factors_of(count: int) -> tuple[Factor, ...]:
    return tuple(Factor(name=f"config.f{index}", levels=("slow", "fast")) for index in range(count))


def cells_of(count: int, effects: Effects, noise: tuple[float, ...] = (0.0, 0.0)) -> Cells:
    """Responses whose log is a sum of halves of effects with their variants' signs; `noise` is by block."""
    cells: dict[Setting, dict[Block, float]] = {}
    for signs in designs.points(count):
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
    for one, group in zip(gap.confounded, designs.together(count), strict=True):
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
        for signs in designs.points(count)
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
