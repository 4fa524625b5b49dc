"""Instructions that an emulator logs, one line each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.obtain.architecture import ARCHITECTURES, emulator, of_this_machine
from dbdyno.obtain.cross import count_instructions, counter
from dbdyno.obtain.installation import Installation

FOREIGN = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
STAND_IN = """#!/bin/sh
[ "$1" != --help ] || { echo "-singlestep  one instruction at a time"; exit; }
# Options of the log come before the program, which tells how it ends.
printf 'Trace 0: a\\nStopped execution\\nTrace 0: b\\n' >"$5"
read -r line
exit "$line"
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program that stands for the emulator of another architecture."""
    program = tmp_path / f"qemu-{FOREIGN.emulator}-static"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for cached in (counter, emulator):
        cached.cache_clear()
    yield program
    for cached in (counter, emulator):
        cached.cache_clear()


def count(folder: Path, script: str) -> int | None:
    (folder / "script").write_text(f"{script}\n")
    command = (*emulator(FOREIGN.name), "/nowhere/toy")
    toy = Installation("toy", "1", "a test", folder, command, "digest", architecture=FOREIGN.name)
    return count_instructions(toy, (), folder / "script")


def test_each_line_that_tells_an_instruction_counts(stand_in: Path, tmp_path: Path) -> None:
    assert count(tmp_path, "0") == 2


def test_a_program_that_fails_counts_for_nothing(stand_in: Path, tmp_path: Path) -> None:
    assert count(tmp_path, "3") is None


def test_an_emulator_that_cannot_go_singly_counts_nothing(stand_in: Path, tmp_path: Path) -> None:
    stand_in.write_text("#!/bin/sh\n")
    assert counter(FOREIGN.name) == () and count(tmp_path, "0") is None
