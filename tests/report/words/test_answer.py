"""The answer is a sentence."""

from __future__ import annotations

import pytest

from dbdyno.frozen import Level
from dbdyno.report.words import answer
from dbdyno.study import Design
from tests.analyse.factory import a_study, records_of
from tests.report.cases import CASES, analysed


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


def test_a_clear_main_effect_leads_where_no_variant_is_settled_by_itself() -> None:
    """Three blocks are too few for a verdict on a variant, while the factor doubles the speed throughout."""
    factors: dict[str, list[Level]] = {"config.page_cache": ["2k", "64k"], "workload.clients": [1, 8]}
    study = a_study(factors, design=Design.FACTORIAL, blocks=3)
    both = "config.page_cache=64k, workload.clients=8"
    clear = analysed(study, records_of(study, {"config.page_cache=64k": 4.7, both: 4.7}, trial_sd=0.01))
    headline = answer.headline(clear)
    assert headline.startswith("Main effects on throughput: config.page_cache: 64k / 2k is 4.")
    assert "The whole gap is 4." in headline
    assert headline.endswith("No variant is settled by itself yet.")
    nothing = analysed(study, records_of(study, trial_sd=0.2))
    assert answer.headline(nothing).startswith("Not settled yet")
