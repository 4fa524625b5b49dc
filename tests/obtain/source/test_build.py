"""The key of a build: the same materials give the same one, and each of them changes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import Blocked
from dbdyno.obtain.architecture import of_this_machine
from dbdyno.obtain.debian import Fetched
from dbdyno.obtain.source.build import (
    BEHIND,
    EMULATE,
    GUIDED,
    INSTRUMENTING,
    RELOCATIONS,
    SECTIONS,
    WHOLE_FUNCTIONS,
    Bolting,
    Build,
    BuildSpecification,
    Flags,
    Target,
    Trainer,
    all_flags,
    flags_of,
    target_here,
)
from dbdyno.obtain.source.recipe import Recipe
from tests.needs import needs_any_gcc

words = st.text(min_size=1, max_size=8)
tuples = st.lists(words, max_size=3).map(tuple)
flags = st.builds(Flags, compile=tuples, link=tuples)
levels = st.lists(st.tuples(words, words | st.integers(2, 9)), max_size=3).map(tuple)
trainers = st.builds(
    Trainer,
    workload=words,
    options=levels,
    settings=levels,
    clients=st.integers(1, 3),
    transactions=st.integers(1, 3),
)
builds = st.builds(
    Build,
    engine=words,
    recipe=words,
    source=words,
    patches=tuples,
    toolchain=words,
    flags=flags,
    target=tuples,
    environment=st.dictionaries(words, words, max_size=3),
    trainer=st.none() | trainers,
    instrumented=st.none() | flags,
    instrumented_environment=st.dictionaries(words, words, max_size=3),
    profile=st.just("") | words,
    bolting=st.none() | st.builds(Bolting, trainer=trainers, tool=words, options=tuples),
    bolt_profile=st.just("") | words,
)

CHANGES = {
    "engine": "x",
    "recipe": "x",
    "source": "x",
    "patches": ("x",),
    "toolchain": "x",
    "flags": Flags(compile=("x",)),
    "target": ("x",),
    "environment": {"x": "x"},
    "trainer": Trainer(workload="x", transactions=1),
    "instrumented": Flags(compile=("x",)),
    "instrumented_environment": {"x": "x"},
    "profile": "x",
    "script": "x",
    "bolting": Bolting(trainer=Trainer(workload="x", transactions=1), tool="x", options=()),
    "bolt_profile": "x",
    "architecture": "x",
    "root": "x",
}


@given(builds)
def test_the_same_materials_have_the_same_key(build: Build) -> None:
    assert Build.model_validate_json(build.model_dump_json()).key == build.key


@given(builds, builds)
def test_different_materials_have_different_keys(one: Build, other: Build) -> None:
    assert (one == other) == (one.key == other.key)


@pytest.mark.parametrize("name", Build.model_fields)
def test_each_of_the_materials_changes_the_key(name: str) -> None:
    build = Build(engine="e", recipe="r", source="s", patches=(), toolchain="t", flags=Flags())
    assert build.but(**{name: CHANGES[name]}).key != build.key


@given(trainers, trainers)
def test_builds_of_different_trainers_have_different_keys(one: Trainer, other: Trainer) -> None:
    build = Build(engine="e", recipe="r", source="s", patches=(), toolchain="t", flags=Flags())
    keys = [build.but(trainer=trainer).key for trainer in (one, other)]
    assert (one == other) == (keys[0] == keys[1])
    assert build.key not in keys


def test_the_order_of_patches_and_flags_matters() -> None:
    build = Build(engine="e", recipe="r", source="s", patches=("a", "b"), toolchain="t", flags=Flags())
    assert build.but(patches=("b", "a")).key != build.key
    flags = [Flags(compile=("-O2", "-O3")), Flags(compile=("-O3", "-O2"))]
    assert len({build.but(flags=each).key for each in flags}) == 2


def test_a_key_does_not_depend_on_the_process() -> None:
    """Python's own hash of a text does."""
    code = (
        "from dbdyno.obtain.source.build import Build; from dbdyno.obtain.source.build import Flags; "
        "print(Build(engine='e', recipe='r', source='s', patches=(), toolchain='t', flags=Flags()).key)"
    )
    said = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1


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


