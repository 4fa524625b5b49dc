"""`--url` and `--store`: URLs, and how their passwords get here without being seen on the way."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from dbdyno.errors import UserError
from dbdyno.passwords import without_passwords

VARIABLE = "DYNO_URL"
FILE_MARK = "@"
OTHERS = stat.S_IRWXG | stat.S_IRWXO
ARGUMENTS_FROM, ARGUMENTS_TO = 45, 46
"""Fields of /proc/self/stat behind the program's name: where its arguments lie in memory."""


class StoreUrl(click.ParamType[str]):
    """A URL, or `@FILE` whose first line is one."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return written(str(value))


class ServerUrl(StoreUrl):
    """The same for a server. A password that the URL lacks is looked for where `mysql` and `psql` look."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from dbdyno.driver.passwords import with_password

        url = super().convert(value, param, ctx)
        return with_password(url, lambda line: click.echo(f"warning: {line}", err=True))


def written(text: str) -> str:
    """The URL that a text is, or that the file holds which it names. Raises UserError for a file that others
    can read."""
    return _first_line(Path(text[1:]).expanduser()) if text.startswith(FILE_MARK) else text


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & OTHERS:
                raise UserError(
                    f"{path} holds a URL with its password, and other users may read or change it "
                    f"(its mode is {stat.S_IMODE(mode):04o})",
                    f"chmod 600 {path}",
                )
            line = file.readline().strip()
    except OSError as error:
        told = f"cannot read {path}: {error.strerror}"
        raise UserError(told, "@FILE reads a URL from FILE") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8", "write the URL on its first line") from None
    if not line:
        raise UserError(f"the first line of {path} is empty", "write the URL there")
    return line


def hide_passwords() -> None:
    """Takes the passwords of URLs out of this process's arguments, where every user of the host reads them.
    `mysql` does so as well. Until then, which is while Python starts, they can be seen."""
    if all(without_passwords(argument) == argument for argument in sys.argv):
        return
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        first, end = int(fields[ARGUMENTS_FROM]), int(fields[ARGUMENTS_TO])
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(first)
            arguments = memory.read(end - first)
            memory.seek(first)
            memory.write(b"\0".join(map(_masked, arguments.split(b"\0"))))


def _masked(argument: bytes) -> bytes:
    """The argument without its password, as long as it was."""
    masked = without_passwords(os.fsdecode(argument))
    return os.fsencode(masked).ljust(len(argument), b" ")[: len(argument)]
