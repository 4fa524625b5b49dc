"""The pages of the reference name every verb and every output of the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dbdyno.cli import VERBS
from dbdyno.cli.schema import OUTPUTS
from dbdyno.driver import _driver
from tests.cli.calls import dyno

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_table_of_commands_has_each_verb() -> None:
    told = set(re.findall(r"^\| `dyno (\w+)", (REFERENCE / "commands.md").read_text(), re.MULTILINE))
    assert told == set(VERBS)


def test_urls_take_what_the_reference_and_the_help_list() -> None:
    parameters = json.loads(_driver.url_parameters())
    page = (REFERENCE / "commands.md").read_text()
    table = page.partition("| parameter | of | is |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [
        f"| {', '.join(f'`{name}`' for name in names)} | {', '.join(of)} | {told} |"
        for names, of, told in parameters
    ]
    helped = dyno("load", "--help").stdout
    assert [name for names, _, _ in parameters for name in names if name not in helped] == []


def test_the_page_on_json_names_each_output() -> None:
    page = (REFERENCE / "json.md").read_text()
    assert [name for name in OUTPUTS if f"`{name}`" not in page] == []
