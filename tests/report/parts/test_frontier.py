from __future__ import annotations

import io
import json
import math

import pytest
from rich.console import Console

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Frontier
from dbdyno.report.figures import charts
from dbdyno.report.parts import frontier
from dbdyno.report.words import answer
from dbdyno.study import Goal
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.frontier_cases import found
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


def test_the_figure_shows_every_point(measured: Frontier) -> None:
    spec = charts.frontier(measured)
    shown = json.dumps(spec)
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
    legend = charts.frontier(changed)["layer"][0]["encoding"]["color"]["legend"]
    seen = {"max": max, "min": min, "floor": math.floor, "width": 900}
    assert (legend["labelLimit"], eval(legend["columns"]["expr"], seen)) == (0, 1)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_sections(frontier.sections(changed), console)
    assert isinstance(console.file, io.StringIO)
    assert "…" not in console.file.getvalue()
