"""The pages of the reference name every verb and every output of the command line."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.cli import VERBS
from dbdyno.cli.schema import OUTPUTS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_table_of_commands_has_each_verb() -> None:
    told = set(re.findall(r"^\| `dyno (\w+)", (REFERENCE / "commands.md").read_text(), re.MULTILINE))
    assert told == set(VERBS)


def test_the_page_on_json_names_each_output() -> None:
    page = (REFERENCE / "json.md").read_text()
    assert [name for name in OUTPUTS if f"`{name}`" not in page] == []
