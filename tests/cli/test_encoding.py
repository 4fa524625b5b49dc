"""Output that takes ASCII alone: every report is written in letters that it can show."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from dbdyno.cli.encoding import IN_ASCII
from dbdyno.records.run import Run
from tests.cli.calls import piped
from tests.cli.reports_cases import run
from tests.conftest import DYNO
from tests.needs import needs_ascii_path

__all__ = ["run"]
ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "json"])
def test_a_report_goes_through_ascii(run: Run, form: str) -> None:
    code, output, errors = piped(["report", "--format", form], "ascii")
    assert (code, errors) == (0, b"")
    # What programs read stays in UTF-8, as its format says.
    assert output.isascii() if form == "terminal" else output.decode("utf-8")
    assert len(output) > 100


@needs_ascii_path
def test_a_process_speaks_ascii_where_its_environment_says_so(run: Run) -> None:
    said = subprocess.run(
        [*DYNO, "report", "--format", "terminal"],
        env={**os.environ, **ASCII},
        capture_output=True,
        check=False,
    )
    within = piped(["report", "--format", "terminal"], "ascii")
    assert (said.returncode, said.stdout, said.stderr) == within, "the other tests see what a user sees"


@pytest.mark.parametrize(
    "verb",
    [["runs"], ["show"], ["show", "last", "0"], ["engines"], ["report", "--details"], ["run", "--help"]],
)
def test_other_verbs_speak_ascii(run: Run, verb: list[str]) -> None:
    code, output, _ = piped(verb, "ascii")
    assert code == 0
    assert output.isascii() and len(output) > 50


@needs_ascii_path
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


HOSTILE = "\x1b]0;pwned\x07|\x1b[2J|\x9b31m|\u202eabc|\ufffe|\x00|\x1bP1$q\x1b\\"


def test_a_terminal_is_not_steered_by_what_is_said() -> None:
    code = (
        "import sys; from dbdyno.cli.encoding import speak_any_encoding; speak_any_encoding();"
        "from dbdyno.cli.encoding import own; import click; text = sys.stdin.read();"
        "click.echo(text); print('\\x1b[31mred\\x1b[0m', file=own('stderr')); sys.stderr.flush();"
        "print('\\x1b[31m' + text, file=sys.stderr)"
    )
    said = subprocess.run(
        [DYNO[0], "-c", code],
        input=HOSTILE.encode(),
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert not re.search(r"[\x00\x07\x1b]", said.stdout.decode())
    errors = said.stderr.decode()
    assert errors.startswith("\x1b[31mred\x1b[0m\n")
    assert not re.search(r"[\x00\x07\x1b\x80-\x9f\u202e\ufffe]", errors.partition("\n")[2])
    assert "pwned" in errors


@pytest.mark.parametrize("verb", [["plan"], ["show"], ["runs", "rm"], ["load", "run", "tpcb", "--url"]])
def test_a_complaint_says_nothing_to_the_terminal(homes: Path, verb: list[str]) -> None:
    hostile = HOSTILE.replace("\x00", "")
    code, _, errors = piped([*verb, hostile])
    assert code != 0 and errors
    assert not re.search(r"[\x07\x1b\x80-\x9f\u202e\ufffe]", errors.decode())
