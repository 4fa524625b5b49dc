"""The matrix in words: the worst cell is told like the best, and every form has every figure."""

from __future__ import annotations

import pytest

from dbdyno.analyse.matrix import matrix
from dbdyno.report import html, markdown
from dbdyno.report.parts import matrix as words
from dbdyno.report.parts.matrix import TRAINED
from tests.analyse.factory import blocked
from tests.analyse.matrix_cases import BY_SELECTS, BY_WRITES, measured, runs
from tests.report.browser import Outline
from tests.report.cases import HOSTILE
from tests.report.forms import on_terminal
from tests.report.parts.matrix_cases import found


def test_the_worst_cell_is_told_like_the_best() -> None:
    best, worst = words.headline(found())
    assert best.startswith(f"Best: {BY_SELECTS} on point_select with 8 clients, 1.") and "faster" in best
    assert worst.startswith(f"Worst: {BY_SELECTS} on read_write with 8 clients, 0.") and "slower" in worst
    assert words.headline(found().model_copy(update={"best": None}))[0].startswith("No variant has a speed")


def test_each_workload_has_a_table_with_a_column_for_each_number_of_clients() -> None:
    writes, selects = words.tables(found())
    assert (writes.title, selects.title) == ("Measured on read_write", "Measured on point_select")
    assert writes.heads == ("variant", TRAINED, "8 clients")
    assert selects.heads == ("variant", TRAINED, "8 clients", "64 clients")
    assert [row[:2] for row in selects.rows] == [(BY_WRITES, "read_write"), (BY_SELECTS, "point_select")]


def test_two_runs_of_one_load_are_told_apart_by_their_names() -> None:
    again = measured("read_write", 8, {BY_WRITES: 1.3})
    other = again.model_copy(update={"run": again.run.model_copy(update={"run": "again"})})
    [table] = words.tables(matrix([again, other]))
    assert table.heads[2:] == ("8 clients, read_write-8", "8 clients, again")


def test_without_trainings_no_column_tells_of_them() -> None:
    [table] = words.tables(matrix([measured("tpcb", 1, {}, factors={"config.a": [1, 2]})]))
    assert table.heads == ("variant", "1 client")


@pytest.mark.parametrize("width", [60, 100])
def test_every_form_has_every_figure(width: int) -> None:
    changes = {BY_WRITES: blocked("build.pgo", "read_write", "off")}
    made = matrix([*runs(), measured("tpcc", 1, {BY_SELECTS: 1.1}, changes)])
    forms = (
        on_terminal(lambda console: words.render(made, console), width=width),
        Outline(html.matrix(made)).shown,
        markdown.matrix(made),
    )
    for text in forms:
        plain = " ".join(text.replace("\\", "").split())
        assert "Worst:" in plain and "Measured on tpcc" in plain and "blocked" in plain
        for table in words.tables(made):
            for row in table.rows:
                assert all(line in plain for cell in row[2:] for line in cell.split("\n"))


def test_hostile_names_make_no_element() -> None:
    made = found()
    rows = tuple(row.model_copy(update={"variant": HOSTILE}) for row in made.rows)
    assert Outline(html.matrix(made.model_copy(update={"rows": rows}))).count("script") == 1
