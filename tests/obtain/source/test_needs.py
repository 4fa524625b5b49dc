"""What a recipe needs beside the compiler is asked for before anything is built, and all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import Blocked
from dbdyno.obtain.source.needs import require_needs
from dbdyno.obtain.source.recipe import Step
from tests.needs import needs_gcc

GCC = ("gcc",)


def step(**needs: str) -> Step:
    return Step(name="configure", command=("true",), needs=needs)


def test_all_missing_programs_are_named_with_one_command() -> None:
    steps = [step(sh="dash", nobison="bison"), step(noflex="flex", nolex="flex")]
    with pytest.raises(Blocked) as refused:
        require_needs(steps, GCC)
    assert refused.value.factor == "source.recipe"
    assert (
        refused.value.message == "a build needs nobison, noflex and nolex, which this machine does not have"
    )
    assert refused.value.hint == "apt-get install bison flex"


def test_what_is_here_is_not_missed() -> None:
    require_needs([step(sh="dash"), step()], GCC)


@needs_gcc
def test_a_header_that_the_compiler_does_not_find_is_named() -> None:
    headers = {"stdio.h": "libc6-dev", "no/such/linux.h": "liblinux-dev"}
    with pytest.raises(Blocked) as refused:
        require_needs([step(**headers)], GCC)
    assert refused.value.message == "a build needs no/such/linux.h, which this machine does not have"
    assert refused.value.hint == "apt-get install liblinux-dev"


@needs_gcc
def test_headers_are_looked_for_where_the_flags_say(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    # Only that it is there counts: this one is C++.
    (tmp_path / "toy" / "toy.h").write_text("#include <vector>\nclass Toy {};\n")
    require_needs([step(**{"toy/toy.h": "libtoy-dev"})], (*GCC, f"-I{tmp_path}"))
    with pytest.raises(Blocked):
        require_needs([step(**{"toy/toy.h": "libtoy-dev"})], GCC)


def test_a_process_asks_the_compiler_once(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\n")
    compiler.chmod(0o755)
    for _ in range(2):
        require_needs([step(**{"stdio.h": "libc6-dev"})], [str(compiler)])
    assert (tmp_path / "log").read_text() == "asked\n"


def test_a_compiler_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "cc"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr("dbdyno.obtain.source.toolchain.ANSWER_MOST_S", 0.2)
    with pytest.raises(Blocked, match=r"does not end within 0\.2 s"):
        require_needs([step(**{"stdio.h": "libc6-dev"})], (str(silent),))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("#!/bin/sh\necho 'cc: error: no such flag' >&2\nexit 1\n", "no such flag"),
        ("no program", "cannot be run"),
    ],
)
def test_a_compiler_that_cannot_look_for_headers_is_told(tmp_path: Path, text: str, cause: str) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(text)
    compiler.chmod(0o755)
    with pytest.raises(Blocked, match=cause) as refused:
        require_needs([step(**{"stdio.h": "libc6-dev"})], (str(compiler),))
    assert refused.value.factor == "build.compiler"
