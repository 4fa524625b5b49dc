"""The patch to MariaDB's relaxed atomics: one line of one file, which applies."""

from __future__ import annotations

from pathlib import Path

from dbdyno.obtain.source.tree import apply, files_of_patch, read_patch
from tests.needs import needs_patch
from tests.patches.mariadb import PATCHES_TO_10_11, PATCHES_TO_11_8, tree_with

PATCH = PATCHES_TO_11_8 / "atomic-relaxed.patch"
CHANGED = "include/my_atomic_wrapper.h"


def test_the_patch_changes_one_line_of_one_file() -> None:
    patch = read_patch(PATCH)
    assert set(files_of_patch(patch.content)) == {f"a/{CHANGED}", f"b/{CHANGED}"}
    body = patch.content.decode().split("@@\n", 1)[1].splitlines()
    assert [line[0] for line in body if line[0] in "+-"] == ["-", "+"]


@needs_patch
def test_the_patch_applies(tmp_path: Path) -> None:
    tree = tree_with(CHANGED, tmp_path)
    before = (tree / CHANGED).read_bytes()
    apply(read_patch(PATCH), tree)
    assert (tree / CHANGED).read_bytes() != before


def test_the_patch_to_10_11_is_the_same() -> None:
    assert (PATCHES_TO_10_11 / PATCH.name).read_bytes() == PATCH.read_bytes()
