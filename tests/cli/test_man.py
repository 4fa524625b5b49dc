"""`dyno man` and `dyno completion`: every verb has a page, and a shell completes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dbdyno.cli import VERBS
from tests.cli.calls import dyno
from tests.conftest import DYNO
from tests.needs import on_machine


@pytest.fixture
def pages(homes: Path) -> Path:
    folder = homes / "man1"
    assert dyno("man", str(folder)).returncode == 0
    return folder


def test_every_verb_and_what_is_below_it_has_a_page(pages: Path) -> None:
    names = {path.name for path in pages.iterdir()}
    assert {"dyno.1", "dyno-load-run.1", "dyno-runs-rm.1"} | {f"dyno-{verb}.1" for verb in VERBS} <= names
    text = (pages / "dyno-run.1").read_text()
    assert ".B \\-\\-resume [RUN]" in text and "Carry out a study" in text


@pytest.mark.skipif(on_machine("groff") is None, reason="no groff that reads the pages")
def test_groff_reads_every_page_without_a_warning(pages: Path) -> None:
    found = sorted(pages.iterdir())
    # A list of choices is one word, which may be too long to break.
    reads = ["groff", "-man", "-Tutf8", "-ww", "-W", "break"]
    said = subprocess.run([*reads, *found], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert "dyno-runs" in said.stdout


@pytest.mark.parametrize(
    ("shell", "words", "at", "offered"),
    [
        ("bash", "dyno ru", 1, {"plain,run", "plain,runs"}),
        ("bash", "dyno run --agains", 2, {"plain,--against"}),
        ("bash", "dyno runs r", 2, {"plain,rm"}),
    ],
)
def test_a_shell_asks_and_is_offered_what_begins_so(
    homes: Path, shell: str, words: str, at: int, offered: set[str]
) -> None:
    asked = {"_DYNO_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    said = subprocess.run(DYNO, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert set(said.stdout.split()) == offered, said.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_it_can_read(homes: Path, shell: str) -> None:
    script = dyno("completion", shell).stdout
    assert "_DYNO_COMPLETE" in script
    if on_machine(shell) is None:
        pytest.skip(f"no shell {shell} that reads its script")
    subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)


def test_verbs_are_completed_without_importing_them(homes: Path) -> None:
    asked = {"_DYNO_COMPLETE": "bash_complete", "COMP_WORDS": "dyno ", "COMP_CWORD": "1"}
    code = (
        "import sys\nfrom dbdyno.cli import dyno\n"
        "try:\n    dyno.main(prog_name='dyno')\n"
        "finally:\n    print('imported', 'pydantic' in sys.modules, 'numpy' in sys.modules)"
    )
    said = subprocess.run(
        [DYNO[0], "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert "plain,gate" in said.stdout and "imported False False" in said.stdout, said.stderr
