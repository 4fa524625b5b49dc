"""Compiling, linking and running are told apart. This machine's own compiler stands for one of another.
Instructions that an emulator logs are counted, one a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.errors import EngineMissing, UserError
from dbdyno.obtain import debian
from dbdyno.obtain.architecture import ARCHITECTURES, emulator, of_this_machine
from dbdyno.obtain.cross import (
    PROGRAMS,
    Compiler,
    Platforms,
    ProgramStage,
    compiler_of,
    count_instructions,
    counter,
    tried_program,
)
from dbdyno.obtain.installation import Installation
from tests.needs import needs_gcc, on_machine
from tests.obtain import signed_repository

NATIVE = Compiler("gcc", ())


@needs_gcc
@pytest.mark.parametrize(
    ("source", "reached", "said"),
    [
        ("#include <nowhere.h>\n", None, "nowhere.h: No such file"),
        (
            "int declared(void); int main(void) { return declared(); }",
            ProgramStage.COMPILES,
            "undefined reference to",
        ),
        ("int main(void) { return 7; }", ProgramStage.LINKS, "7"),
        ("int main(void) { return *(volatile int *)0; }", ProgramStage.LINKS, "SIGSEGV"),
        ('#include <stdio.h>\nint main(void) { printf("a\\nb"); return 0; }', ProgramStage.RUNS, "a; b"),
    ],
)
def test_a_program_comes_as_far_as_it_comes(
    source: str, reached: ProgramStage | None, said: str, tmp_path: Path
) -> None:
    found = tried_program(source, NATIVE, tmp_path)
    assert found.reached is reached
    assert said in found.said


@needs_gcc
def test_a_program_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.obtain.cross.RUN_S", 1.0)
    found = tried_program('int main(void) { for (;;) __asm__(""); }', NATIVE, tmp_path)
    assert (found.reached, found.said) == (ProgramStage.LINKS, "it did not end within 1 s")


@needs_gcc
def test_this_machine_compiles_and_links_what_is_asked_of_others(tmp_path: Path) -> None:
    """The kernel may know fewer calls than the headers, and 16 bytes may need a library."""
    for name, source in PROGRAMS.items():
        found = tried_program(source, NATIVE, tmp_path)
        assert found.reached in (ProgramStage.LINKS, ProgramStage.RUNS) or name.endswith("16 bytes"), (
            name,
            found,
        )
    assert tried_program(PROGRAMS["byte order and page size"], NATIVE, tmp_path).said.startswith(
        "little-endian"
    )


def test_a_missing_compiler_is_told_with_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    foreign = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
    with pytest.raises(UserError, match=f"{foreign.triplet}-gcc is not installed") as missing:
        compiler_of(foreign)
    assert missing.value.hint == f"apt-get install gcc-{foreign.triplet} libc6-dev-{foreign.name}-cross"


RECIPE = debian.DebianRecipe(
    engine="toy",
    packages=("toy-server",),
    server="toy-server",
    binary="usr/sbin/toyd",
    suites={"3.1": signed_repository.SUITE},
)
TOYS = Platforms(
    engine="toy",
    title="Toy",
    version=r"toyd (\S+)",
    recipes=(RECIPE,),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
FOREIGN = next(one.name for one in ARCHITECTURES.values() if one != of_this_machine())


@pytest.mark.skipif(
    not all(on_machine(program) for program in ("apt-get", "dpkg", "gpg")),
    reason="needs apt, dpkg and gpg, which this machine lacks",
)
def test_packages_of_another_architecture_are_no_engine_of_this_machine(tmp_path: Path, homes: Path) -> None:
    repository = signed_repository.make(
        tmp_path / "repository",
        package="toy-server",
        version="1:3.1.4-2",
        files={"usr/sbin/toyd": b"toyd", "usr/lib/ld64.so.1": b"no program"},
        architecture=FOREIGN,
    )
    recipe = RECIPE.of(FOREIGN)
    copy = debian.fetch(recipe, "3.1", mirror=repository.mirror, keyring=repository.keyring)
    assert copy.packages == {"toy-server": "1:3.1.4-2"}
    assert (copy.architecture, copy.prefix.name.partition("-3.1.4")[0]) == (FOREIGN, f"{FOREIGN}-of-toy")
    assert debian.fetched("toy") == []
    found = TOYS.locate("3.1.9", FOREIGN)
    assert (found.engine, found.version, found.architecture) == ("toy", "3.1.4", FOREIGN)
    assert found.facts == {"packages": "toy-server 1:3.1.4-2"}
    assert [offer.engine for offer in TOYS.offers()] == [f"toy of {FOREIGN}"]


def test_what_is_not_here_is_told_with_the_command_that_obtains_it(homes: Path) -> None:
    with pytest.raises(EngineMissing, match=f"toy@3.1 of {FOREIGN} is not on this machine") as missing:
        TOYS.locate("3.1.4", FOREIGN)
    assert missing.value.hint == f"`dyno engines fetch toy@3.1 --platform {FOREIGN}` obtains it"


def test_a_version_that_no_suite_holds_is_the_users_mistake(homes: Path) -> None:
    with pytest.raises(UserError, match="toy@2 is in no Debian suite of other architectures") as refused:
        TOYS.locate("2", FOREIGN)
    assert refused.value.hint == "there are: toy@3.1"


COUNTED_FOREIGN = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
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
    program = tmp_path / f"qemu-{COUNTED_FOREIGN.emulator}-static"
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
    command = (*emulator(COUNTED_FOREIGN.name), "/nowhere/toy")
    toy = Installation("toy", "1", "a test", folder, command, "digest", architecture=COUNTED_FOREIGN.name)
    return count_instructions(toy, (), folder / "script")


def test_each_line_that_tells_an_instruction_counts(stand_in: Path, tmp_path: Path) -> None:
    assert count(tmp_path, "0") == 2


def test_a_program_that_fails_counts_for_nothing(stand_in: Path, tmp_path: Path) -> None:
    assert count(tmp_path, "3") is None


def test_an_emulator_that_cannot_go_singly_counts_nothing(stand_in: Path, tmp_path: Path) -> None:
    stand_in.write_text("#!/bin/sh\n")
    assert counter(COUNTED_FOREIGN.name) == () and count(tmp_path, "0") is None
