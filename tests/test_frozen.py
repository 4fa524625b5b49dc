"""The base of every noun."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from dbdyno.frozen import Configuration, IncludedFile

BARE = Configuration(path="my.cnf", text="", digest="0", settings={})


def test_an_absent_field_is_left_out_until_it_is_given() -> None:
    file = IncludedFile(path="more.cnf", text="", digest="1")
    given = Configuration(**{**dict(BARE), "included": (file,)})
    assert "included" not in BARE.model_dump() and "not_taken" in BARE.model_dump()
    assert given.model_dump()["included"] == (file.model_dump(),)
    for one in (BARE, given):
        assert Configuration.model_validate_json(one.model_dump_json()) == one


def test_a_changed_noun_keeps_all_else_and_leaves_the_first_alone() -> None:
    assert BARE.but(path="other.cnf") == Configuration(path="other.cnf", text="", digest="0", settings={})
    assert BARE.path == "my.cnf"


@pytest.mark.parametrize("changes", [{"pth": "other.cnf"}, {"path": None}, {"included": ["more.cnf"]}])
def test_a_noun_takes_no_change_that_it_could_not_be_made_with(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BARE.but(**changes)


def test_a_noun_that_nobody_uses_is_not_built() -> None:
    """Building its validation takes longer than reading its class, and a command uses few of the nouns."""
    code = (
        "from dbdyno.records.record import Check, Record\n"
        "Check(name='balances', holds=True)\n"
        "print(Check.__pydantic_complete__, Record.__pydantic_complete__)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False"]
