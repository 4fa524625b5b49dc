"""An installation that cannot be loaded says what is wrong with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dbdyno
from dbdyno.cli.incomplete import c_library, incomplete

OLD = "/lib/libc.so.6: version `GLIBC_2.28' not found (required by _driver.abi3.so)"
MUSL = "Error loading shared library ld-linux-x86-64.so.2: (needed by _driver.abi3.so)"


def test_a_package_without_its_driver_says_so_in_one_message(homes: Path, tmp_path: Path) -> None:
    source = Path(dbdyno.__file__).parent
    shutil.copytree(source, tmp_path / "dbdyno", ignore=shutil.ignore_patterns("_driver*.so", "__pycache__"))
    said = subprocess.run(
        [sys.executable, "-c", "from dbdyno.cli import main; main()", "engines"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("error: Dyno's driver cannot be loaded: "), said.stderr
    assert "make setup" in said.stderr and "fault in Dyno" not in said.stderr


@pytest.mark.parametrize(
    ("message", "libc", "told"),
    [
        (MUSL, "musl", "this Linux has musl, and Dyno's wheels are linked for glibc"),
        (OLD, "glibc 2.27", "this Linux has glibc 2.27"),
    ],
)
def test_another_c_library_is_named(message: str, libc: str, told: str) -> None:
    error = incomplete(ImportError(message, name="dbdyno.driver._driver"), libc)
    assert error is not None and told in error.message and "glibc 2.28 or newer" in error.hint


def test_a_package_that_is_missing_is_named() -> None:
    error = incomplete(ModuleNotFoundError("No module named 'polars'", name="polars"), "glibc 2.36")
    assert error is not None and "the Python package polars" in error.message


def test_a_fault_of_dynos_own_is_told_as_one() -> None:
    assert incomplete(ImportError("cannot import name 'x' from 'dbdyno.run'", name="dbdyno.run"), "") is None


def test_the_c_library_of_this_python_is_known() -> None:
    assert c_library().startswith(("glibc 2.", "musl"))
