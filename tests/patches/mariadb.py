"""The source of MariaDB that the patches are for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.patches.programs import PATCHES

PATCHES_TO_11_8 = PATCHES / "mariadb" / "11.8"
PATCHES_TO_10_11 = PATCHES / "mariadb" / "10.11"
SOURCE = "DYNO_MARIADB_SOURCE"
"""The folder of an unpacked MariaDB 11.8.6."""


def tree_with(file: str, folder: Path) -> Path:
    """A tree with one file of the source; skips the test where the source is not here."""
    source = os.environ.get(SOURCE)
    if not source:
        pytest.skip(f"needs MariaDB 11.8.6: unpack its source, and name the folder in {SOURCE}")
    tree = folder / "tree"
    (tree / file).parent.mkdir(parents=True)
    shutil.copy(Path(source) / file, tree / file)
    return tree
