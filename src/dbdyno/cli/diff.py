"""`dyno diff`: two builds compared function by function."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from dbdyno.analyse.code import compare_code
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.errors import UserError
from dbdyno.host import cache
from dbdyno.obtain.source import making


def complete_build(_context: click.Context, _parameter: click.Parameter, given: str) -> list[CompletionItem]:
    """The kept builds that begin so, with what they are made of; and files."""
    found = []
    for name in filter(partial(_begins, given), making.names()):
        account = making.readable_account(making.folder_of(name))
        found.append(CompletionItem(name, help=account.words if account else None))
    return [*found, CompletionItem(given, type="file")]


def main(left: str, right: str, form: str | None, as_json: bool, output: Path | None) -> None:
    # Here, because help and manual pages need no disassembler.
    from dbdyno.obtain.binary import read_pair

    form = format_of(form, as_json, output)
    found = compare_code(*read_pair(_program_of(left), _program_of(right)))
    deliver("diff", found, form, output)
    if form == "terminal" and output is None:
        click.echo("the builds that are kept: dyno cache builds", err=True)


def _program_of(given: str) -> Path:
    """The file that an argument means. A kept build stays until this process ends. Raises UserError where
    there is none, or with the builds that it could be."""
    if Path(given).is_file():
        return Path(given)
    if not given:
        raise UserError("the name of a build is empty", "`dyno cache builds` lists the builds by name")
    names = list(filter(partial(_begins, given), making.names()))
    if not names and Path(given).is_dir():
        raise UserError(f"{given} is a folder", "name the program or the library in it")
    if not names:
        raise UserError(
            f"there is no build and no file {given}", "`dyno cache builds` lists the builds by name"
        )
    if len(names) > 1 and given not in names:
        listed = "\n".join(f"    {name}" for name in names)
        hint = f"write more of the one that is meant:\n{listed}"
        raise UserError(f"{len(names)} builds begin with {given}", hint)
    name = given if given in names else names[0]
    folder = cache.shelf("builds").take(name)
    account = making.readable_account(folder) if folder is not None else None
    if folder is None or account is None or not account.program:
        hint = f"name its file below {making.folder_of(name) / making.PREFIX}"
        raise UserError(
            f"{name} does not tell which file is its program, because an older Dyno made it", hint
        )
    return (folder / making.PREFIX / account.program).resolve()


def _begins(given: str, name: str) -> bool:
    """Whether a build's name begins with what was given, or the key that is the end of the name."""
    return name.startswith(given) or name.rpartition("-")[2].startswith(given)
