from __future__ import annotations

import io
import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from dbdyno.analyse.analysis import AnalysisInput, basis_of
from dbdyno.analyse.model import Frontier, FrontierCurve, FrontierReading, Reach
from dbdyno.findings import analyse, frontier
from dbdyno.findings.frontier import RECALLS, queries_per_s_at
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import Figure
from dbdyno.report.renderers import html
from dbdyno.report.words import answer
from dbdyno.report.words.numbers import differs
from dbdyno.study import Design, Goal
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.frontier_cases import EFFORTS, RECALL, found, scored
from tests.report.forms import as_markdown, print_sections


@pytest.fixture
def measured() -> Frontier:
    made = found()
    assert made is not None
    return made


def test_the_table_says_what_was_reached_and_what_not(measured: Frontier) -> None:
    console = Console(file=io.StringIO(), width=110, color_system=None)
    print_sections(frontier.sections(measured), console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "Queries at a recall of 0.9: " in said
    assert "config.cache=16M" in said
    assert "not reached" in said
    assert "most 0.97" in said
    assert "×2.0" in said
    assert all(len(line) <= 110 for line in said.splitlines())


def test_markdown_holds_it_as_a_table(measured: Frontier) -> None:
    study = a_study()
    analysis = analyse(study, a_run(study), records_of(study)).model_copy(update={"frontier": measured})
    page = as_markdown(analysis)
    assert "## Recall against speed" in page
    assert "| queries per second | recall 0.8 |" in page
    assert page.count("not reached (most 0.97") == 2


def test_a_curve_that_differs_is_not_called_nothing(measured: Frontier) -> None:
    study = a_study(goal=Goal(margin=0.5))
    analysis = analyse(study, a_run(study), records_of(study))
    assert answer.headline(analysis).startswith("Nothing helped")
    differing = analysis.model_copy(update={"frontier": measured})
    assert "curves differ at the same recall" in answer.headline(differing)


def test_the_rows_are_as_wide_as_the_heads(measured: Frontier) -> None:
    table = frontier.readings(measured)
    assert {len(row) for row in table.rows} == {len(table.columns)}


def figure_of(found: Frontier) -> dict[str, Any]:
    [section] = frontier.sections(found)
    [figure] = [one for one in section.body if isinstance(one, Figure)]
    spec = html.drawn(figure)
    assert isinstance(spec, dict)
    return spec


def test_the_figure_shows_every_point(measured: Frontier) -> None:
    shown = json.dumps(figure_of(measured))
    assert shown.count('"told_recall"') >= 8
    assert "config.cache=4G" in shown


def test_where_nothing_reaches_the_recall_it_is_said(measured: Frontier) -> None:
    curves = tuple(
        curve.model_copy(
            update={
                "readings": tuple(each.model_copy(update={"queries_per_s": None}) for each in curve.readings)
            }
        )
        for curve in measured.curves
    )
    assert "No curve reaches" in frontier.title(measured.model_copy(update={"curves": curves}))


def test_curves_that_differ_at_the_end_of_long_names_keep_it(measured: Frontier) -> None:
    long = "a-long-level-" * 6
    named = [
        curve.model_copy(update={"levels": {"config.index": f"{long}{number}"}})
        for number, curve in enumerate(measured.curves)
    ]
    changed = measured.model_copy(update={"curves": tuple(named)})
    legend = figure_of(changed)["layer"][0]["encoding"]["color"]["legend"]
    seen = {"max": max, "min": min, "floor": math.floor, "width": 900}
    assert (legend["labelLimit"], eval(legend["columns"]["expr"], seen)) == (0, 1)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_sections(frontier.sections(changed), console)
    assert isinstance(console.file, io.StringIO)
    assert "…" not in console.file.getvalue()


def reading(curve: FrontierCurve, recall: float) -> FrontierReading:
    return next(each for each in curve.readings if each.recall == recall)


def test_speed_is_read_between_the_points_and_compared_with_the_first_curve() -> None:
    frontier = found()
    assert frontier is not None
    assert frontier.factor == "workload.ef"
    slow, fast = frontier.curves
    assert slow.levels == {"config.cache": "16M"}
    assert [point.effort for point in slow.points] == EFFORTS
    at = reading(slow, 0.9)
    assert at.queries_per_s is not None
    assert at.queries_per_s.low is not None and at.queries_per_s.high is not None
    # Between ef 20 (0.85, 2000/s) and ef 40 (0.92, 1000/s), interpolated in logs.
    expected = 2000 * 0.5 ** ((0.9 - 0.85) / 0.07)
    assert at.queries_per_s.ratio == pytest.approx(expected, rel=0.03)
    assert at.queries_per_s.low < expected < at.queries_per_s.high
    assert (at.blocks, at.effect) == (4, None)
    effect = reading(fast, 0.9).effect
    assert effect is not None
    assert effect.ratio == pytest.approx(2.0, rel=0.001)
    assert effect.pairs == 4


def test_nothing_is_extrapolated() -> None:
    frontier = found()
    assert frontier is not None
    for curve in frontier.curves:
        assert [each.reach for each in curve.readings] == [
            Reach.REACHED, Reach.REACHED, Reach.REACHED, Reach.BELOW
        ]  # fmt: skip
        assert reading(curve, 0.99).queries_per_s is None


def test_a_recall_that_some_blocks_miss_is_not_reached() -> None:
    def without_the_best(record: Record) -> Record:
        best = record.levels["workload.ef"] == 80 and record.block == 1
        return record.but(outcome=Outcome.FAILED) if best else record

    frontier = found(change=without_the_best)
    assert frontier is not None
    missed = reading(frontier.curves[0], 0.95)
    assert (missed.reach, missed.blocks, missed.queries_per_s) == (Reach.IN_PART, 3, None)
    assert reading(frontier.curves[0], 0.9).blocks == 4


def test_broken_trials_are_no_points() -> None:
    frontier = found(change=lambda record: record.but(outcome=Outcome.BROKEN))
    assert frontier is None


def test_other_studies_have_none() -> None:
    assert found(factors={"config.cache": ["16M", "4G"]}) is None
    study = a_study({"workload.ef": [10, 20]})
    assert analyse(study, a_run(study), records_of(study)).frontier is None


def test_one_factor_at_a_time_gives_the_baselines_curve() -> None:
    frontier = found(design=Design.ONE_AT_A_TIME)
    assert frontier is not None
    assert [curve.levels for curve in frontier.curves] == [{"config.cache": "16M"}]


points = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(1.0, 1e6)),
    min_size=2,
    max_size=8,
    unique_by=lambda point: point[0],
)


