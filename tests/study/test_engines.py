"""Engines as a factor, as a study writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import Mistake
from dbdyno.study import Factor, parse_study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import Reference
from tests.study.catalogue import CATALOGUE
from tests.study.reading import mistakes, read, require_mistake


def _of_one_version(factor: Factor, engine: Reference) -> list[Mistake]:
    """Versions differ by a setting: `gone` is one of 10.11 alone."""
    if factor.knob == "gone" and engine.version != "10.11":
        return [Mistake(0, f"{engine.written} has no setting 'gone'")]
    return [Mistake(0, f"{engine.written} has no setting 'never'")] if factor.knob == "never" else []


NAMES = replace(CATALOGUE, layers={**CATALOGUE.layers, "engine": lambda *_: [], "config": _of_one_version})
VERSIONS = """\
[workload]
name = "tpcb"
[factors]
engine = ["mariadb@10.11", "mariadb@11.8", "mariadb:/opt/m12"]
"""
LISTED = """\
design = "list"
[workload]
name = "tpcb"
[[variants]]
levels = { engine = "postgresql@15", "config.a" = 1 }
[[variants]]
name = "upgraded"
levels = { engine = "postgresql@17", "config.a" = 2 }
"""


def test_the_first_level_is_the_baselines_engine() -> None:
    study = read(VERSIONS, NAMES)
    assert study.engine == Reference("mariadb", "10.11")
    assert [one.written for one in study.engines] == ["mariadb@10.11", "mariadb@11.8", "mariadb:/opt/m12"]
    assert [one.name for one in variants_of(study)] == [
        "baseline",
        "engine=mariadb@11.8",
        "engine=mariadb:/opt/m12",
    ]
    last = variants_of(study)[-1]
    assert study.engine_of(last.levels) == Reference("mariadb", path="/opt/m12")


def test_a_study_that_names_its_baselines_engine_asks_the_same() -> None:
    assert read('engine = "mariadb@10.11"\n' + VERSIONS, NAMES).meaning == read(VERSIONS, NAMES).meaning


def test_the_studys_engine_is_the_baselines_or_is_left_out() -> None:
    found = mistakes('engine = "mariadb@11.8"\n' + VERSIONS, NAMES)
    require_mistake(found, 1, "the study's engine is mariadb@11.8, and the first level", "leave it out here")


def test_variants_of_a_list_name_their_engines() -> None:
    study = read(LISTED, NAMES)
    baseline, upgraded = variants_of(study)
    assert study.engine == study.engine_of(baseline.levels) == Reference("postgresql", "15")
    assert study.engine_of(upgraded.levels) == Reference("postgresql", "17")


def test_an_engine_that_is_none_is_told_with_the_nearest() -> None:
    found = mistakes(VERSIONS.replace("mariadb@11.8", "mariabd@11.8"), NAMES)
    require_mistake(found, 4, 'unknown engine "mariabd"', "did you mean `mariadb`?")


def test_a_level_is_written_once() -> None:
    found = mistakes(VERSIONS.replace("mariadb@11.8", "mariadb@10.11"), NAMES)
    require_mistake(found, 4, 'has the level "mariadb@10.11" twice', "must differ")


def test_a_setting_of_one_version_is_no_mistake_and_one_of_none_is() -> None:
    assert read(VERSIONS + '"config.gone" = [1, 2]\n', NAMES).factors[1].name == "config.gone"
    assert read(VERSIONS + "[settings]\nconfig.gone = 1\n", NAMES).settings == {"config.gone": 1}
    found = mistakes(VERSIONS + '"config.never" = [1, 2]\n', NAMES)
    require_mistake(found, 5, "mariadb@10.11 has no setting 'never'", "")
    require_mistake(found, 5, "mariadb@11.8 has no setting 'never'", "")


@pytest.mark.parametrize(
    ("added", "line", "message", "hint"),
    [
        ('"engine.version" = ["1", "2"]\n', 5, "is no factor", "engine = [BASELINE, OTHER, ...]"),
        ('[settings]\nengine = "mariadb"\n', 6, "has no place in [settings]", "at the top of the study"),
        (
            '[settings]\n"source.origin" = "debian"\n',
            6,
            "`source.origin` and `engine` exclude each other",
            "by its path",
        ),
    ],
)
def test_what_does_not_go_with_engines_is_told(added: str, line: int, message: str, hint: str) -> None:
    layers = {**NAMES.layers, "source": lambda *_: []}
    require_mistake(mistakes(VERSIONS + added, replace(NAMES, layers=layers)), line, message, hint)


def test_a_search_does_not_vary_its_engine() -> None:
    found = mistakes('design = "search"\n' + VERSIONS, NAMES)
    require_mistake(found, 5, "`engine` and `design = search` exclude each other", "compare the winners")


def test_what_each_session_chooses_every_engine_must_offer() -> None:
    text = VERSIONS.replace("mariadb:/opt/m12", "firebird@5").replace(
        'name = "tpcb"', 'name = "tpcb"\nisolation = "serializable"'
    )
    require_mistake(mistakes(text, NAMES), 3, "`isolation` cannot be chosen with firebird", "leave it out")


def test_data_can_be_taken_over_from_the_first_engine() -> None:
    study = read(f'data = "upgraded"\n{VERSIONS}', NAMES)
    assert study.upgraded and study.data is None
    assert not read(VERSIONS, NAMES).upgraded
    assert study.meaning != read(VERSIONS, NAMES).meaning


@pytest.mark.parametrize(
    ("added", "line", "message"),
    [
        ('data = "upgarded"\n', 1, '`data` must be a table or `upgraded`, not "upgarded"'),
        ("data = true\n", 1, "`data` must be a table or `upgraded`, not true"),
        ("[data]\nupgraded = true\n", 1, "[data] names no data"),
    ],
)
def test_what_data_can_be_is_told(added: str, line: int, message: str) -> None:
    found = mistakes(f"{added}{VERSIONS}", NAMES)
    assert (line, message) in [(one.line, one.message) for one in found]


def test_one_engine_has_nobody_to_take_data_over_from() -> None:
    text = 'engine = "mariadb"\ndata = "upgraded"\n' + VERSIONS.replace("engine = [", '"config.a" = [1, 2] #')
    [found] = mistakes(text, NAMES)
    assert (found.line, found.message) == (2, "`upgraded` needs `engine` as a factor")


def test_a_relative_path_counts_from_the_folder_of_the_study(tmp_path: Path) -> None:
    text = TEXT_OF_PATHS.encode()
    study = parse_study(text, NAMES, str(tmp_path / "study.toml"), tmp_path)
    assert [one.written for one in study.engines] == ["mariadb:./old.tar", "mariadb:../new.tar"]
    assert [one.place for one in study.engines] == [tmp_path / "old.tar", tmp_path.parent / "new.tar"]
    [_, later] = variants_of(study)
    assert study.engine_of(later.levels).place == tmp_path.parent / "new.tar"
    assert "folder" not in study.model_dump()["engine"]


TEXT_OF_PATHS = """
title = "Two files"
[workload]
name = "point_select"
[factors]
engine = ["mariadb:./old.tar", "mariadb:../new.tar"]
"""
