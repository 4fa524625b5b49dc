"""The key of a build: the same materials give the same one, and each of them changes it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.obtain.source.build import Bolting, Build
from dbdyno.obtain.source.wish import Flags, Trainer

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
        "from dbdyno.obtain.source.build import Build; from dbdyno.obtain.source.wish import Flags; "
        "print(Build(engine='e', recipe='r', source='s', patches=(), toolchain='t', flags=Flags()).key)"
    )
    said = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1