@example([(0.0, 1e6), (1e-308, 1.0)], 5e-309)
@given(points, st.floats(0.0, 1.0))
def test_the_line_stays_within_its_points(of: list[tuple[float, float]], recall: float) -> None:
    speed, reach = queries_per_s_at(recall, of)
    recalls, speeds = [point[0] for point in of], [point[1] for point in of]
    if speed is None:
        assert recall < min(recalls) if reach is Reach.ABOVE else recall > max(recalls)
    else:
        assert min(recalls) <= recall <= max(recalls)
        assert min(speeds) * (1 - 1e-9) <= speed <= max(speeds) * (1 + 1e-9)


@given(points)
def test_speed_never_rises_with_recall(of: list[tuple[float, float]]) -> None:
    low, high = min(point[0] for point in of), max(point[0] for point in of)
    speeds = [queries_per_s_at(low + (high - low) * step / 20, of)[0] for step in range(1, 20)]
    known = [speed for speed in speeds if speed is not None]
    assert all(right <= left * (1 + 1e-9) for left, right in pairwise(known))


def test_points_that_fall_are_met_exactly() -> None:
    of = [(0.5, 4000.0), (0.8, 2000.0), (0.95, 500.0)]
    assert queries_per_s_at(0.8, of)[0] == pytest.approx(2000)
    assert queries_per_s_at(0.95, of)[0] == pytest.approx(500)
    assert RECALLS == (0.8, 0.9, 0.95, 0.99)


def test_the_curves_of_a_frontier_hold_together_at_all_recalls() -> None:
    """Four recalls of three curves are twelve claims, not three."""
    caches = ["16M", "1G", "2G", "4G"]
    study = a_study({"workload.ef": EFFORTS, "config.cache": caches}, design=Design.FACTORIAL, blocks=6)
    random, blank, wrong = np.random.default_rng(5), records_of(study), 0
    for _ in range(60):
        records = [
            scored(one, RECALL[ef] + 0.03, 4e4 / ef * math.exp(random.normal(0.0, 0.02)))
            for one in blank
            for ef in [int(one.levels.get("workload.ef", 10))]
        ]
        measured = frontier.find(basis_of(study, a_run(study), AnalysisInput.of(records), whole=False))
        assert measured is not None
        effects = [one.effect for curve in measured.curves for one in curve.readings]
        wrong += any(one is not None and differs(one) for one in effects)
        assert {one.confidence for one in effects if one} == {0.95 ** (1 / 12)}
    assert wrong <= 9
