"""`dyno man`: manual pages, made from what `--help` says of each verb."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from dbdyno import __version__
from dbdyno.cli.formats import write

SECTION = "1"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.pass_context
def command(context: click.Context, folder: Path) -> None:
    """Write the manual pages into FOLDER, one for each verb: `man dyno`, `man dyno-run`.

    \b
      dyno man ~/.local/share/man/man1
    """
    pages = list(_pages(context.find_root()))
    for name, text in pages:
        write(folder / f"{name}.{SECTION}", text)
    click.echo(f"{len(pages)} pages in {folder}", err=True)


def _pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """The name and the text of the page of a command and of all below it."""
    yield context.command_path.replace(" ", "-"), page(context)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None  # the group itself names it
            yield from _pages(click.Context(command, parent=context, info_name=name))


def page(context: click.Context) -> str:
    """One command's page in roff's man macros."""
    command, title = context.command, context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH {_quoted(title.upper())} {SECTION} "" {_quoted(f"dyno {__version__}")} "Dyno"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(command.get_short_help_str(limit=200))}",
        ".SH SYNOPSIS",
        f".B {_escaped(context.command_path)}",
        _line(usage),
        ".SH DESCRIPTION",
        *_prose(inspect.cleandoc(command.help or "")),
        ".SH OPTIONS",
        *(line for option in command.get_params(context) for line in _option(option, context)),
    ]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS", *_commands(command, context)]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from (".TP", f".BR {_escaped(f'{context.command_path} {name}'.replace(' ', '-'))} ({SECTION})")
        yield _line(command.get_short_help_str(limit=200))


def _option(option: click.Parameter, context: click.Context) -> Iterator[str]:
    record = option.get_help_record(context)
    if record is not None:
        yield from (".TP", f".B {_escaped(record[0])}", _line(record[1]))


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; one that begins with click's \\b keeps its lines."""
    for paragraph in text.split("\n\n"):
        kept = paragraph.startswith("\b")
        lines = paragraph.removeprefix("\b\n").splitlines()
        yield from (".nf", *map(_line, lines), ".fi", ".PP") if kept else (*map(_line, lines), ".PP")


def _line(text: str) -> str:
    """A line of text that roff takes for text, whatever it begins with."""
    escaped = _escaped(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'
