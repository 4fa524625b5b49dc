"""Two runs compared: parts multiply out, hardware put in is found, and what cannot be said is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse import Analysis
from dbdyno.analyse.compare import (
    NOT_IN_TURN,
    RUNS_LEAST,
    TOO_FEW_RUNS,
    Comparison,
    Conclusion,
    VariantGap,
    compare,
    judged,
    units,
)
from dbdyno.analyse.intervals import welch
from dbdyno.findings import compare as compare_report
from dbdyno.report.renderers import html, markdown
from tests.analyse.compare_cases import STUDY, a_host, analysed
from tests.analyse.factory import OPEN_LOOP, counted
from tests.report.shown import printed

RELATED = {"memory.transparent_huge_pages": ("memory.thp",)}


def compared(left: Analysis, right: Analysis, **given: Any) -> Comparison:
    """One run a side."""
    return compare([left], [right], **given)


def of(found: Comparison, name: str) -> VariantGap:
    return next(gap for gap in found.gaps if gap.left == name)


def product(gap: VariantGap) -> float:
    assert gap.hardware is not None and gap.residual is not None
    return (gap.factors.ratio if gap.factors else 1.0) * gap.hardware * gap.residual.ratio


def test_a_gap_that_is_hardware_is_none() -> None:
    found = compared(analysed(a_host(4)), analysed(a_host(8, 3300.0), speed=2.2, seed=2))
    gap = of(found, "baseline")
    assert gap.hardware == pytest.approx(2.2)
    assert gap.total.ratio == pytest.approx(2.2, rel=0.05)
    assert gap.residual is not None and gap.residual.ratio == pytest.approx(1.0, rel=0.03)
    assert product(gap) == pytest.approx(gap.total.ratio)


def in_open_loop(side: Analysis) -> Analysis:
    trials = [trial.but(record=counted(trial.record, open_loop=OPEN_LOOP)) for trial in side.trials]
    return side.but(trials=tuple(trials))


def test_no_hardware_is_taken_out_of_a_throughput_that_the_load_set() -> None:
    sides = [in_open_loop(wide(analysed(a_host(cores), seed=cores))) for cores in (4, 8)]
    found = compared(sides[0], sides[1])
    gap = of(found, "baseline")
    assert gap.hardware == 1.0 and gap.per_unit == (None, None)
    assert gap.conclusion is Conclusion.NO_GAP_OF_RUNS
    text = compare_report.sentence(gap, found)
    assert "cores" not in text and compare_report.per_unit_rows(found) == []


def test_two_days_of_one_host_are_no_gap_that_nothing_explains() -> None:
    for seed in range(2, 8):
        day = 1.0 + 0.05 * (-1) ** seed
        found = compared(analysed(a_host()), analysed(a_host(), speed=day, seed=seed))
        assert {gap.conclusion for gap in found.gaps} <= {Conclusion.NO_GAP_OF_RUNS, Conclusion.OPEN}
        assert TOO_FEW_RUNS in compare_report.sentence(found.gaps[0], found)


def test_the_sentence_is_said_when_the_residual_lies_within_the_margin() -> None:
    sides = [
        side.but(method=side.method.but(margin=0.1))
        for side in (analysed(a_host(4)), analysed(a_host(8), speed=2.0, seed=2))
    ]
    found = compared(sides[0], sides[1])
    assert {gap.conclusion for gap in found.gaps} == {Conclusion.NO_GAP_OF_RUNS}
    assert compare_report.sentence(found.gaps[0], found).startswith("There is no gap between these runs.")


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_hosts_that_differ_are_seldom_said_to_have_no_gap(runs: int) -> None:
    """By 3 %, where days vary by 2 %, a trial by 0.5 %, and the margin is 2 %."""
    random = np.random.default_rng(runs)
    said = [_said_of(random, runs) for _ in range(400)]
    assert said.count(Conclusion.NO_GAP) <= 8
    assert (said.count(Conclusion.NO_GAP_OF_RUNS) > 20) == (runs < 3)


def _said_of(random: np.random.Generator, runs: int) -> Conclusion:
    left, right = (
        [list(random.normal(speed + random.normal(0.0, 0.02), 0.005, 8)) for _ in range(runs)]
        for speed in (0.0, 0.03)
    )
    by_run = runs >= RUNS_LEAST
    residual = welch("throughput", units(right, by_run), units(left, by_run), 0.95)
    return judged(residual, 0.02, runs, alternating=True)[0]


def wide(side: Analysis) -> Analysis:
    """With a margin that the factory's spread can meet."""
    return side.but(method=side.method.but(margin=0.1))


