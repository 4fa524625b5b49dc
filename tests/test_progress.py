"""A run says how many tests of how many ended, which failed and what is left; its end is pytest's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.progress import KNOWN_AFTER_S, LONG_S, USUAL_S, Progress, weights_of

TESTS = Path(__file__).parent
SUITE = """
import pytest

@pytest.mark.parametrize("number", range(5))
def test_works(number):
    pass

def test_fails():
    assert 1 == 2, "as it happens"

@pytest.fixture
def broken():
    raise ValueError("no such thing")

def test_has_no_fixture(broken):
    pass
"""


def words(folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--progress", *options, "--rootdir"]
    return [*command, str(folder), str(folder)]


def variables() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS.parent)}


def run_of(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(folder, *options), env=variables(), capture_output=True, text=True)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_each_line_stands_by_itself_and_the_closing_line_is_pytests(
    workers: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests import progress\nfrom tests.conftest import *\nprogress.EVERY_S = 0.0\n"
    )
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = run_of(tmp_path, *workers)
    lines = done.stdout.splitlines()
    begun = next(place for place, line in enumerate(lines) if line.startswith("7 tests, about "))
    of_seven = [
        line for line in lines[begun:] if re.fullmatch(r"\d of 7 tests, \d+ s left(, \d failed)?", line)
    ]
    assert [line[0] for line in of_seven] == list("1234567"), done.stdout + done.stderr
    assert of_seven[-1].endswith("2 failed")
    failed = [line for line in lines if line.startswith("FAILED") and "): " in line]
    assert any("test_fails (call): AssertionError: as it happens" in line for line in failed)
    assert any("test_has_no_fixture (setup): ValueError: no such thing" in line for line in failed)
    assert re.match(r"1 failed, 5 passed, 1 error in ", lines[-1]), lines[-1]
    assert not [line for line in lines[begun : begun + 10] if set(line) <= set(".FE [10%]") and line]


WAITING = """
import time
from pathlib import Path

def test_is_told():
    pass

def test_ends_when_that_was_read():
    for _ in range(600):
        if (Path(__file__).parent / "read").exists():
            return
        time.sleep(0.05)
    raise AssertionError("nobody read it")
"""


def test_a_line_can_be_read_while_the_tests_go_on(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests import progress\nfrom tests.conftest import *\nprogress.EVERY_S = 0.0\n"
    )
    (tmp_path / "test_suite.py").write_text(WAITING)
    with subprocess.Popen(words(tmp_path), env=variables(), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("1 of 2 tests, "):
                (tmp_path / "read").touch()
    assert run.returncode == 0


def test_a_test_weighs_what_one_of_its_file_took_before() -> None:
    names = ["tests/cli/test_soak.py::a", "tests/cli/test_soak.py::b[x::y]", "tests/test_run.py::c"]
    assert weights_of(names, {"cli/test_soak.py": 9.0}) == {names[0]: 9.0, names[1]: 9.0, names[2]: USUAL_S}
    assert weights_of(names[2:], {}, ["test_run.py"]) == {names[2]: LONG_S}


def test_what_is_left_follows_from_what_ended_on_this_machine() -> None:
    now = 0.0
    progress = Progress({"test_a.py": 100.0}, lambda line: None, clock=lambda: now, workers=2)
    names = [f"tests/test_a.py::{number}" for number in range(10)]
    progress.begin(names)
    assert progress.left_s() == pytest.approx(500.0)
    now, progress.ended = 1e6, set(names[:5])
    assert progress.left_s() == pytest.approx(1e6, rel=0.3), "half of it took so long"
    progress.ended = set(names)
    assert progress.left_s() == 0.0 < KNOWN_AFTER_S


def test_a_file_that_takes_long_and_does_not_begin_first_is_told() -> None:
    progress = Progress({}, lambda line: None, long=["test_a.py", "test_b.py", "test_c.py"])
    took_s = {"test_a.py": 90.0, "test_b.py": 40.0, "test_c.py": 10.0, "test_d.py": 39.0, "test_e.py": 41.0}
    assert progress.late(took_s) == ["test_e.py"]
    assert progress.late({"test_a.py": 90.0, "test_e.py": 200.0}) == [], "only a part was run"


def test_what_failed_before_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_suite.py").write_text("def test_sways():\n    assert False\n")
    assert "In the last" not in run_of(tmp_path).stdout
    (tmp_path / "test_suite.py").write_text("def test_sways():\n    assert True\n")
    for runs in (1, 2):
        said = run_of(tmp_path).stdout
        assert f"In the last {runs} runs failed at least once: test_suite.py::test_sways\n" in said, said
