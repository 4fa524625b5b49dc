"""The matrix in words: the worst cell is told like the best, and every form has every figure."""

from __future__ import annotations

import pytest

from dbdyno.findings import matrix as words
from dbdyno.findings.matrix import COLUMNS_MOST, LUCK, PLACEBOS, Matrix, matrix
from dbdyno.frozen import Level
from dbdyno.report import document
from dbdyno.report.document import Notes, Table, TableCell
from dbdyno.report.renderers import html
from tests.analyse.factory import blocked
from tests.analyse.matrix_cases import BY_SELECTS, BY_WRITES, measured, runs
from tests.findings.matrix_cases import found
from tests.report.browser import Outline
from tests.report.cases import HOSTILE
from tests.report.shown import in_every_form

LAYOUTS: dict[str, list[Level]] = {"build.lto": ["off", "full"], "build.layout": ["none", 1, 2]}


def tables(made: Matrix) -> list[tuple[str, Table]]:
    """The tables with the titles of their sections."""
    sections = words.document(made).sections
    return [(one.title, part) for one in sections for part in one.body if isinstance(part, Table)]


def heads(table: Table) -> tuple[str, ...]:
    return tuple(column.head for column in table.columns)


def test_the_worst_cell_is_told_like_the_best() -> None:
    best, worst = map(document.plain, words.document(found()).answer)
    assert best.startswith(f"Best: {BY_SELECTS} on point_select with 8 clients, 1.") and "faster" in best
    assert worst.startswith(f"Worst: {BY_SELECTS} on read_write with 8 clients, 0.") and "slower" in worst
    nothing = words.document(found().model_copy(update={"best": None})).answer[0]
    assert document.plain(nothing).startswith("No variant has a speed")


def test_each_workload_has_a_table_with_a_column_for_each_number_of_clients() -> None:
    (of_writes, writes), (of_selects, selects) = tables(found())
    assert (of_writes, of_selects) == ("Measured on read_write", "Measured on point_select")
    assert heads(writes) == ("variant", "8 clients")
    assert heads(selects) == ("variant", "8 clients", "64 clients")
    assert [row[0] for row in selects.rows] == [
        TableCell(BY_WRITES, ("trained on read_write",)),
        TableCell(BY_SELECTS, ("trained on point_select",)),
    ]


def test_loads_that_were_driven_once_stand_beside_each_other() -> None:
    analyses = [measured("read_write", 8, {BY_WRITES: 1.3}), measured("point_select", 8, {BY_SELECTS: 1.5})]
    [(title, table)] = tables(matrix(analyses))
    assert title == "Measured on each load, with 8 clients"
    assert heads(table) == ("variant", "read_write", "point_select")
    [by_writes, by_selects] = [[document.cell(one).words for one in row[1:]] for row in table.rows]
    assert document.plain(by_writes[0]).startswith("▲ 1.") and "▲" in document.plain(by_selects[1])
    [(title, table)] = tables(matrix([analyses[0], measured("tpcc", 4, {})]))
    assert title == "Measured on each load"
    assert heads(table) == ("variant", "read_write, 8 clients", "tpcc, 4 clients")


def test_more_loads_than_a_terminal_has_room_for_have_a_table_each() -> None:
    found = tables(matrix([measured(f"load{number}", 1, {}) for number in range(COLUMNS_MOST + 1)]))
    assert [title for title, _ in found] == [
        f"Measured on load{number}" for number in range(COLUMNS_MOST + 1)
    ]


def test_placebos_tell_of_luck_in_the_last_row_and_are_no_extreme() -> None:
    ratios = {"build.layout=1": 0.7, "build.layout=2": 1.4, "build.lto=full": 1.01}
    made = matrix([measured(load, 8, ratios, factors=LAYOUTS) for load in ("read_write", "tpcc")])
    [(_, table)] = tables(made)
    assert [document.plain(document.cell(row[0]).words) for row in table.rows] == ["build.lto=full", LUCK]
    limits = document.cell(table.rows[-1][1])
    assert limits.below == ("2 placebos",) and " – " in document.plain(limits.words)
    assert made.best is not None and made.worst is not None
    assert made.best.variant == made.worst.variant == "build.lto=full"
    assert words.document(made).title == "1 variant under 2 loads"
    again = matrix([measured("read_write", 8, ratios, factors=LAYOUTS) for _ in range(2)])
    assert words.document(again).title == "1 variant under 1 load", "two runs of one load"


