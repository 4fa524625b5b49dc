"""Verbs under their old names: each works, and says the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.cli import VERBS
from dbdyno.cli.verbs import OLD_NAMES
from tests.cli.calls import dyno


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_works_and_says_the_new_one(homes: Path, old: str) -> None:
    said = dyno(old, "--help")
    assert said.returncode == 0 and "Usage:" in said.stdout
    assert (
        said.stderr == f"`dyno {old}` is now `dyno {OLD_NAMES[old]}`; the old name goes in the next version\n"
    )
    assert old not in VERBS and OLD_NAMES[old].split()[0] in VERBS


@pytest.mark.parametrize("words", [("cache", "builds"), ("cache", "data"), ("cache",)])
def test_a_list_under_a_new_name_says_nothing_of_names(homes: Path, words: tuple[str, ...]) -> None:
    said = dyno(*words)
    assert said.returncode == 0 and "is now" not in said.stderr


def test_the_first_help_fits_forty_lines_and_names_what_people_ask_for(homes: Path) -> None:
    said = dyno("--help").stdout
    assert len(said.splitlines()) <= 40
    assert all(word in said for word in ("upgrade", "CI", "production"))
