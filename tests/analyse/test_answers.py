"""The answers of analyses, digit by digit: no way of reckoning may change one."""

from __future__ import annotations

import gzip
import json
import math
from typing import Any

import pytest

from tests.analyse.answers_cases import CASES, STORED, answer

BY_NUMPY = ("floor", "components")
"""Made of logs that numpy takes several at a time: their last digit depends on the CPU."""


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(STORED.read_bytes()))
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_answer_has_the_digits_that_it_had(name: str, stored: dict[str, Any]) -> None:
    found = json.loads(json.dumps(answer(CASES[name]())))
    assert found.keys() == stored[name].keys()
    for key, value in stored[name].items():
        if key in BY_NUMPY:
            assert _is_close(found[key], value), key
        else:
            assert found[key] == value, key


def _is_close(found: Any, stored: Any) -> bool:
    if isinstance(stored, dict):
        return found.keys() == stored.keys() and all(_is_close(found[key], stored[key]) for key in stored)
    if isinstance(stored, float):
        return math.isclose(found, stored, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == stored)
