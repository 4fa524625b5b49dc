"""How SQLite takes data that a user brings: the text of `.dump`, and a database's file."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dbdyno.engines.embedded import bring_in_file
from dbdyno.engines.engine import Asked, Server
from dbdyno.engines.sqlite import sql_file
from dbdyno.engines.sqlite.life import DATABASE
from dbdyno.engines.sqlite.obtaining import LIBRARY
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host import libraries
from dbdyno.host.cache import Tell
from dbdyno.obtain.installation import Installation
from dbdyno.user_data.dump import Dump, text_of
from dbdyno.user_data.feed import Client, environment, feed
from dbdyno.user_data.folder import holder_of, require_stopped

HEADER = b"SQLite format 3\x00"
MARKS = re.compile(
    rb"\A(PRAGMA foreign_keys=OFF;\n)?BEGIN TRANSACTION;\n|sqlite_(sequence|schema|master|stat1)\b"
)
REFUSAL = re.compile(r"ERROR at line (?P<line>\d+): (?P<message>.*)")


def writes(dump: Dump) -> bool:
    return dump.head.startswith(HEADER) or MARKS.search(dump.head) is not None


def require_dump(_installation: Installation, dump: Dump) -> None:
    if dump.head.startswith(HEADER):
        raise UserError(f"{dump.path} is a database and no dump", f'write folder = "{dump.path}"')


def require_folder(_version: str, source: Path) -> None:
    if not source.is_file():
        raise UserError(f"{source} is no file", "for SQLite `folder` is the database's file")
    with source.open("rb") as file:
        if file.read(len(HEADER)) != HEADER:
            raise UserError(f"{source} is no database of SQLite", "name the file itself")
    require_stopped(source, holder_of(source))
    for ending, closes in (("-journal", "a transaction was under way"), ("-wal", "its log was not emptied")):
        beside = source.with_name(source.name + ending)
        if beside.is_file() and beside.stat().st_size:
            raise UserError(
                f"{source} was not closed cleanly: there is {beside.name}, so {closes}",
                "open and close it once with sqlite3, or copy it by VACUUM INTO",
            )


def load(
    installation: Installation, _server: Server, data: Path, dump: Dump, _database: str, tell: Tell
) -> list[str]:
    library = installation.library or libraries.find(LIBRARY)
    command = [sys.executable, "-I", sql_file.__file__, str(library), str(data / DATABASE)]
    with text_of(dump) as text:
        feed(dump, text, Client(command, environment(()), REFUSAL), tell)
    return []


def bring_in(_installation: Installation, source: Path, data: Path) -> None:
    bring_in_file(source, data / DATABASE)


def adopt(_installation: Installation, _data: Path) -> AbstractContextManager[Mapping[str, Level]]:
    return nullcontext({})


def require_recovered(log: str) -> None:
    """A journal beside the file has told it already."""


def databases(url: str, asked: Asked) -> list[str]:
    found = asked(url, "SELECT count(*) FROM sqlite_master WHERE type = 'table'")
    return [""] if found[0][0] else []


def settle(url: str, asked: Asked) -> list[str]:
    """The journal's mode is kept in the file where it is `wal`; a study begins with the library's own."""
    asked(url, "PRAGMA journal_mode = delete")
    return []
