"""A seed moves functions and changes none of them: gcc and GNU ld show it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.code import compare_code
from dbdyno.obtain.binary import read_code, read_pair
from dbdyno.obtain.source.bolt import ALPHABET, CLASSES, script
from dbdyno.obtain.source.build import SECTIONS
from tests.needs import needs_gcc
from tests.obtain.binary import MAIN, STORE

SEEDS = st.integers(1, 10**9)
ENDINGS = ("read", "write", "commit", "undo", "open", "close", "seek", "sync", "lock", "free")


@given(SEEDS)
def test_every_ending_of_a_name_has_one_place(seed: int) -> None:
    triples = re.findall(r"\*\(\.text\.\*\[(.*)\]\[(.*)\]\[(.*)\]\)", script(seed))
    assert len(set(triples)) == len(triples) == CLASSES**3
    for position in range(3):
        classes = {triple[position] for triple in triples}
        assert sorted("".join(classes)) == sorted(ALPHABET)


@given(SEEDS, SEEDS)
def test_a_seed_always_gives_the_same_order_and_another_seed_another(one: int, other: int) -> None:
    assert script(one) == script(one)
    assert (script(one) == script(other)) is (one == other)


def sources(folder: Path, files: int) -> list[str]:
    """As many files with functions that call those of other files."""
    for number in range(files):
        names = [f"{ending}_{number}" for ending in ENDINGS]
        following = f"open_{(number + 1) % files}"
        text = (
            f"int {following}(int);\n__attribute__((cold)) void gone_{number}(void) {{ __builtin_trap(); }}\n"
        )
        text += "".join(
            f"__attribute__((noinline)) int {name}(int n) {{ if (n < -{at}) gone_{number}(); "
            f"return n > {at} ? {following}(n - {at + 1}) * {at + 3} : {at}; }}\n"
            for at, name in enumerate(names)
        )
        (folder / f"part{number}.c").write_text(text)
    (folder / "store.c").write_text(STORE)
    (folder / "main.c").write_text(MAIN)
    return [f"part{number}.c" for number in range(files)]


def linked(folder: Path, name: str, texts: list[str], *flags: str, seed: int | None = None) -> Path:
    command = ["gcc", "-O2", *SECTIONS, *flags, *texts, "store.c", "main.c", "-o", name]
    if seed is not None:
        (folder / f"{name}.ld").write_text(script(seed))
        command.append(f"-Wl,-T,{name}.ld")
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return folder / name


KINDS = {
    "library": ("-fPIC", "-shared"),
    "program": ("-fPIE", "-pie"),
    "of a fixed place": ("-fno-pie", "-no-pie"),
    "of one piece": ("-flto", "-fPIC", "-shared"),
}


@needs_gcc
@pytest.mark.parametrize("files", [1, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_a_placebo_has_the_same_functions_elsewhere(tmp_path: Path, kind: str, files: int) -> None:
    texts, flags = sources(tmp_path, files), KINDS[kind]
    baseline = linked(tmp_path, "baseline", texts, *flags)
    places = set()
    for seed in (1, 2, 3):
        placebo = linked(tmp_path, f"placebo{seed}", texts, *flags, seed=seed)
        found = compare_code(*read_pair(baseline, placebo))
        assert found.beside.same, (found.functions, found.changes, found.changed_data)
        assert found.moved >= 3
        functions = read_code(placebo).functions
        places.add(tuple(sorted((one.address, one.name) for one in functions)))
        if "shared" not in flags:
            ran = subprocess.run([placebo], check=False).returncode
            assert ran == subprocess.run([baseline], check=False).returncode
    assert len(places) == 3, "each seed has an order of its own"


@needs_gcc
@pytest.mark.parametrize("kind", KINDS)
def test_all_code_is_in_one_section(tmp_path: Path, kind: str) -> None:
    """Of a file with two, Valgrind reads no symbols, so that nothing of it can be counted by function."""
    program = linked(tmp_path, "shuffled", sources(tmp_path, 2), *KINDS[kind], seed=7)
    told = subprocess.run(
        ["readelf", "--wide", "--sections", program], check=True, capture_output=True, text=True
    )
    assert re.findall(r"\] (\.text\S*) ", told.stdout) == [".text"]
