"""The JSON report: valid, complete, and in the units that its keys name."""

from __future__ import annotations

import json

import pytest

from dbdyno.analyse.model import FORMAT
from dbdyno.findings import as_json
from tests.report.cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_it_is_strict_json_with_a_row_per_trial(case: str) -> None:
    analysis = CASES[case]()
    document = json.loads(
        as_json.render(analysis), parse_constant=lambda name: pytest.fail(f"{name} is no JSON")
    )
    assert document["format"] == FORMAT
    assert [trial["trial"] for trial in document["trials"]] == [t.record.trial for t in analysis.trials]
    assert [variant["name"] for variant in document["variants"]] == [v.name for v in analysis.variants]


def test_figures_are_those_of_the_analysis() -> None:
    analysis = CASES["all_verdicts"]()
    document = json.loads(as_json.render(analysis))
    best = next(variant for variant in document["variants"] if variant["name"] == document["answer"]["best"])
    assert best["verdict"] == "faster"
    assert best["effect"]["low"] <= best["effect"]["ratio"] <= best["effect"]["high"]
    measured = next(trial for trial in document["trials"] if trial["outcome"] == "measured")
    assert measured["metrics"]["throughput"] == measured["response"]
    assert measured["metrics"]["p99_ms"] > 0


def test_passwords_are_left_out() -> None:
    analysis = CASES["one_block"]()
    study = analysis.study.model_copy(update={"title": "What of mysql://root:s3cret@localhost/test?"})
    assert "s3cret" not in as_json.render(analysis.model_copy(update={"study": study}))


def test_what_belongs_to_the_store_stays_there() -> None:
    text = as_json.render(CASES["all_verdicts"]())
    assert '"histogram"' not in text and '"tally"' not in text
