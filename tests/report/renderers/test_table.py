"""Tables on a terminal: whole figures at every width, and rows below each other where columns do not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dbdyno.analyse.compare import Comparison, compare
from dbdyno.findings import code, frontier, gap, gate, overhead, profile, split
from dbdyno.findings import compare as compare_part
from dbdyno.layers.registry import related_factors
from dbdyno.report import document
from dbdyno.report.document import Column, ColumnKind, Detail, Document, Section, Table, cell, plain, shown
from dbdyno.report.renderers import terminal
from tests.analyse.compare_cases import a_host, analysed
from tests.findings import code_cases
from tests.report.cases import CASES, two_factors
from tests.report.figures.flame_cases import FAST, SLOW
from tests.report.figures.gate_cases import GATE
from tests.report.forms import Printed, on_terminal, print_sections, with_frontier
from tests.report.shown import figures
from tests.report.shown import printed as printed_document

HEADS = ("variant", "per s", "ratio (interval)", "says")
ROWS = [
    ("baseline", "4,200", "–", ""),
    ("config.innodb_buffer_pool_size=128M", "9,100", "2.167 (2.100 – 2.230)", "faster than it was"),
]
NARROW = """\
baseline
  per s: 4,200 · ratio (interval): –
config.innodb_buffer_pool_size=128M
  per s: 9,100
  ratio (interval): 2.167 (2.100 –
  2.230)
  says: faster than it was
"""


def show(heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int], width: int) -> str:
    """A table alone on a terminal, whose columns of `words` may be broken into lines."""
    kinds = (ColumnKind.TEXT if place in words else ColumnKind.FIGURE for place in range(len(heads)))
    table = Table(tuple(map(Column, heads, kinds)), tuple(rows))
    alone = Document("", (), (Section("", (table,)),), titled=False)
    return on_terminal(lambda console: terminal.render(alone, console), width)


def printed(width: int) -> str:
    return show(HEADS, ROWS, (0, 3), width)


def test_what_fits_stands_in_columns_with_figures_to_the_right() -> None:
    head, _, first, second = printed(100).rstrip().split("\n")
    assert head.startswith("variant  ") and second.index("faster") == head.index("says")
    assert first.index("4,200") == second.index("9,100")
    assert len(first.split("–")[0]) > first.index("4,200") + len("4,200")


def test_words_are_broken_before_figures_and_after_their_punctuation() -> None:
    lines = [line.rstrip() for line in printed(60).split("\n")]
    assert any(line.startswith("config.innodb_") for line in lines)
    assert any("9,100" in line and "2.167 (2.100 – 2.230)" in line for line in lines)


def test_where_figures_do_not_fit_each_row_has_lines_of_its_own() -> None:
    assert "\n".join(line.rstrip() for line in printed(38).split("\n")) == NARROW


def test_a_row_that_begins_with_a_figure_is_named_by_its_head_and_a_column_without_one_continues() -> None:
    text = show(("trial", "per s", ""), [("7", "4,200", "±12")], (), 8)
    assert " ".join(text.split()) == "trial 7 per s: 4,200 ±12"


words = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, categories=["L", "N", "P"]), max_size=30
)


@given(rows=st.lists(st.tuples(words, words, words)), width=st.integers(12, 90))
def test_no_cell_is_lost_and_no_line_is_too_wide(rows: list[tuple[str, str, str]], width: int) -> None:
    text = show(("name", "one", "other"), rows, (0,), width)
    assert all(cell_len(line) <= width for line in text.split("\n"))
    # Cells may be broken side by side, so their characters are counted.
    assert Counter("".join(cell for row in rows for cell in row)) <= Counter(text)


def comparison() -> Comparison:
    sides = analysed(a_host(4)), analysed(a_host(8, 3300.0, thp="never"), speed=2.2, seed=2)
    return compare([sides[0]], [sides[1]], related=related_factors())


def of_sections(sections: Sequence[Section]) -> tuple[Printed, list[list[str]]]:
    """What prints sections, and the words of the rows that they have on a terminal."""
    body = [one for section in sections for one in shown(section.body, Detail.DETAILS)]
    rows = [row for one in body if isinstance(one, Table) for row in one.rows]
    words = [[text for content in row for text in each_text(cell(content))] for row in rows]
    return (lambda console: print_sections(sections, console)), words


def each_text(content: document.TableCell) -> list[str]:
    return [plain(content.words), *map(plain, content.below)]


def cells(name: str) -> tuple[Printed, list[str]]:
    """What prints a table, and the figures that must stand in it."""
    all_verdicts = CASES["all_verdicts"]()
    gap_found, frontier_found = two_factors().gap, with_frontier().frontier
    assert gap_found is not None and frontier_found is not None
    differences = code_cases.found()
    rows: dict[str, tuple[Printed, Sequence[Sequence[str]]]] = {
        "code": (
            lambda console: terminal.render(code.document(differences), console),
            code.changes(differences, 20),
        ),
        "gap": of_sections([*gap.sections(gap_found)]),
        "frontier": of_sections([*frontier.sections(frontier_found)]),
        "gate": (
            lambda console: terminal.render(gate.document(GATE), console, details=True),
            [row[:-1] for row in gate.rows(GATE)],
        ),
        "overhead": of_sections([*overhead.sections(all_verdicts)]),
        "profile": of_sections([profile.changes_section(SLOW, FAST)]),
        "split": of_sections([*split.sections(all_verdicts.splits)]),
    }
    show_it, found = rows[name]
    return show_it, [" ".join(cell.split()) for row in found for cell in row[1:]]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", ["code", "gap", "frontier", "gate", "overhead", "profile", "split"])
def test_every_figure_is_whole_on_a_narrow_terminal(name: str, width: int) -> None:
    show_it, figures = cells(name)
    text = on_terminal(show_it, width)
    assert "…" not in text and max(map(cell_len, text.split("\n"))) <= width
    if name != "frontier" or width == 40:
        together = " ".join(text.split())
        assert [figure for figure in figures if figure not in together] == []


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_comparison_is_whole_on_a_narrow_terminal(width: int) -> None:
    found = comparison()
    text = printed_document(compare_part.document(found), width)
    assert max(map(cell_len, text.split("\n"))) <= width
    rows = [compare_part.row(gap, found)[1:-1] for gap in found.gaps]
    rows += [line[1:] for line in compare_part.per_unit_rows(found)]
    whole, together = [figure for row in rows for figure in figures(row)], " ".join(text.split())
    assert len(whole) > 12 and [figure for figure in whole if figure not in together] == []
