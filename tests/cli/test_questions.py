"""Each page of questions is typed as it stands, with shorter loads: its files are written, and its commands
are given in turn."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.calls import dyno, shorter
from tests.needs import skip_blocked

PAGES = Path(__file__).parents[2] / "docs" / "guides" / "questions"
WITHIN_A_MINUTE = ("index-or-query", "sqlite-wal")
"""Their runs are carried out; of the others all that comes before a run is."""
BLOCK = re.compile(r"^[ ]*```(\w+)\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\A(?:#|--) (\S+\.\w+)\n")
LONG = ("run", "engines")
NAMES = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "README")


def test_the_list_of_questions_has_each_page() -> None:
    listed = re.findall(r"\]\((\S+)\.md\)", (PAGES / "README.md").read_text())
    assert sorted(listed) == NAMES and len(NAMES) == 8


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_typed_as_it_stands(
    name: str, homes_with_engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(homes_with_engines)
    blocks = BLOCK.findall((PAGES / f"{name}.md").read_text())
    for _, text in blocks:
        if named := NAMED.match(text):
            Path(named[1]).write_text(shorter(text))
    commands = [line.split() and shlex.split(line.strip()) for kind, text in blocks if kind == "sh"
                for line in text.splitlines()]  # fmt: skip
    for _, *arguments in commands:
        if arguments[0] in LONG and name not in WITHIN_A_MINUTE:
            continue
        said = dyno(*arguments)
        if said.returncode == 2 and " is not here" in said.stderr:
            pytest.skip(f"{name} cannot be fetched here: {said.stderr}")
        if "which this machine does not have" in said.stderr:
            skip_blocked(said.stderr, "what the hint says")
        assert said.returncode == 0, said.stdout + said.stderr
        if arguments[0] == "run":
            assert "--details" in said.stdout and "verdict" in said.stdout
