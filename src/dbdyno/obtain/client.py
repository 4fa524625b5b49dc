"""A server's own client programs: beside the server, fetched, or on the host."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dbdyno.errors import EngineMissing
from dbdyno.host.writers import require_own
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation

ARGV0 = "--argv0"
"""The loader's option with the name by which a program is called."""


def program(installation: Installation, recipe: debian.Recipe, *names: str) -> list[str]:
    """The command of the first of these programs that is here: beside the server or in the `bin` of its
    folder, then among the packages of `recipe`, then on the host. Raises EngineMissing with what obtains
    it."""
    found = next(programs(installation, recipe, *names), None)
    if found is None:
        raise EngineMissing(
            f"{names[0]} is not on this machine, and a dump is loaded with it",
            f"`dyno engines fetch {installation.engine}` obtains it",
        )
    return found


def programs(installation: Installation, recipe: debian.Recipe, *names: str) -> Iterator[list[str]]:
    """The commands of all that are here, in that order."""
    server = Path(installation.command[-1])
    for name in names:
        for beside in (server.with_name(name), server.parent.parent / "bin" / name):
            if beside.resolve() != server.resolve() and os.access(beside, os.X_OK):
                require_own(beside)
                yield _run_like(installation, beside)
    for copy in debian.fetched(recipe.engine):
        for name in names:
            found = (copy.prefix / recipe.binary).with_name(name)
            if found.is_file():
                yield [*debian.loader(copy.prefix), ARGV0, str(found), str(found)]
    for name in names:
        if (on_host := shutil.which(name)) is not None:
            require_own(Path(on_host))
            yield [on_host]


def fronts(folder: Path, commands: Mapping[str, Sequence[str]]) -> Path:
    """A new folder of scripts, each of which becomes the command of its name. A program that looks for others
    beside itself finds these scripts, whatever loader the programs need."""
    folder.mkdir()
    for name, command in commands.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {_by_own_name(command)} "$@"\n')
        script.chmod(0o700)
    return folder


def _by_own_name(command: Sequence[str]) -> str:
    """A command for a shell. A loader hands the script's name on, where the program looks for others."""
    if ARGV0 not in command:
        return shlex.join(command)
    place = command.index(ARGV0) + 1
    return f'{shlex.join(command[:place])} "$0" {shlex.join(command[place + 1 :])}'


def _run_like(installation: Installation, program: Path) -> list[str]:
    """A program of an unpacked copy runs on the C library that came with it, as its server does."""
    if len(installation.command) == 1:
        return [str(program)]
    return [*debian.loader(installation.prefix), ARGV0, str(program), str(program)]