@pytest.mark.parametrize(
    ("knob", "level", "family", "flags"),
    [
        ("optimisation", "-O3", "gcc", Flags(compile=("-O3",))),
        ("flags", "-fno-plt -Wall", "gcc", Flags(compile=("-fno-plt", "-Wall"))),
        ("flags", "none", "gcc", Flags()),
        ("march", "native", "clang", Flags(compile=("-march=native",))),
        ("march", "default", "clang", Flags()),
        ("lto", "full", "gcc", Flags(compile=("-flto=auto",), link=("-flto=auto",))),
        ("lto", "thin", "clang", Flags(compile=("-flto=thin",), link=("-flto=thin",))),
        ("lto", "off", "gcc", Flags()),
        ("linker", "lld", "clang", Flags(link=("-fuse-ld=lld",))),
        ("linker", "default", "gcc", Flags()),
        ("hardening", "default", "gcc", Flags()),
        ("layout", "default", "gcc", Flags()),
        ("layout", "none", "gcc", Flags(compile=SECTIONS, link=SECTIONS)),
        ("layout", "7", "clang", Flags(compile=SECTIONS, link=SECTIONS)),
        ("bolt", "off", "gcc", Flags()),
        ("bolt", "tpcb scale=2", "gcc", Flags(compile=WHOLE_FUNCTIONS, link=RELOCATIONS)),
        ("bolt", "tpcb", "clang", Flags(link=RELOCATIONS)),
    ],
)
def test_a_level_means_flags(knob: str, level: str, family: str, flags: Flags) -> None:
    assert flags_of(knob, level, family) == flags


def test_hardening_is_switched_on_and_off() -> None:
    on, off = flags_of("hardening", "full", "gcc"), flags_of("hardening", "off", "gcc")
    assert "-fstack-protector-strong" in on.compile and "-fno-stack-protector" in off.compile
    assert "-Wl,-z,now" in on.link and "-Wl,-z,lazy" in off.link


def test_gcc_has_no_thin_lto() -> None:
    with pytest.raises(Blocked) as refused:
        all_flags(BuildSpecification(lto="thin"), "gcc")
    assert refused.value.factor == "build.lto" and refused.value.hint


def test_what_the_study_writes_as_flags_comes_last() -> None:
    flags = all_flags(BuildSpecification(optimisation="-O2", march="x86-64-v3", flags="-O1"), "gcc")
    assert flags.compile[-1] == "-O1" and "-O2" in flags.compile


@pytest.mark.parametrize("profiling", [*INSTRUMENTING.values(), *GUIDED.values()])
def test_what_the_study_writes_as_flags_comes_after_those_of_a_profile(profiling: Flags) -> None:
    flags = all_flags(BuildSpecification(flags="-fno-profile-generate"), "gcc", profiling)
    assert flags.compile[-1 - len(profiling.compile) :] == (*profiling.compile, "-fno-profile-generate")
    assert flags.link[-len(profiling.link) or len(flags.link) :] == profiling.link


def test_a_trainer_says_what_it_does() -> None:
    assert Trainer(workload="tpcb", transactions=5000).words == "tpcb, 5,000 transactions of 1 client"
    options = (("tables", 4), ("skip_trx", True), ("secondary", False), ("pareto_h", 0.0), ("file", ""))
    more = Trainer(workload="read_write", options=options, clients=8, transactions=10)
    told = "read_write tables=4 skip_trx=true pareto_h=0.0, 10 transactions of 8 clients"
    assert more.words == told


def test_the_words_of_a_wish_tell_what_is_not_the_default() -> None:
    assert BuildSpecification().words == "gcc -O2"
    wish = BuildSpecification(
        compiler="gcc-12", march="native", lto="full", patches="a.patch", hardening="off"
    )
    assert wish.words == "gcc-12 -O2 -march=native LTO full hardening off patches a.patch"
    both = BuildSpecification(pgo="tpcb scale=2", bolt="read_only")
    assert both.words == "gcc -O2 PGO by tpcb scale=2 BOLT by read_only"


def test_a_seed_is_told_and_no_seed_is_not() -> None:
    assert [BuildSpecification(layout=level).seed for level in ("default", "none", "7")] == [None, None, 7]
    assert BuildSpecification(layout="none").words == "gcc -O2"
    assert BuildSpecification(layout="7").words == "gcc -O2 layout 7"


def test_a_linker_that_takes_no_part_of_a_script_cannot_shuffle() -> None:
    all_flags(BuildSpecification(layout="none", linker="lld"), "clang")
    with pytest.raises(Blocked, match="lld cannot shuffle functions") as refused:
        all_flags(BuildSpecification(layout="7", linker="lld"), "clang")
    assert refused.value.factor == "build.layout"
