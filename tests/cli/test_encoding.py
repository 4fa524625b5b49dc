"""Output that takes ASCII alone: every report is written in letters that it can show."""

from __future__ import annotations

import os
import subprocess

import pytest

from dbdyno.cli.encoding import IN_ASCII
from dbdyno.records.record import Run
from tests.cli.test_reports import run
from tests.conftest import DYNO

__all__ = ["run"]
ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "json"])
def test_a_report_goes_through_ascii(run: Run, form: str) -> None:
    said = subprocess.run(
        [*DYNO, "report", "--format", form],
        env={**os.environ, **ASCII},
        capture_output=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stderr == b""
    # What programs read stays in UTF-8, as its format says.
    assert said.stdout.isascii() if form == "terminal" else said.stdout.decode("utf-8")
    assert len(said.stdout) > 100


@pytest.mark.parametrize(
    "verb",
    [["runs"], ["show"], ["show", "last", "0"], ["engines"], ["report", "--details"], ["run", "--help"]],
)
def test_other_verbs_speak_ascii(run: Run, verb: list[str]) -> None:
    said = subprocess.run([*DYNO, *verb], env={**os.environ, **ASCII}, capture_output=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.isascii() and len(said.stdout) > 50


def test_what_cannot_be_shown_is_still_told_apart() -> None:
    code = (
        "import sys; from dbdyno.cli.encoding import speak_any_encoding; speak_any_encoding();"
        "print(sys.argv[1]); print(sys.argv[1], file=sys.stderr)"
    )
    said = subprocess.run(
        [DYNO[0], "-c", code, "2 × 3 ± 1 → 7, Šidák \N{SNOWMAN}"],
        env={**os.environ, **ASCII, "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert said.stdout == said.stderr == b"2 x 3 +/- 1 -> 7, Sidak ?\n"


def test_every_replacement_is_ascii() -> None:
    assert all(shown.isascii() and not letter.isascii() for letter, shown in IN_ASCII.items())
