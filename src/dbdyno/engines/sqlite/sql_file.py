"""Runs the statements on standard input in an SQLite database, through the library that the study names.

Runs as a process of its own (`python sql_file.py LIBRARY DATABASE`), because a fault of the library must not
take Dyno along. Ends with 1 and `ERROR at line N: ...` on standard error at the first statement that fails.

Functions: https://sqlite.org/c3ref/funclist.html.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import IO

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