def test_a_gap_of_an_eighth_is_an_eighth_fewer_cores() -> None:
    found = compared(wide(analysed(a_host(8))), wide(analysed(a_host(7), speed=0.875, seed=2)))
    text = compare_report.sentence(found.gaps[0], found)
    assert text.startswith("There is no gap between these runs.")
    assert "That is 12.5 % fewer cores." in text


def test_the_same_slowness_on_the_same_cores_is_not_put_down_to_cores() -> None:
    found = compared(wide(analysed(a_host(8))), wide(analysed(a_host(8), speed=0.8, seed=2)))
    text = compare_report.sentence(found.gaps[0], found)
    assert found.gaps[0].conclusion is Conclusion.OPEN
    assert "no gap" not in text and "fewer cores" not in text


def test_a_lower_clock_is_told_as_such() -> None:
    sides = wide(analysed(a_host(8), gigahertz=3.0)), wide(analysed(a_host(8), 0.9, 2, gigahertz=2.7))
    found = compared(*sides)
    assert "That is 10 % less GHz." in compare_report.sentence(found.gaps[0], found)


def test_speed_stands_per_core_and_gigahertz_beside_the_raw_one() -> None:
    found = compared(analysed(a_host(4)), analysed(a_host(8, 3300.0), speed=2.2, seed=2))
    gap = of(found, "baseline")
    left, right = gap.per_unit
    assert left == pytest.approx(gap.left_mean / (4 * 3.0))
    assert right == pytest.approx(gap.right_mean / (8 * 3.3))
    (row, *_) = compare_report.per_unit_rows(found)
    assert row[2] == "4 x 3.000*" and row[4] == "8 x 3.300*"
    assert "per core and GHz" in compare_report.per_unit_heads(found)[1]


def test_without_a_frequency_nothing_stands_per_core_and_gigahertz() -> None:
    found = compared(analysed({"name": "x"}), analysed(a_host(), seed=2))
    assert found.gaps[0].per_unit[0] is None
    assert compare_report.per_unit_rows(found) == []


def test_the_page_and_markdown_say_what_the_terminal_says() -> None:
    found = compared(analysed(a_host(4)), analysed(a_host(8), speed=1.2, seed=2))
    report = compare_report.document(found)
    page, text = html.render(report), markdown.render(report)
    for gap in found.gaps:
        said = "fewer than 3 runs a side cannot tell the hosts from their days"
        assert said in compare_report.sentence(gap, found) and said in page and said in text
    assert 'data-figure="gap-0"' in page and "per core and GHz" in page and "per core and GHz" in text
    assert "| cpu.usable_cores | 4 | 8 |" in text


def test_what_hardware_does_not_explain_may_be_the_day() -> None:
    found = compared(analysed(a_host(4)), analysed(a_host(8), speed=1.2, seed=2))
    gap = of(found, "baseline")
    assert gap.conclusion is Conclusion.OPEN
    assert gap.residual is not None and gap.residual.ratio == pytest.approx(0.6, rel=0.05)
    assert gap.why_open == TOO_FEW_RUNS and TOO_FEW_RUNS in compare_report.sentence(gap, found)


