"""A line over versions has one product's, on this machine, each once, in rising order."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host.cache import silently
from dbdyno.kinds.bisection import line_of_versions, with_engines
from dbdyno.prepare_run import study_here
from dbdyno.prepare_run.study_here import study_at
from dbdyno.study import Study
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import Along, on_line

VERSIONS = ("10.6.18", "10.11.9", "11.4.2", "11.8.3")
STUDY = """
title = "Which version?"
[workload]
name     = "tpcb"
duration = "1s"
[factors]
engine = [{levels}]
"workload.clients" = [1, 4]
"""


def server(folder: Path, version: str) -> str:
    """The level of a program that says it is this version of MariaDB."""
    program = folder / version / "mariadbd"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'mariadbd  Ver {version}-MariaDB'\n")
    program.chmod(0o755)
    return f"mariadb:{program}"


def study_of(folder: Path, *levels: str) -> Study:
    study_here.located.cache_clear()
    path = folder / "study.toml"
    path.write_text(STUDY.format(levels=", ".join(f'"{level}"' for level in levels)))
    return study_at(path, names=replace(study_here.catalogue(), lone=True))


@pytest.fixture
def levels(homes: Path) -> list[str]:
    return [server(homes, version) for version in VERSIONS]


def test_the_line_is_the_levels_in_their_order(homes: Path, levels: list[str]) -> None:
    line = line_of_versions(study_of(homes, *levels), None, None)
    assert line.along is Along.VERSIONS
    assert [point.name for point in line.points] == list(VERSIONS)
    assert [point.title for point in line.points] == [f"MariaDB {version}" for version in VERSIONS]
    assert [point.levels for point in line.points] == [{ENGINE_FACTOR: level} for level in levels]


def test_the_ends_narrow_it_and_the_first_is_then_the_engine(homes: Path, levels: list[str]) -> None:
    study = study_of(homes, *levels)
    line = line_of_versions(study, levels[1], levels[2].removeprefix("mariadb:"))
    assert [point.name for point in line.points] == ["10.11.9", "11.4.2"]
    carried_out = on_line(study, line)
    assert [one.written for one in carried_out.engines] == levels[1:3]
    assert carried_out.settings["workload.clients"] == 1


def test_builds_of_one_version_have_what_tells_their_paths_apart_as_names(
    homes: Path, levels: list[str]
) -> None:
    mended = Path(server(homes / "10.6.18", "10.6.18").removeprefix("mariadb:"))
    mended.write_text(mended.read_text() + "# mended\n")
    line = line_of_versions(study_of(homes, levels[0], f"mariadb:{mended}", levels[1]), None, None)
    assert [point.name for point in line.points] == [
        "10.6.18/mariadbd",
        "10.6.18/10.6.18/mariadbd",
        "10.11.9",
    ]


def test_a_version_that_is_not_here_and_not_asked_for_is_no_mistake(homes: Path, levels: list[str]) -> None:
    study = study_of(homes, "mariadb@10.11", *levels[2:])
    line = line_of_versions(study, levels[2], None)
    assert [point.name for point in line.points] == ["11.4.2", "11.8.3"]
    assert Reference.of(levels[2]) == on_line(study, line).engine


@pytest.mark.parametrize(
    ("order", "good", "bad", "told", "hint"),
    [
        ((0, 2, 1), None, None, "do not rise: mariadb:", "from the oldest version to the newest"),
        ((0, 1, 2), "9.9", None, f"no level of `{ENGINE_FACTOR}` is 9.9", "there are: mariadb:"),
        ((0, 1, 2), "", None, f"no level of `{ENGINE_FACTOR}` is ", "there are: mariadb:"),
        ((0, 1, 2), 2, 1, "are exchanged", "--good"),
        ((0, 1, 2), 1, 1, "the same version", "name two"),
    ],
)
def test_what_is_no_line_is_refused(
    homes: Path,
    levels: list[str],
    order: tuple[int, ...],
    good: str | int | None,
    bad: str | int | None,
    told: str,
    hint: str,
) -> None:
    study = study_of(homes, *(levels[place] for place in order))
    named = [levels[end] if isinstance(end, int) else end for end in (good, bad)]
    with pytest.raises(UserError) as refused:
        line_of_versions(study, *named)
    assert told in refused.value.message and hint in refused.value.hint
    assert refused.value.exit_code == 2


def test_versions_that_are_not_here_are_all_named_with_what_obtains_them(
    homes: Path, levels: list[str]
) -> None:
    study = study_of(homes, "mariadb@10.11", "mariadb@11.8", levels[3])
    with pytest.raises(UserError) as refused:
        line_of_versions(study, None, None)
    assert "mariadb@10.11 is not on this machine; mariadb@11.8 is" in refused.value.message
    assert "`dyno engines fetch mariadb@11.8` obtains it" in refused.value.hint


def test_two_levels_that_are_the_same_server_are_refused(homes: Path, levels: list[str]) -> None:
    (homes / "copy").mkdir()
    copy = homes / "copy" / "mariadbd"
    copy.write_bytes(Path(levels[0].removeprefix("mariadb:")).read_bytes())
    copy.chmod(0o755)
    with pytest.raises(UserError, match="are the same server"):
        line_of_versions(study_of(homes, levels[0], f"mariadb:{copy}", levels[1]), None, None)


def test_a_study_of_one_version_is_no_line(homes: Path, levels: list[str]) -> None:
    study = study_of(homes, *levels[:2])
    one = study.but(factors=[factor for factor in study.factors if factor.name != ENGINE_FACTOR])
    with pytest.raises(UserError, match="has no two versions"):
        line_of_versions(one, None, None)


def test_versions_of_several_products_are_refused(homes: Path, levels: list[str]) -> None:
    with pytest.raises(UserError, match="of several products: mariadb, sqlite"):
        line_of_versions(study_of(homes, levels[0], "sqlite"), None, None)


def _packed(folder: Path, version: str) -> None:
    """A vendor's tarball with a program that says it is this version of MariaDB."""
    top = folder / f"mariadb-{version}"
    (top / "bin").mkdir(parents=True)
    program = top / "bin" / "mariadbd"
    program.write_text(f"#!/bin/sh\necho 'mariadbd  Ver {version}-MariaDB'\n")
    program.chmod(0o755)
    with tarfile.open(folder / f"{top.name}.tar.gz", "w:gz") as archive:
        archive.add(top, top.name)
    shutil.rmtree(top)


def test_the_files_of_a_folder_are_the_versions_in_their_order(homes: Path) -> None:
    folder = homes / "brought"
    for version in ("11.4.2", "10.11.9", "9.9.9"):
        _packed(folder, version)
    (folder / "notes.txt").write_text("not a version")
    with tarfile.open(folder / "other.tar", "w") as archive:
        archive.add(folder / "notes.txt", "notes.txt")
    told: list[str] = []
    line = line_of_versions(
        with_engines(study_of(homes, "mariadb@10.11", "mariadb@11.8"), folder, told.append), None, None
    )
    assert [point.name for point in line.points] == ["9.9.9", "10.11.9", "11.4.2"], "as numbers"
    assert len(told) == 1 and told[0].startswith("other.tar is left out: ")


def test_a_folder_without_two_versions_is_no_line(homes: Path) -> None:
    _packed(homes / "brought", "11.4.2")
    study = study_of(homes, "mariadb@10.11", "mariadb@11.8")
    for folder, message in (
        (homes / "brought", "holds 1 version of MariaDB"),
        (homes / "none", "is no folder"),
    ):
        with pytest.raises(UserError, match=message):
            with_engines(study, folder, silently)
