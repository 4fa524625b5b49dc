"""The patch to MariaDB's relaxed atomics: one line of one file, which applies."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dbdyno.obtain.source.patch import apply, files_named, read_patch
from tests.needs import needs_patch

PATCH = Path(__file__).parents[2] / "patches" / "mariadb" / "11.8" / "atomic-relaxed.patch"
CHANGED = "include/my_atomic_wrapper.h"
SOURCE = "DYNO_MARIADB_SOURCE"
"""The folder of an unpacked MariaDB 11.8.6."""


def test_the_patch_changes_one_line_of_one_file() -> None:
    patch = read_patch(PATCH)
    assert set(files_named(patch.content)) == {f"a/{CHANGED}", f"b/{CHANGED}"}
    body = patch.content.decode().split("@@\n", 1)[1].splitlines()
    assert [line[0] for line in body if line[0] in "+-"] == ["-", "+"]


@needs_patch
def test_the_patch_applies(tmp_path: Path) -> None:
    source = os.environ.get(SOURCE)
    if not source:
        pytest.skip(f"needs MariaDB 11.8.6: unpack its source, and name the folder in {SOURCE}")
    tree = tmp_path / "tree"
    (tree / "include").mkdir(parents=True)
    shutil.copy(Path(source) / CHANGED, tree / CHANGED)
    before = (tree / CHANGED).read_bytes()
    apply(read_patch(PATCH), tree)
    assert (tree / CHANGED).read_bytes() != before