def test_with_one_trial_a_side_nothing_is_said() -> None:
    found = compared(analysed(a_host(), blocks=1), analysed(a_host(), seed=2, blocks=1))
    assert {gap.conclusion for gap in found.gaps} == {Conclusion.OPEN}
    text = compare_report.sentence(found.gaps[0], found)
    assert "The data cannot say" in text and "two measured trials" in text


def test_without_a_frequency_nothing_is_said() -> None:
    found = compared(analysed({"name": "x"}), analysed(a_host(), seed=2))
    assert found.gaps[0].hardware is None and found.gaps[0].conclusion is Conclusion.OPEN


def test_cores_beyond_the_clients_count_for_nothing() -> None:
    clients = STUDY.workload.clients
    found = compared(analysed(a_host(clients)), analysed(a_host(clients * 8), seed=2))
    assert of(found, "baseline").hardware == pytest.approx(1.0)


def test_a_counted_frequency_is_used_before_a_named_one() -> None:
    sides = analysed(a_host(mhz=1000.0), gigahertz=2.0), analysed(a_host(mhz=1000.0), 1.5, 2, gigahertz=3.0)
    gap = of(compared(*sides), "baseline")
    assert all(side.measured for side in gap.hardware_sides)
    assert gap.hardware == pytest.approx(1.5) and product(gap) == pytest.approx(gap.total.ratio)


def test_from_a_slow_setup_to_a_fast_one_on_another_host() -> None:
    sides = analysed(a_host(4)), analysed(a_host(8), speed=2.0, seed=2)
    (gap,) = compared(*sides, ends=("baseline", "config.page_cache=64k")).gaps
    assert gap.factors is not None and gap.factors.ratio == pytest.approx(5.0, rel=0.03)
    assert gap.total.ratio == pytest.approx(10.0, rel=0.05)
    assert product(gap) == pytest.approx(gap.total.ratio)


def test_a_difference_is_told_with_what_the_study_knows_of_it() -> None:
    found = compared(analysed(a_host(thp="always")), analysed(a_host(thp="never"), seed=2), related=RELATED)
    (difference,) = found.differences
    assert difference.name == "memory.transparent_huge_pages"
    assert {(one.side, one.level) for one in difference.known} == {("left", "always"), ("right", "always")}
    assert difference.known[0].effect.ratio == pytest.approx(1.3, rel=0.03)
    assert "memory.thp=always ×1.3" in printed(compare_report.document(found), width=160)


def days(
    speeds: Sequence[float], begins: Sequence[int], seed: int, host: dict[str, Any] | None = None
) -> list[Analysis]:
    """Runs of one side, each as fast as its day allows, begun in this order."""
    sides = [
        analysed(host or a_host(), speed=speed, seed=seed + begin)
        for speed, begin in zip(speeds, begins, strict=True)
    ]
    return [
        side.but(run=side.run.but(created_unix_s=float(begin)))
        for side, begin in zip(sides, begins, strict=True)
    ]


def test_three_runs_a_side_in_turn_tell_a_gap() -> None:
    left = days((1.0, 1.02, 0.99), (0, 2, 4), seed=1)
    right = days((1.3, 1.28, 1.31), (1, 3, 5), seed=10)
    found = compare(left, right)
    gap = of(found, "baseline")
    assert gap.conclusion is Conclusion.GAP and gap.runs == (3, 3)
    assert gap.residual is not None and gap.residual.pairs == 3
    text = compare_report.sentence(gap, found)
    assert text.startswith("There is a gap.") and "which nothing here explains" in text
    assert compare_report.next_step(found) == ""
    assert product(gap) == pytest.approx(gap.total.ratio)
    assert "runs, each by its mean" in compare_report.note(found)
    assert "Same hardware speed. It is" in text


def test_runs_one_side_after_the_other_tell_none() -> None:
    left = days((1.0, 1.02, 0.99), (0, 1, 2), seed=1)
    right = days((1.3, 1.28, 1.31), (3, 4, 5), seed=10)
    found = compare(left, right)
    assert {gap.why_open for gap in found.gaps} == {NOT_IN_TURN}
    assert "another run of each side, in turn" in compare_report.next_step(found)


