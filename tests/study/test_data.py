"""The section [data]: what it means, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study
from dbdyno.study.nouns import GivenData
from tests.study.data_cases import NAMES

STUDY = """\
engine = "mariadb"
[data]
dump = "shop.sql.gz"
[workload]
name = "script"
file = "shop.toml"
[factors]
"config.a" = [1, 2]
"""
PLACE = "/studies/shop.toml"


def read(text: str) -> Study:
    return parse_study(text.encode(), NAMES, PLACE)


def mistakes(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(StudyError) as raised:
        read(text)
    return [(one.line, one.message, one.hint) for one in raised.value.mistakes]


def test_a_dump_is_read_and_counts_from_the_folder_of_the_study() -> None:
    data = read(STUDY).data
    assert data == GivenData(dump=("shop.sql.gz",))
    assert data.paths(Path("/studies")) == (Path("/studies/shop.sql.gz"),)


def test_dumps_can_be_several_and_a_folder_stands_alone() -> None:
    several = 'dump = ["schema.sql", "/dumps/rows.sql"]\ndatabase = "shop"\nsetup = true'
    data = read(STUDY.replace('dump = "shop.sql.gz"', several)).data
    assert data == GivenData(dump=("schema.sql", "/dumps/rows.sql"), database="shop", setup=True)
    assert data.paths(Path("/studies")) == (Path("/studies/schema.sql"), Path("/dumps/rows.sql"))
    folder = read(STUDY.replace('dump = "shop.sql.gz"', 'folder = "/backup"')).data
    assert folder == GivenData(folder="/backup")


def test_a_study_without_data_means_what_it_meant() -> None:
    without = read(STUDY.replace('[data]\ndump = "shop.sql.gz"\n', ""))
    assert without.data is None
    assert "data" not in without.model_dump()
    assert without.meaning != read(STUDY).meaning


@pytest.mark.parametrize(
    ("section", "line", "message"),
    [
        (
            'dump = "a.sql"\nfolder = "/b"',
            4,
            "`data.folder` and `data.dump` exclude each other: each of the two is all of the data",
        ),
        ('database = "shop"', 2, "[data] names no data"),
        ("dump = []", 3, "`dump`: names 0 files"),
        ('dump = ["a.sql", "a.sql"]', 3, "`dump`: names a file twice"),
        ("dump = 3", 3, "`dump`: must be a text, not a whole number"),
        ('dump = "a.sql"\ndatabase = "a/b"', 4, '`database`: cannot be "a/b"'),
        ('dumps = "a.sql"\ndump = "a.sql"', 3, "unknown key `dumps` in [data]"),
        ('dump = "missing.sql"', 3, "there is no /studies/missing.sql"),
    ],
)
def test_a_mistake_has_its_line(section: str, line: int, message: str) -> None:
    found = mistakes(STUDY.replace('dump = "shop.sql.gz"', section))
    assert [(at, told) for at, told, _ in found] == [(line, message)]


def test_what_does_not_go_with_brought_data_is_told() -> None:
    built_in = STUDY.replace('dump = "shop.sql.gz"', 'dump = "a.sql"\nsetup = true')
    built_in = built_in.replace('name = "script"\nfile = "shop.toml"', 'name = "tpcb"')
    [(line, message, hint)] = mistakes(built_in)
    assert (line, message) == (4, "`setup` runs the statements of a file, and `tpcb` has none")
    assert "must hold the tables of tpcb" in hint
    [(_, message, _)] = mistakes(f"images = 2\n{STUDY}")
    assert message.startswith("`images` and `data.dump` exclude each other")


def test_what_is_brought_can_be_taken_over_by_later_versions() -> None:
    text = STUDY.replace('engine = "mariadb"\n', "").replace(
        '"config.a" = [1, 2]', 'engine = ["mariadb@10.11", "mariadb@11.8"]'
    )
    names = replace(NAMES, layers={**NAMES.layers, "engine": lambda *_: []})
    upgraded = text.replace("[workload]", "upgraded = true\n[workload]")
    study = parse_study(upgraded.encode(), names, PLACE)
    assert study.upgraded and study.data == GivenData(dump=("shop.sql.gz",))
    assert not parse_study(text.encode(), names, PLACE).upgraded
