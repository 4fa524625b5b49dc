"""The tables on a terminal: they line up, fit, keep quiet in pipes, and cannot be steered by what they
show.
"""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from dbdyno.report.words import numbers, remarks
from tests.report.cases import CASES, masked
from tests.report.forms import print_report
from tests.report.picture import PICTURE, drawn


def printed(case: str, width: int, colour: bool = False) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=colour, color_system="truecolor" if colour else "auto"
    )
    print_report(CASES[case](), console, details=True)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", [case for case in CASES if case != "many"])
def test_as_printed(case: str, width: int, snapshot: SnapshotAssertion) -> None:
    lines = [line.rstrip() for line in masked(printed(case, width)).split("\n")]
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_terminal(case: str, width: int) -> None:
    assert max(cell_len(line) for line in printed(case, width).split("\n")) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("case", ["all_verdicts", "guards"])
def test_every_ratio_interval_and_verdict_is_whole_on_a_narrow_terminal(case: str, width: int) -> None:
    text = printed(case, width)
    assert "…" not in text
    for variant in CASES[case]().variants:
        if variant.effect is not None and variant.verdict is not None:
            assert numbers.ratio_text(variant.effect.ratio) in text
            assert numbers.interval_text(variant.effect) in text
            assert remarks.verdict_text(variant) in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_columns_line_up(width: int) -> None:
    lines = printed("many", width).split("\n")
    head = next(line for line in lines if line.startswith("variant"))
    end_of_ratio = head.index("ratio") + len("ratio")
    rows = [line for line in lines if re.search(r"\d\.\d{3} +\d\.\d+ – \d", line)]
    assert len(rows) == 29
    assert all(re.search(r"\d\.\d{3}$", row[:end_of_ratio]) for row in rows)


@pytest.mark.parametrize("case", CASES)
def test_no_colour_and_no_control_character_in_a_pipe(case: str) -> None:
    text = printed(case, 80)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_colour_on_a_terminal_comes_from_us_alone() -> None:
    text = printed("hostile", 120, colour=True)
    assert "\x1b[" in text
    assert "\x1b[31mred" not in text and "\x07" not in text


def test_the_picture_is_what_the_report_of_the_stored_run_prints() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "the report changed: `make picture` draws it anew"


def test_the_picture_is_small_and_asks_the_network_for_nothing() -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    assert len(svg.encode()) < 60_000
    assert "url(http" not in svg and "href=" not in svg