def test_two_runs_a_side_are_told_which_command_settles_it() -> None:
    found = compare(days((1.0, 1.02), (0, 2), seed=1), days((1.3, 1.28), (1, 3), seed=10))
    assert {gap.conclusion for gap in found.gaps} == {Conclusion.OPEN}
    step = compare_report.next_step(found)
    assert "1 more run on the left and 1 on the right, in turn" in step
    assert (
        "dyno run studies/example.toml" in step and "dyno compare run-1,run-3,RUN run-11,run-13,RUN" in step
    )
    assert compare_report.next_step(found, " --right-store o.sqlite") == f"{step} --right-store o.sqlite"
    report = compare_report.document(found)
    assert step in markdown.render(report).replace("\\", "")
    assert "What would settle it" in html.render(report)


def test_more_cores_explain_the_runs_of_a_larger_host() -> None:
    left = days((1.0, 1.02, 0.99), (0, 2, 4), seed=1)
    right = days((2.0, 2.03, 1.98), (1, 3, 5), seed=10, host=a_host(8))
    sides = [[wide(one) for one in side] for side in (left, right)]
    gap = of(compare(sides[0], sides[1]), "baseline")
    assert gap.conclusion is Conclusion.NO_GAP and gap.hardware == pytest.approx(2.0)


def drifting(random: np.random.Generator, noise: str, runs: int) -> np.ndarray:
    """The log speed of one host at each run."""
    if noise == "days":
        return random.normal(0.0, 0.05, runs)
    if noise == "walk":
        return np.cumsum(random.normal(0.0, 0.03, runs))
    if noise == "drift":
        return 0.02 * np.arange(runs) + random.normal(0.0, 0.01, runs)
    return 0.1 * random.integers(0, 2, runs) + random.normal(0.0, 0.01, runs)


@pytest.mark.parametrize("noise", ["days", "walk", "drift", "two states"])
@pytest.mark.parametrize("runs", [3, 5])
def test_one_host_on_different_days_shows_a_gap_in_few_of_many_comparisons(noise: str, runs: int) -> None:
    """2000 comparisons of a host with itself, runs in turn: at most 5 of 100 tell a gap."""
    random = np.random.default_rng(11)
    called = 0
    for _ in range(2000):
        log_speeds = drifting(random, noise, 2 * runs)
        residual = welch("throughput", list(log_speeds[1::2]), list(log_speeds[::2]), 0.95)
        called += judged(residual, 0.02, runs, True)[0] is Conclusion.GAP
    assert called / 2000 <= 0.05


logs = st.lists(st.floats(-3, 3), min_size=2, max_size=12)


@given(logs, logs, st.floats(-5, 5))
def test_welch_moves_with_the_data_and_turns_over(
    over: list[float], under: list[float], shift: float
) -> None:
    ratio, moved = (
        welch("throughput", over, under, 0.95),
        welch("throughput", [v + shift for v in over], under, 0.95),
    )
    turned = welch("throughput", under, over, 0.95)
    assert math.log(moved.ratio) == pytest.approx(math.log(ratio.ratio) + shift, abs=1e-9)
    assert ratio.low is not None and turned.high is not None
    assert math.log(ratio.low) == pytest.approx(-math.log(turned.high), abs=1e-9)


def test_welch_covers_what_it_promises() -> None:
    """2000 pairs of runs with unequal spreads: the interval holds the truth in about 95 of 100."""
    random = np.random.default_rng(7)
    held = 0
    for _ in range(2000):
        ratio = welch("throughput", list(random.normal(0.3, 0.2, 4)), list(random.normal(0, 0.05, 8)), 0.95)
        assert ratio.low is not None and ratio.high is not None
        held += ratio.low <= math.exp(0.3) <= ratio.high
    assert 0.93 <= held / 2000 <= 0.97
