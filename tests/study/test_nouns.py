"""What a study means, however its file spells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.frozen import Level
from dbdyno.study import parse_study
from dbdyno.study.grammars import constraint
from dbdyno.study.nouns import Condition, amount, size_unit_bytes
from dbdyno.study.values import ValueFault
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


@pytest.mark.parametrize(
    ("level", "found"),
    [
        (3, 3.0),
        (0.5, 0.5),
        ("64M", 64 * 2**20),
        ("2 GB", 2**31),
        ("8kB", 8192),
        ("1.5GiB", 1.5 * 2**30),
        ("10ms", 10.0),
    ],
)
def test_a_level_amounts_to_its_number_in_bytes_where_it_is_a_size(level: Level, found: float) -> None:
    assert amount(level) == found


@pytest.mark.parametrize("level", ["ON", "", "64M,8", True])
def test_a_level_that_is_no_amount_is_refused(level: Level) -> None:
    with pytest.raises(ValueError):
        amount(level)


def test_only_units_of_sizes_have_bytes() -> None:
    assert [size_unit_bytes(unit) for unit in ("K", "mb", "MiB", "G", "ms", "min", "")] == [
        2**10, 2**20, 2**20, 2**30, 0, 0, 0,
    ]  # fmt: skip


def test_a_condition_compares_levels_as_they_are_written() -> None:
    condition = Condition(factor="config.a", levels=("ON", 1))
    assert condition.holds({"config.a": "1"})
    assert not condition.holds({"config.a": "OFF"})


@pytest.mark.parametrize(
    ("text", "levels", "holds"),
    [
        ("config.a + 2 * config.b <= 6G", {"config.a": "4G", "config.b": "1G"}, True),
        ("config.a + 2 * config.b <= 6G", {"config.a": "4G", "config.b": "1100M"}, False),
        ("config.a<=config.b", {"config.a": 200, "config.b": 200}, True),
        ("2 <= config.a + 1", {"config.a": 0}, False),
        ("0.5*config.a <= 1", {"config.a": 2}, True),
    ],
)
def test_a_constraint_sums_both_sides(text: str, levels: dict[str, Level], holds: bool) -> None:
    assert constraint(text).holds(levels) is holds


@pytest.mark.parametrize(
    "text", ["config.a < 6G", "config.a", "1 <= 2", "config.a - 1 <= 2", "<= 3", "a <= 3"]
)
def test_another_form_is_no_constraint(text: str) -> None:
    with pytest.raises(ValueFault, match="is no constraint"):
        constraint(text)
