"""The answers of analyses, digit by digit: no way of reckoning may change one."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.analyse.answers_cases import CASES, STORED, answer, differing


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(STORED.read_bytes()))
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_answer_has_the_digits_that_it_had(name: str, stored: dict[str, Any]) -> None:
    found = json.loads(json.dumps(answer(CASES[name]())))
    assert differing(found, stored[name]) == set()
