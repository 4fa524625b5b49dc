"""Programs in C++ that press what `patches` holds: compiled with the pollset shim, and run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.needs import on_machine

PROGRAMS = Path(__file__).parent
PATCHES = PROGRAMS.parent.parent / "patches"
SHIM = PATCHES / "shims" / "pollset"
COMPILER = on_machine("g++", "clang++") or ""
GIVEN_UP_S = 120

needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a compiler for C++: apt install g++")


def compiled(source: Path, folder: Path, *options: str) -> Path:
    """A program of the source and the shim. The folder may hold the back end."""
    program = folder / source.stem
    flags = ["-std=c++11", "-pthread", "-Wall", "-Wextra", "-Werror", f"-I{SHIM}", f"-I{folder}"]
    files = [str(source), str(SHIM / "pollset.cc")]
    subprocess.run([COMPILER, *flags, *options, *files, "-o", str(program)], check=True)
    return program


def started(program: Path, *arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        env={**os.environ, **surroundings},
        capture_output=True,
        text=True,
        timeout=GIVEN_UP_S,
    )
