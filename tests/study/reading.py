"""Studies as tests read them, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dbdyno.errors import Mistake, StudyError
from dbdyno.study import Catalogue, Study, parse_study
from tests.study.catalogue import CATALOGUE


def read(text: str, catalogue: Catalogue = CATALOGUE) -> Study:
    return parse_study(text.encode(), catalogue)


def mistakes(text: str | bytes, catalogue: Catalogue = CATALOGUE) -> tuple[Mistake, ...]:
    with pytest.raises(StudyError) as caught:
        parse_study(text if isinstance(text, bytes) else text.encode(), catalogue)
    assert caught.value.exit_code == 2
    return caught.value.mistakes


def require_mistake(found: Sequence[Mistake], line: int, message: str, hint: str) -> None:
    """Of these mistakes, the first that says so stands on this line and has this hint."""
    told = next((one for one in found if message in one.message), None)
    assert told is not None, found
    assert told.line == line
    assert hint in told.hint


def toml_value(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(key)} = {toml_value(inner)}" for key, inner in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def toml(document: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(key)} = {toml_value(value)}\n" for key, value in document.items()).encode()
