"""The patches to MariaDB's cache of a vector index: a series that applies in its order, and its study."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dbdyno.obtain.source.tree import apply, files_of_patch, read_patch
from tests.needs import needs_patch
from tests.patches.mariadb import PATCHES_TO_11_8, tree_with

ROOT = Path(__file__).parents[2]
SERIES = sorted(PATCHES_TO_11_8.glob("mhnsw-*.patch"))
CHANGED = "sql/vector_mhnsw.cc"


def test_the_series_is_numbered_without_a_gap() -> None:
    assert [path.name.split("-")[1] for path in SERIES] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_a_patch_changes_the_one_file(path: Path) -> None:
    named = set(files_of_patch(read_patch(path).content))
    assert named == {f"a/{CHANGED}", f"b/{CHANGED}"}


def test_the_study_takes_the_series_from_its_beginning() -> None:
    study = ROOT / "studies" / "mhnsw-eviction.toml"
    levels = tomllib.loads(study.read_text())["factors"]["source.patches"]
    assert levels[0] == "none"
    for level in levels[1:]:
        taken = [(study.parent / name).resolve() for name in level.split()]
        assert taken == SERIES[: len(taken)]
    assert len(levels[-1].split()) == len(SERIES)


@needs_patch
def test_the_series_applies_in_its_order(tmp_path: Path) -> None:
    tree = tree_with(CHANGED, tmp_path)
    texts = [(tree / CHANGED).read_bytes()]
    for path in SERIES:
        apply(read_patch(path), tree)
        texts.append((tree / CHANGED).read_bytes())
    assert len(set(texts)) == len(SERIES) + 1
