"""A report without details is one screen, whatever was run."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from dbdyno.analyse import Analysis
from dbdyno.findings import analyse, gate, run
from dbdyno.report.document import Document
from tests.analyse import answers_cases, machine_cases, platforms_cases, restarts_cases
from tests.report.figures.gate_cases import GATE
from tests.report.forms import ANALYSES
from tests.report.picture import stored_analysis
from tests.report.shown import printed

LINES, COLUMNS = 24, 80


def of_answers(name: str) -> Callable[[], Analysis]:
    return lambda: analyse(*answers_cases.CASES[name]())


KINDS: dict[str, Callable[[], Analysis]] = {
    **ANALYSES,
    **{f"answers/{name}": of_answers(name) for name in answers_cases.CASES},
    "quickstart": stored_analysis,
    "platforms": lambda: platforms_cases.analysed(platforms_cases.NATIVE, platforms_cases.LOSING),
    "machine": lambda: machine_cases.analysed(machine_cases.IN_FULL, machine_cases.BLOCKED),
    "restarts": restarts_cases.analysed,
}


def require_a_screen(report: Document, width: int = COLUMNS) -> str:
    """What is printed without details, of which the last line is kept for where the page is."""
    told = printed(report, width, details=False)
    lines = told.rstrip("\n").split("\n")
    assert len(lines) < LINES, told
    assert max(map(cell_len, lines)) <= width, told
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_one_screen(kind: str) -> None:
    found = KINDS[kind]()
    told = require_a_screen(run.document(found))
    assert f"dyno report {found.run.run} --details" in told.replace("'", "")
    require_a_screen(run.document(found), 132)


def test_a_gate_is_one_screen() -> None:
    told = require_a_screen(gate.document(GATE))
    assert "Nothing that Dyno knows of changed" in told and "--details" in told


def test_the_baseline_and_four_variants_always_have_a_row() -> None:
    for kind in ("all_verdicts", "many", "file_systems"):
        told = require_a_screen(run.document(KINDS[kind]()))
        _, rows = told.split("─\n")
        ratios = re.findall(r" \d+\.\d+ – \d+\.\d+ ", rows)
        assert len(ratios) >= 4 and "more variants" in told


def test_what_one_should_believe_less_stands_in_a_line_and_the_rest_in_the_details() -> None:
    told = require_a_screen(run.document(ANALYSES["all_verdicts"]()))
    assert "Smallest difference this run can see: 1.8 %" in told
    assert "! 6 of 72 trials: the driver was the limit" in told
    assert "resemble their neighbours" not in told and "pooled over" not in told
    details = printed(run.document(ANALYSES["all_verdicts"]()))
    assert "Blocks resemble their neighbours" in details and "pooled over" in details


def test_work_that_was_to_be_counted_is_told() -> None:
    told = require_a_screen(run.document(KINDS["answers/counted_beside"]()))
    assert "Counted work, instructions as a ratio: " in told


def test_a_gap_is_told_by_its_factors_and_not_by_the_variants_between() -> None:
    told = require_a_screen(run.document(ANALYSES["fraction_of_seven"]()))
    assert told.split("\n")[2].startswith("The gap is ") and "the whole gap" in told
    assert "config.setting_c" in told
