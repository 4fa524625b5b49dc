"""Each kind of result is a line of one table: a document, and JSON that its schema describes."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dbdyno.findings.results import RESULTS
from tests.findings import matrix_cases
from tests.report.cases import all_verdicts, two_factors


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_has_a_schema(kind: str) -> None:
    Draft202012Validator.check_schema(RESULTS[kind].schema())


def test_what_machines_read_is_as_the_schema_says_and_ends_in_a_newline() -> None:
    found = {"report": all_verdicts(), "explain": two_factors().gap, "matrix": matrix_cases.found()}
    for kind, one in found.items():
        text = RESULTS[kind].json(one)
        assert text.endswith("}\n") and not text.endswith("\n\n")
        Draft202012Validator(RESULTS[kind].schema()).validate(json.loads(text))
