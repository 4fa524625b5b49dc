"""Compiling, linking and running are told apart. This machine's own compiler stands for one of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.obtain.architecture import ARCHITECTURES, of_this_machine
from dbdyno.obtain.cross import PROGRAMS, Compiler, Step, compiler_of, tried
from tests.needs import needs_gcc

NATIVE = Compiler("gcc", ())


@needs_gcc
@pytest.mark.parametrize(
    ("source", "reached", "said"),
    [
        ("#include <nowhere.h>\n", None, "nowhere.h: No such file"),
        (
            "int declared(void); int main(void) { return declared(); }",
            Step.COMPILES,
            "undefined reference to",
        ),
        ("int main(void) { return 7; }", Step.LINKS, "7"),
        ("int main(void) { return *(volatile int *)0; }", Step.LINKS, "SIGSEGV"),
        ('#include <stdio.h>\nint main(void) { printf("a\\nb"); return 0; }', Step.RUNS, "a; b"),
    ],
)
def test_a_program_comes_as_far_as_it_comes(
    source: str, reached: Step | None, said: str, tmp_path: Path
) -> None:
    found = tried(source, NATIVE, tmp_path)
    assert found.reached is reached
    assert said in found.said


@needs_gcc
def test_a_program_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.obtain.cross.RUN_S", 1.0)
    found = tried('int main(void) { for (;;) __asm__(""); }', NATIVE, tmp_path)
    assert (found.reached, found.said) == (Step.LINKS, "it did not end within 1 s")


@needs_gcc
def test_this_machine_compiles_and_links_what_is_asked_of_others(tmp_path: Path) -> None:
    """The kernel may know fewer calls than the headers, and 16 bytes may need a library."""
    for name, source in PROGRAMS.items():
        found = tried(source, NATIVE, tmp_path)
        assert found.reached in (Step.LINKS, Step.RUNS) or name.endswith("16 bytes"), (name, found)
    assert tried(PROGRAMS["byte order and page size"], NATIVE, tmp_path).said.startswith("little-endian")


def test_a_missing_compiler_is_told_with_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    foreign = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
    with pytest.raises(UserError, match=f"{foreign.triplet}-gcc is not installed") as missing:
        compiler_of(foreign)
    assert missing.value.hint == f"apt-get install gcc-{foreign.triplet} libc6-dev-{foreign.name}-cross"
