"""Writes the page of options as the verbs declare them: `python -m tests.cli.page`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from dbdyno.cli import dyno
from dbdyno.engines.registry import ENGINES
from dbdyno.study import excludes

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
HEAD = """# Options of every command

`python -m tests.cli.page` writes this page from the commands themselves, so it says what `--help`
says. Every command also has `--help`. [Commands](commands.md) says what each is for, and
[Workloads](workloads.md) has the options of a load's workload.
"""
SHARED_BY = 3
"""From so many commands on an option stands in the table of shared ones alone."""
Option = tuple[str, str]
"""How an option is written, and its help."""


def page() -> str:
    """The page: options that several commands have, and then those of each."""
    context = click.Context(dyno, info_name="dyno")
    of_commands = dict(_commands(dyno, context))
    users: dict[Option, list[str]] = {}
    for name, options in of_commands.items():
        for option in options:
            users.setdefault(option, []).append(name)
    shared = {option: names for option, names in users.items() if len(names) >= SHARED_BY}
    lines = [HEAD, "## Shared", "| option | is | of `dyno` |", "|---|---|---|"]
    lines += [
        f"| {_code(flags)} | {_cell(told)} | {', '.join(names)} |" for (flags, told), names in shared.items()
    ]
    for name, options in of_commands.items():
        own = [option for option in options if option not in shared]
        if own:
            lines += ["", f"## dyno {name}", "| option | is |", "|---|---|"]
            lines += [f"| {_code(flags)} | {_cell(told)} |" for flags, told in own]
    lines += ["", "## Options that exclude each other", *excludes.page(options=True)]
    return "\n".join(lines) + "\n"


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, list[Option]]]:
    """Each command below one, with its options. The workloads of a load count as one command."""
    if not isinstance(command, click.Group):
        yield context.command_path.partition(" ")[2], _options(command, context)
        return
    below = [
        (name, one) for name in command.list_commands(context) if (one := command.get_command(context, name))
    ]
    if context.command_path.startswith("dyno load "):
        each = [_options(one, context) for _, one in below]
        name = context.command_path.partition(" ")[2]
        yield name, [option for option in each[0] if all(option in options for options in each)]
        return
    for name, one in below:
        if context.command_path == "dyno init" and name in ENGINES:
            # All engines have the same options.
            name = "ENGINE"
        yield from _commands(one, click.Context(one, parent=context, info_name=name))


def _options(command: click.Command, context: click.Context) -> list[Option]:
    found = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    return [(flags, told) for flags, told in filter(None, found)]


def _code(flags: str) -> str:
    return f"`{_cell(flags)}`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