def test_what_was_counted_has_a_table_of_its_own() -> None:
    counts = {
        "baseline": (100.0, 100.0),
        "build.lto=full": (90.0, 90.0),
        "build.layout=1": (99.0, 101.0),
        "build.layout=2": (104.0, 104.0),
    }
    made = matrix(
        [
            measured("read_write", 8, {}, factors=LAYOUTS, counts=counts),
            measured("point_select", 8, {}, factors=LAYOUTS),
            measured("tpcc", 8, {}, factors=LAYOUTS, counts={**counts, "build.lto=full": (99.0, 101.0)}),
        ]
    )
    [(_, timed), (title, table)] = tables(made)
    assert heads(timed) == ("variant", "read_write", "point_select", "tpcc")
    assert title == "Instructions per transaction on each load, counted with 1 client"
    assert heads(table) == ("variant", "read_write", "tpcc"), "what was not counted has no column"
    first, last = [[document.cell(one) for one in row] for row in table.rows]
    assert [document.plain(one.words) for one in first] == ["build.lto=full", "0.900", "~1.000"]
    assert document.plain(last[0].words) == PLACEBOS and last[1].below == ("2 placebos",)
    assert document.plain(last[1].words) == "1.000 – 1.040"
    *_, note = [part for one in words.document(made).sections for part in one.body if isinstance(part, Notes)]
    assert "Valgrind" in note.lines[0] and "~" in note.lines[0]


def test_counts_of_one_workload_stand_behind_its_speeds() -> None:
    counts = {"baseline": (100.0, 100.0), BY_WRITES: (90.0, 90.0)}
    made = matrix([measured("tpcb", clients, {}, counts=counts) for clients in (1, 8)])
    assert [title for title, _ in tables(made)] == [
        "Measured on tpcb",
        "Instructions per transaction on tpcb, counted with 1 client",
    ]
    [_, (_, table)] = tables(made)
    assert [document.cell(row[1]).words for row in table.rows] == ["0.900", "–"]


def test_two_runs_of_one_load_are_told_apart_by_their_names() -> None:
    again = measured("read_write", 8, {BY_WRITES: 1.3})
    other = again.model_copy(update={"run": again.run.model_copy(update={"run": "again"})})
    [(_, table)] = tables(matrix([again, other]))
    assert heads(table)[1:] == ("8 clients, read_write-8", "8 clients, again")


def test_without_trainings_no_column_tells_of_them() -> None:
    [(_, table)] = tables(matrix([measured("tpcb", 1, {}, factors={"config.a": [1, 2]})]))
    assert heads(table) == ("variant", "1 client")
    assert [document.cell(row[0]).below for row in table.rows] == [()]


@pytest.mark.parametrize("width", [60, 100])
def test_every_form_has_every_figure(width: int) -> None:
    changes = {BY_WRITES: blocked("build.pgo", "read_write", "off")}
    made = matrix([*runs(), measured("tpcc", 1, {BY_SELECTS: 1.1}, changes)])
    for text in in_every_form(words.document(made), width):
        plain = " ".join(text.replace("\\", "").split())
        assert "Worst:" in plain and "Measured on tpcc" in plain and "blocked" in plain
        for _, table in tables(made):
            for cell in (document.cell(one) for row in table.rows for one in row):
                assert all(document.plain(one) in plain for one in (cell.words, *cell.below))


def test_hostile_names_make_no_element() -> None:
    made = found()
    rows = tuple(row.model_copy(update={"variant": HOSTILE}) for row in made.rows)
    made = made.model_copy(update={"rows": rows})
    assert Outline(html.render(words.document(made))).count("script") == 1
