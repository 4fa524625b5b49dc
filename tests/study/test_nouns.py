"""What a study means, however its file spells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.study import parse_study
from tests.study.catalogue import CATALOGUE

TEXT = """
title  = "Which page size?"
engine = "firebird@5"
[workload]
name     = "tpcb"
scale    = 2
duration = "2s"
[factors]
"config.page_size" = [8192, 16384]
"""


def meaning(text: str) -> str:
    return parse_study(text.encode(), CATALOGUE).meaning


@pytest.mark.parametrize(
    ("old", "new"),
    [("title  =", "# a comment\ntitle ="), ('"2s"', '"2000ms"'), ("scale    = 2\n", "scale=2 # small\n")],
)
def test_another_spelling_means_the_same(old: str, new: str) -> None:
    assert TEXT.replace(old, new) != TEXT
    assert meaning(TEXT.replace(old, new)) == meaning(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"2s"', '"3s"'),
        ("16384", "32768"),
        ("= 2\n", "= 3\n"),
        ("8192, 16384", "16384, 8192"),
        ("scale    = 2\n", 'scale = 2\nconnect_sql = "SET a = 1"\n'),
    ],
)
def test_another_question_means_something_else(old: str, new: str) -> None:
    assert meaning(TEXT.replace(old, new)) != meaning(TEXT)


def test_paths_in_a_study_count_from_its_folder() -> None:
    assert parse_study(TEXT.encode(), CATALOGUE, "/studies/page.toml").folder == Path("/studies")
    assert parse_study(TEXT.encode(), CATALOGUE, "page.toml").folder == Path.cwd()
    assert parse_study(TEXT.encode(), CATALOGUE, "/dev/stdin").folder == Path.cwd()
    assert parse_study(TEXT.encode(), CATALOGUE, "page.toml", Path("/kept")).folder == Path("/kept")
