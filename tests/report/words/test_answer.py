"""The answer is a sentence."""

from __future__ import annotations

import pytest

from dbdyno.report.words import answer
from tests.report.cases import CASES


@pytest.mark.parametrize(
    ("case", "beginning"),
    [
        ("all_verdicts", "config.page_cache=64k helped most: 1.6"),
        ("nothing_run", "Nothing was measured"),
        ("one_block", "Not settled yet"),
        ("baseline_broken", "The baseline itself did not hold"),
    ],
)
def test_the_answer_is_a_sentence(case: str, beginning: str) -> None:
    headline = answer.headline(CASES[case]())
    assert headline.startswith(beginning)
    assert headline.endswith(".")


def test_what_is_inconclusive_names_the_command_that_adds_the_blocks_it_needs() -> None:
    analysis = CASES["all_verdicts"]()
    most = max(variant.blocks_more or 0 for variant in analysis.variants)
    assert f"To go on: dyno run --resume {analysis.run.run} --add-blocks {most}" in answer.notes(analysis)
    assert not any("--add-blocks" in line for line in answer.notes(CASES["nothing_run"]()))
