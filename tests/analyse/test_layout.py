"""Placebos: what they are in a run, and which builds are told from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.floor import could_be_layout, spread_of
from dbdyno.analyse.intervals import ratio_of, share_interval
from dbdyno.analyse.model import Method, Reason, Role, VariantResult, Verdict
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.findings import analyse
from dbdyno.records.record import Outcome
from tests.analyse.builds import FASTEST, LEVELS, builds
from tests.analyse.factory import a_run, ended, records_of

CACHE = "config.page_cache=64k"


def analysed(ratios: dict[str, float] | None = None, **changes: object) -> Analysis:
    study, records = builds(ratios, **changes)  # type: ignore[arg-type]
    return analyse(study, a_run(study), records)


def result(analysis: Analysis, name: str) -> VariantResult:
    return next(one for one in analysis.variants if one.name == name)


def test_a_placebo_is_compared_and_never_judged() -> None:
    analysis = analysed()
    placebos = [one for one in analysis.variants if one.role is Role.PLACEBO]
    assert [one.name for one in placebos] == ["build.layout=1", "build.layout=2"]
    for one in placebos:
        assert one.verdict is None and one.effect is not None and one.effect.confidence == 0.95
    named = {name for names in analysis.answer.model_dump().values() for name in names or ()}
    assert not named & {one.name for one in placebos}
    assert analysis.method.comparisons == 2, "the inert level is no comparison either"


def test_the_placebo_that_went_furthest_sets_the_spread() -> None:
    spread = analysed().method.layout
    assert spread is not None and (spread.placebos, spread.builds) == (2, 1), "the inert one is not held"
    assert spread.difference == pytest.approx(0.02, abs=0.002)
    slow = analysed({"build.layout=2": 0.95}).method.layout
    assert slow is not None and slow.difference == pytest.approx(1 / 0.95 - 1, abs=0.003)


@pytest.mark.parametrize(
    ("ratio", "verdict", "reason"),
    [
        (1.015, Verdict.INCONCLUSIVE, Reason.LAYOUT),
        (0.985, Verdict.INCONCLUSIVE, Reason.LAYOUT),
        (1.06, Verdict.INCONCLUSIVE, Reason.LAYOUT),
        (1.12, Verdict.FASTER, None),
        (0.88, Verdict.SLOWER, None),
        (1.0, Verdict.NO_EFFECT, None),
    ],
)
def test_no_build_is_faster_or_slower_within_the_spread(
    ratio: float, verdict: Verdict, reason: Reason | None
) -> None:
    found = result(analysed({FASTEST: ratio}), FASTEST)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.blocks_more is None, "the layout is the same in every block"


def test_a_variant_that_is_no_build_is_not_held_against_placebos() -> None:
    assert result(analysed({CACHE: 1.015}), CACHE).verdict is Verdict.FASTER


def test_without_placebos_a_build_is_judged_by_its_interval() -> None:
    analysis = analysed({FASTEST: 1.015}, levels={**LEVELS, "build.layout": ["none"]})
    assert analysis.method.layout is None
    assert result(analysis, FASTEST).verdict is Verdict.FASTER


def test_a_placebo_of_too_few_blocks_or_with_an_ending_sets_no_spread() -> None:
    study, records = builds({"build.layout=2": 0.95})
    few = [one for one in records if one.variant != "build.layout=2" or one.block < 2]
    failed = [
        ended(Outcome.FAILED, "it died", "")(one)
        if one.variant == "build.layout=2" and one.block < 3
        else one
        for one in records
    ]
    for left in (few, failed):
        spread = analyse(study, a_run(study), left).method.layout
        assert spread is not None and spread.placebos == 1
        assert spread.difference == pytest.approx(0.02, abs=0.002)


def test_a_build_whose_whole_interval_lies_within_the_spread_is_decided() -> None:
    inside = result(analysed({FASTEST: 1.015}), FASTEST)
    assert (inside.reason, inside.decided) == (Reason.LAYOUT, True)
    spread = analysed().method.layout
    assert spread is not None
    across = result(analysed({FASTEST: spread.high}), FASTEST)
    assert (across.reason, across.decided) == (Reason.LAYOUT, False)


def test_builds_that_luck_of_layout_may_part_are_level() -> None:
    levels = {**LEVELS, "build.optimisation": ["-O2", "-O3", "-Os"]}
    near = analysed({FASTEST: 1.26, "build.optimisation=-Os": 1.16}, levels=levels).answer
    assert near.best is None and len(near.level) == 2
    far = analysed({FASTEST: 1.40, "build.optimisation=-Os": 1.16}, levels=levels).answer
    assert far.best == FASTEST


def test_a_placebo_that_did_not_run_says_nothing_of_luck() -> None:
    study, _ = builds()
    refused = ended(Outcome.BLOCKED, "it is no placebo", "")
    records = records_of(study, changes={"build.layout=1": refused, "build.layout=2": refused})
    analysis = analyse(study, a_run(study), records)
    assert analysis.method.layout is None
    assert result(analysis, "build.layout=1").verdict is Verdict.BLOCKED
    assert {one.variant for one in analysis.museum} >= {"build.layout=1", "build.layout=2"}


def test_a_level_with_another_change_beside_its_layout_is_no_placebo() -> None:
    study, _ = builds()
    listed = study.but(design="factorial")
    roles = {one.name: one.role for one in analyse(listed, a_run(listed), []).variants}
    assert roles["build.layout=1"] is Role.PLACEBO
    assert roles["build.optimisation=-O3, build.layout=1"] is Role.CANDIDATE


RUNS = 600


@pytest.mark.parametrize("placebos", [1, 3, 5])
@pytest.mark.parametrize("builds", [1, 4])
def test_builds_without_an_effect_seldom_lie_beyond_the_placebos_limits(placebos: int, builds: int) -> None:
    """Whatever the baseline's own luck, which all ratios share. Layouts vary by 2 %, a block by 1 %."""
    random = np.random.default_rng(placebos)
    method = analysed().method
    told = sum(_any_told(random, placebos, builds, method) for _ in range(RUNS))
    assert share_interval(told, RUNS)[0] <= 0.05, f"{told} of {RUNS}"


def _any_told(random: np.random.Generator, placebos: int, builds: int, method: Method) -> bool:
    """Whether any build of a run of twelve blocks is told from luck of layout."""
    blocks = 12
    luck = random.normal(0.0, 0.02, 1 + placebos + builds)
    logs = luck + random.normal(0.0, 0.01, (blocks, len(luck)))
    logs -= logs[:, :1].copy()
    spread = spread_of(list(logs[:, 1 : 1 + placebos].mean(axis=0)), builds, 0.95)
    with_spread = method.but(layout=spread)
    each = confidence_each(0.95, builds)
    ratios = (ratio_of("throughput", list(column), each) for column in logs[:, 1 + placebos :].T)
    return any(
        not could_be_layout(["build.flags"], ratio, with_spread) for ratio in ratios if ratio is not None
    )


def test_more_placebos_narrow_the_limits() -> None:
    """At one spread: the factor of a prediction limit for one more of n (Hahn and Meeker, table A.13)."""
    factors = {1: 15.56, 3: 3.56, 5: 2.78}
    for placebos, factor in factors.items():
        layouts = np.arange(placebos + 1.0)
        logs = list((layouts - layouts[0])[1:] / layouts.std(ddof=1) * 0.01)
        found = spread_of(logs, 1, 0.95)
        assert math.log(found.high / found.low) == pytest.approx(2 * factor * 0.01, rel=0.002)
