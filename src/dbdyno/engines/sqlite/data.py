"""Data that come to SQLite: the text of `.dump`, and a database's file of a user's or an older version's."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.embedded import bring_in_file
from dbdyno.engines.engine import Asked, Server
from dbdyno.engines.sqlite.server import DATABASE, LIBRARY, start
from dbdyno.engines.upgrade import series_of
from dbdyno.errors import DriverFailed, DynoError, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host import fingerprint
from dbdyno.host.cache import Tell
from dbdyno.host.launch import Launch
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
    library = installation.library or fingerprint.find(LIBRARY)
    command = [sys.executable, "-I", __file__, str(library), str(data / DATABASE)]
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


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(_old: Installation, _new: Installation) -> DynoError | None:
    return None


def take_over(
    _old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    server = start(new, data, runtime, creation, Launch())
    try:
        launch = Launch().confined_to(*server.driver_folders)
        with LoadProcess(server.driver_environment, launch) as process:
            process.query(server.url, "SELECT COUNT(*) FROM sqlite_master")
    except DriverFailed as failed:
        raise ServerFailed(
            f"SQLite {new.version} could not open the file: {failed.message}", failed.hint
        ) from None
    return "opening the same file"


OK = 0


def statements(text: IO[bytes], is_whole: Callable[[bytes], int]) -> Iterator[tuple[int, bytes]]:
    """Each statement with its semicolon, or several that end on one line; and the line on which it begins."""
    lines: list[bytes] = []
    begins = 1
    for number, line in enumerate(text, 1):
        if not lines:
            if not line.strip():
                continue
            begins = number
        lines.append(line)
        if line.rstrip().endswith(b";") and is_whole(whole := b"".join(lines)):
            yield begins, whole
            lines = []
    if b"".join(lines).strip():
        yield begins, b"".join(lines)


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.sqlite3_errmsg.restype = ctypes.c_char_p
    handle = ctypes.c_void_p()
    failed = library.sqlite3_open(sys.argv[2].encode(), ctypes.byref(handle))
    if failed == OK:
        # Nobody else has the file, and a making that is cut short begins anew.
        library.sqlite3_exec(handle, b"PRAGMA synchronous = off", None, None, None)
        for line, statement in statements(sys.stdin.buffer, library.sqlite3_complete):
            if library.sqlite3_exec(handle, statement, None, None, None) != OK:
                said = library.sqlite3_errmsg(handle).decode("utf-8", "replace")
                sys.exit(f"ERROR at line {line}: {said}")
        if not library.sqlite3_get_autocommit(handle):
            sys.exit("the dump ends within a transaction: it is not whole")
    if failed != OK or library.sqlite3_close(handle) != OK:
        sys.exit(library.sqlite3_errmsg(handle).decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
