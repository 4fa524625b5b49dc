"""The pages of the reference name every verb, option and output of the command line, and the commands of the
tutorials can be typed as they stand."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from dbdyno.cli import VERBS
from dbdyno.cli import dyno as command_line
from dbdyno.cli.schema import OUTPUTS
from dbdyno.driver import _driver
from tests.cli.calls import Said, dyno, shorter
from tests.cli.page import PAGE, page

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_table_of_commands_has_each_verb() -> None:
    told = set(re.findall(r"^\| `dyno (\w+)", (REFERENCE / "commands.md").read_text(), re.MULTILINE))
    assert told == set(VERBS)


def test_the_page_of_options_says_what_the_help_says() -> None:
    assert PAGE.read_text() == page(), "python -m tests.cli.page writes it"


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


def commands() -> dict[str, list[str]]:
    """Each command that a page shows, with its words: `dyno fleet worker --name a`."""
    root = REFERENCE.parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    shown = {
        line
        for page in pages
        for line in re.findall(r"^(?:\$ )?(dyno .*)$|`(dyno [^`\n]*)`", page.read_text(), re.MULTILINE)
        for line in line
        if line
    }
    return {line: re.split(r"\s+#|\s&&\s|;", line)[0].split()[1:] for line in shown}


def mistake(words: list[str]) -> str | None:
    """The first word of a command that no verb has."""
    command: click.Command = command_line
    for word in words:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word) or command
    meant = [command]
    if isinstance(command, click.Group):
        # It may stand for one of its verbs: `dyno runs` lists them, `dyno recipe RUN` writes one.
        context = click.Context(command)
        further = (command.get_command(context, name) for name in command.list_commands(context))
        meant += [one for one in further if one]
    options = {
        name for one in meant for option in one.params for name in (*option.opts, *option.secondary_opts)
    }
    named = [word.strip("[],.()").partition("=")[0] for word in words if word.strip("[(").startswith("--")]
    known = {"--help", "--all", "--version", *options}
    return next((word for word in named if len(word) > 2 and word not in known), None)


def test_each_command_of_the_pages_has_a_verb_and_options_that_there_are() -> None:
    found = commands()
    assert len(found) > 150
    verbs = {line for line, words in found.items() if words and words[0].isalpha() and words[0].islower()
             and words[0] not in VERBS}  # fmt: skip
    assert verbs == set()
    # Options of a load are those of its workload, which its own help lists.
    wrong = {line: mistake(words) for line, words in found.items() if words and words[0] != "load"}
    assert {line: word for line, word in wrong.items() if word} == {}


TUTORIALS = REFERENCE.parent / "tutorial"
BLOCK = re.compile(r"^```(sh|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([\w-]+\.toml)`")
NOT_TYPED = {
    "make setup": "the tests run in what it makes",
    ". .venv/bin/activate": "the tests run in it",
    "dyno init mariadb --from /etc/mysql/my.cnf --output beyond.toml": "it reads the file of a server",
    "dyno init mariadb --from my.cnf --and other.cnf --output gap.toml": "it reads the reader's own files",
}
"""Commands of the tutorials that this test leaves out, and why."""
SLOWER = (6, 0)
"""6, as the tutorial says, or 0: the shorter loads of a test leave a wide interval on a busy machine."""
ENDS_WITH = {
    "dyno run gate.toml --against main --output gate.md": SLOWER,
    "dyno run gate.toml --against main --fail-on broken,failed,slower --output gate.xml": SLOWER,
}
"""Commands of the tutorials whose exit code need not be 0."""


@pytest.mark.parametrize("name", sorted(path.stem for path in TUTORIALS.glob("*.md")))
def test_a_tutorial_can_be_typed_as_it_stands(
    name: str, homes_with_engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder, with shorter loads."""
    (folder := homes_with_engines / "empty").mkdir()
    monkeypatch.chdir(folder)
    text, ended = (TUTORIALS / f"{name}.md").read_text(), {}
    for block in BLOCK.finditer(text):
        if block[1] == "toml":
            Path(NAMED.findall(text[: block.start()])[-1]).write_text(shorter(block[2]))
            continue
        for line in block[2].splitlines():
            if line not in NOT_TYPED:
                said = typed(line)
                ended[line] = said.returncode
                assert said.returncode in ENDS_WITH.get(line, (0,)), f"{line}\n{said.stdout}{said.stderr}"
    assert len(ended) > 4


def typed(line: str) -> Said:
    """What a line of a shell says: Dyno's commands within this process, all others by a shell."""
    for command in line.split(" && "):
        first, *arguments = shlex.split(command)
        if first == "dyno":
            said = dyno(*arguments)
        else:
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
            said = Said(done.returncode, done.stdout, done.stderr)
        if said.returncode != 0:
            break
    return said
