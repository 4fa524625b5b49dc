"""Skips that are not allowed fail their test, and the list holds the reason of each skip of the suite."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import skips

TESTS = Path(__file__).parent
ASKED = frozenset({"anything"})

SUITE = """
import pytest

@pytest.mark.skipif(True, reason="needs valgrind: apt install valgrind")
def test_counts():
    raise AssertionError

def test_waits():
    pytest.skip("it is Friday")

def test_works():
    pass
"""


@pytest.mark.parametrize(
    ("needed", "counts", "said"),
    [
        ("", "1 passed, 2 skipped", []),
        ("mariadb", "1 failed, 1 passed, 1 skipped", ["does not list: it is Friday"]),
        (
            "mariadb,valgrind",
            "1 failed, 1 passed, 1 error",
            ["does not list: it is Friday", "though DYNO_REQUIRE says that this machine has valgrind"],
        ),
    ],
)
def test_a_machine_that_must_have_something_skips_nothing_else(
    needed: str, counts: str, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_makereport\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, skips.VARIABLE: needed, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
    )
    assert counts in done.stdout, done.stdout + done.stderr
    assert all(text in done.stdout for text in said)
    assert (done.returncode == 0) is (not needed)


def test_a_word_that_nothing_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(skips.VARIABLE, "mariadb,valgrin")
    with pytest.raises(ValueError, match=r"DYNO_REQUIRE names valgrin; skips\.toml knows .*valgrind"):
        skips.required()


def test_each_reason_to_skip_is_listed_and_says_what_is_missing() -> None:
    found = [(path, reason) for path in sorted(TESTS.rglob("*.py")) for reason in _reasons(path)]
    assert len(found) > 50
    objected = [
        f"{path.relative_to(TESTS)}: {skips.objection(reason, skips.allowed(), ASKED)}"
        for path, reason in found
        if path != Path(__file__) and skips.objection(reason, skips.allowed(), ASKED)
    ]
    assert objected == []


def _reasons(path: Path) -> Iterator[str]:
    """The reasons that stand in a file of tests; a value that stands in one reads `mariadb`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "skip" and node.args:
                yield _text(node.args[0])
            if node.func.attr == "skipif":
                yield from (_text(word.value) for word in node.keywords if word.arg == "reason")


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return "mariadb"
