"""Roots that builds for other architectures are made against, and what runs their programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dbdyno.obtain.architecture import of_this_machine
from dbdyno.obtain.debian import Fetched
from dbdyno.obtain.source.recipe import Recipe
from dbdyno.obtain.source.target import BEHIND, EMULATE, Target, target_here
from tests.needs import needs_any_gcc

PROGRAM = "#include <stdio.h>\nint main(int c, char **v) { return puts(v[0]) < 0 || c - 2; }\n"


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """This machine's own architecture, with a root that holds its loader and its C library."""
    own = of_this_machine()
    assert own is not None
    libraries = tmp_path / "root" / "lib" / own.triplet
    libraries.mkdir(parents=True)
    for name in ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6"):
        found = next(iter(Path("/lib").glob(f"{own.triplet}/{name}")), None)
        if found is not None:
            (libraries / name).symlink_to(found)
    root = Fetched("toy", "1", "bookworm", tmp_path / "root", "digest", 0.0, own.name)
    return Target(own, root)


def compiled(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    source = file.with_name("program.c")
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-o", file, source], check=True)
    return file


def run(*command: Path | str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@needs_any_gcc
def test_programs_run_by_their_names_while_the_tests_of_a_source_run(target: Target, tmp_path: Path) -> None:
    program, script = compiled(tmp_path / "bin" / "toy"), tmp_path / "bin" / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    before = program.read_bytes()
    with target.fronted(tmp_path / "bin", libraries=()):
        assert program.read_text().startswith("#!/bin/sh\nexec ")
        # A program finds its own files by the name by which it was called.
        assert run(program, "argument") == str(program)
        assert script.read_text() == "#!/bin/sh\n"
    assert program.read_bytes() == before
    assert not program.with_name(program.name + BEHIND).exists()


@needs_any_gcc
def test_a_build_runs_what_it_makes_on_the_root(target: Target, tmp_path: Path) -> None:
    target.lay(tmp_path)
    program = compiled(tmp_path / "toy")
    assert run(tmp_path / EMULATE, program, "argument") == str(program)
    assert target.flags.compile == target.flags.link == (f"--sysroot={tmp_path / 'root'}",)
    assert target.places["triplet"] == target.architecture.triplet


def test_a_root_that_was_never_fetched_is_not_here(homes: Path) -> None:
    recipe = Recipe.model_validate(
        {"engine": "toy", "program": "toy", "steps": [{"name": "make", "command": ["make"]}]}
    )
    assert target_here(recipe, "s390x") is None
