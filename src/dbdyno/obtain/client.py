"""A server's own client programs: beside the server, fetched, or on the host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import EngineMissing
from dbdyno.host.writers import require_own
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation


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
                yield [*debian.loader(copy.prefix), "--argv0", str(found), str(found)]
    for name in names:
        if (on_host := shutil.which(name)) is not None:
            require_own(Path(on_host))
            yield [on_host]


def _run_like(installation: Installation, program: Path) -> list[str]:
    """A program of an unpacked copy runs on the C library that came with it, as its server does."""
    if len(installation.command) == 1:
        return [str(program)]
    return [*debian.loader(installation.prefix), "--argv0", str(program), str(program)]
