"""Every study that comes with Dyno can be written into another folder, and means the same there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.prepare_run.first_study import DEMO, examples, files, study_file_named
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.study import Catalogue, read_study

NAMES = [one.name for one in examples()]
ELSEWHERE = [
    "application", "application-builds", "insert-phases", "mhnsw-eviction", "pollset", "port-patch",
    "sqlite-builds", "star-mariadb", "star-postgresql",
]  # fmt: skip
"""Those that refer to files."""


def test_each_study_of_the_tree_is_an_example() -> None:
    folder = Path(__file__).parents[2] / "studies"
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted(NAMES)
    assert DEMO in NAMES and all(one.title and one.engine for one in examples())


@pytest.fixture(scope="module")
def offered() -> Catalogue:
    return catalogue()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_means_the_same_in_another_folder(name: str, tmp_path: Path, offered: Catalogue) -> None:
    written = files(name)
    for path, text in written.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    there, here = read_study(tmp_path / f"{name}.toml", offered), read_study(study_file_named(name), offered)
    assert (there.title, there.design, there.blocks) == (here.title, here.design, here.blocks)
    assert there.files is not None and here.files is not None
    assert [one.digest for one in there.files] == [one.digest for one in here.files]
    assert (len(written) > 1) == (name in ELSEWHERE) == bool(here.files)


def test_a_name_that_no_study_has_is_told_what_is_near() -> None:
    with pytest.raises(UserError) as refused:
        study_file_named("quickstar")
    assert "quickstart" in refused.value.hint
    assert study_file_named("quickstart.toml") == study_file_named("quickstart")
