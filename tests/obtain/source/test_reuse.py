"""A build takes the objects of earlier ones by ccache, and shows that they are what its compiler makes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import BuildFailed
from dbdyno.host import cache
from dbdyno.host.cache import silently
from dbdyno.obtain.source import making, reuse
from dbdyno.obtain.source.build import Flags, Reused
from dbdyno.obtain.source.making import Materials, account_of, build_expected_s, made
from dbdyno.obtain.source.reuse import SWITCHED_OFF, reuse_of
from dbdyno.obtain.source.tree import local_tree
from tests.needs import needs_ccache, needs_gcc
from tests.obtain.source.making_cases import materials

pytestmark = [pytest.mark.usefixtures("homes", "reusing"), needs_gcc, needs_ccache]

FILES = ("main", "left", "right")
LINK = ("{cc}", "{cflags}", "-o", "{prefix}/toy", *(f"{{build}}/{name}.o" for name in FILES), "{ldflags}")


@pytest.fixture
def reusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCHED_OFF, raising=False)


def compiling(name: str) -> tuple[str, ...]:
    return "{cc}", "{cflags}", "-c", "-o", f"{{build}}/{name}.o", f"{{source}}/{name}.c"


def three_files(folder: Path, left: int = 2) -> Materials:
    """A source of three files in a folder, of which one tells its own place, and the build of it."""
    folder.mkdir(exist_ok=True)
    source = materials(folder, *map(compiling, FILES), LINK, code="/* Not compiled. */\n")
    place = folder / "toy"
    (place / "main.c").write_text(
        "int left(void), right(void);\nint main(void) { return left() + right(); }\n"
    )
    (place / "left.c").write_text(f"int left(void) {{ return {left}; }}\n")
    (place / "right.c").write_text("const char *place = __FILE__;\nint right(void) { return 1; }\n")
    return replace(source, source=local_tree(place))


def answer(folder: Path) -> int:
    return subprocess.run([folder / "prefix" / "toy"], check=False).returncode


def test_only_what_another_source_changes_is_compiled(tmp_path: Path) -> None:
    first = made(three_files(tmp_path / "one"), silently)
    second = made(three_files(tmp_path / "two", left=6), silently)
    counts = [(found.compiled, found.taken) for one in (first, second) if (found := account_of(one).reused)]
    assert counts == [(3, 0), (1, 2)]
    assert (answer(first), answer(second)) == (3, 7)
    assert sorted(path.name for path in second.iterdir()) == [
        "account.json", "build.json", "build.log", "prefix",
    ]  # fmt: skip


def test_it_is_the_same_file_as_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(three_files(tmp_path / "one", left=6), silently)
    taking = made(three_files(tmp_path / "two"), silently)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setenv(SWITCHED_OFF, "1")
    alone = made(three_files(tmp_path / "two"), silently)
    assert account_of(alone).reused is None
    assert (taking / "prefix" / "toy").read_bytes() == (alone / "prefix" / "toy").read_bytes()


def test_some_objects_are_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "AGAIN_ONE_IN", 1)
    made(three_files(tmp_path / "one"), silently)
    found = account_of(made(three_files(tmp_path / "two", left=6), silently)).reused
    assert found and found.words == "2 of 3 objects taken from earlier builds, 3 compiled again: the same"


def test_an_object_that_is_not_the_compilers_own_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "AGAIN_ONE_IN", 1)
    wanted = three_files(tmp_path / "one")
    wavering = tmp_path / "cc"
    wavering.write_text(f'#!/bin/sh\nexec {wanted.toolchain.cc} -DTURN="$$" "$@"\n')
    wavering.chmod(0o755)
    (tmp_path / "one" / "toy" / "left.c").write_text("int turn = TURN;\nint left(void) { return 2; }\n")
    wavers = replace(
        wanted,
        source=local_tree(tmp_path / "one" / "toy"),
        toolchain=wanted.toolchain.but(cc=str(wavering), digest="wavering"),
    )
    with pytest.raises(BuildFailed, match=r"ccache gave another object than left\.o"):
        made(wavers, silently)


def test_another_compiler_takes_nothing(tmp_path: Path) -> None:
    made(three_files(tmp_path / "one"), silently)
    other = three_files(tmp_path / "two", left=6)
    other = replace(other, toolchain=other.toolchain.but(digest="another"))
    found = account_of(made(other, silently)).reused
    assert found and (found.compiled, found.taken) == (3, 0)


def test_a_build_that_takes_objects_does_not_say_how_long_one_takes(tmp_path: Path) -> None:
    first = three_files(tmp_path / "one")
    took_s = account_of(made(first, silently)).took_s
    made(three_files(tmp_path / "two", left=6), silently)
    assert len(making.all_made()) == 2 and build_expected_s(first.recipe, is_trained=False) == took_s


def test_a_placebo_is_expected_to_take_as_long_as_builds_that_took_all_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = three_files(tmp_path / "one")
    account = account_of(made(first, silently))
    compiled = account.but(took_s=600.0, reused=Reused(compiled=3, taken=0, compared=0))
    taken = account.but(took_s=60.0, reused=Reused(compiled=0, taken=3, compared=1))
    monkeypatch.setattr(making, "all_made", lambda: [compiled])
    assert build_expected_s(first.recipe, is_trained=False, is_placebo=True) == 600.0, "none took any yet"
    monkeypatch.setattr(making, "all_made", lambda: [compiled, taken])
    assert build_expected_s(first.recipe, is_trained=False, is_placebo=True) == 60.0
    assert build_expected_s(first.recipe, is_trained=False) == 600.0
    monkeypatch.setenv(SWITCHED_OFF, "1")
    assert build_expected_s(first.recipe, is_trained=False, is_placebo=True) == 600.0


@pytest.mark.parametrize(
    "flags", [Flags(compile=("-flto=auto",)), Flags(compile=("-fprofile-use",)), Flags(link=("-flto",))]
)
def test_flags_whose_objects_differ_each_time_take_nothing(tmp_path: Path, flags: Flags) -> None:
    toolchain = three_files(tmp_path / "one").toolchain
    assert reuse_of(toolchain, (), Flags(compile=("-O2",)), silently) is not None
    assert reuse_of(toolchain, (), flags, silently) is None


def test_a_build_that_began_otherwise_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted, wanted = tmp_path / "noted", three_files(tmp_path / "one")
    noting = wanted.recipe.steps[0].but(name="note", command=("sh", "-c", f'echo "$PWD" >>{noted}'))
    steps = (noting, *wanted.recipe.steps)
    wanted = replace(wanted, recipe=wanted.recipe.but(steps=steps))

    def interrupt(line: str) -> None:
        if f", {len(steps)} of {len(steps)}" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(wanted, interrupt)
    monkeypatch.setenv(SWITCHED_OFF, "1")
    folder = made(wanted, silently)
    assert answer(folder) == 3 and account_of(folder).reused is None
    assert noted.read_text().split() == [str(reuse.place() / "work"), f"{folder}.making/work"]


def test_what_is_kept_of_objects_can_be_freed(tmp_path: Path) -> None:
    made(three_files(tmp_path / "one"), silently)
    kept = list(cache.shelf(reuse.KIND).kept())
    assert [(one.name, one.what) for one in kept] == [("ccache", "objects that builds share")]
    cache.release()
    assert cache.shelf(reuse.KIND).free("ccache") and not list(cache.shelf(reuse.KIND).kept())
