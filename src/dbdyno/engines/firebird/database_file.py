"""Makes a Firebird database file, or changes its attributes, through the client library's C interface.

Runs as a process of its own (`python database_file.py REQUEST`), because the engine reads its environment
when it is loaded and because a fault of it must not take Dyno along. REQUEST is JSON: `library`,
`database`, `create`, and `attributes` (name: integer). Prints JSON: `error` (empty: done) and `attach_s`.

Parameter buffer: Firebird's `firebird/impl/consts_pub.h`; functions: InterBase 6 API Guide,
"isc_attach_database".
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

DPB_VERSION = 1
DPB = {"page_size": 4, "sweep_interval": 22, "forced_writes": 24, "no_reserve": 27, "page_buffers": 61}
DPB_USER_NAME, DPB_SQL_DIALECT, DPB_UTF8_FILENAME = 28, 63, 77
DIALECT = 3
"""A database made without it is of dialect 1, which has no BIGINT."""


def parameters(attributes: dict[str, int]) -> bytes:
    """The database parameter buffer: a version, then tag, length and little-endian value of each."""
    user = b"SYSDBA"
    buffer = bytes([DPB_VERSION, DPB_UTF8_FILENAME, 0, DPB_SQL_DIALECT, 1, DIALECT, DPB_USER_NAME, len(user)])
    buffer += user
    for name, value in attributes.items():
        buffer += bytes([DPB[name], 4]) + value.to_bytes(4, "little")
    return buffer


def carry_out(library_path: str, database: str, create: bool, attributes: dict[str, int]) -> str:
    """Creates or attaches the database, then detaches. The error in Firebird's words, or nothing."""
    library = ctypes.CDLL(library_path)
    status = (ctypes.c_ssize_t * 20)()
    handle = ctypes.c_uint(0)
    name, buffer = database.encode(), parameters(attributes)
    if create:
        library.isc_create_database(
            status, len(name), name, ctypes.byref(handle), len(buffer), buffer, ctypes.c_short(0)
        )
    else:
        library.isc_attach_database(status, len(name), name, ctypes.byref(handle), len(buffer), buffer)
    failed = _message(library, status)
    if handle.value:
        library.isc_detach_database(status, ctypes.byref(handle))
        failed = failed or _message(library, status)
    return failed


def _message(library: ctypes.CDLL, status: ctypes.Array[ctypes.c_ssize_t]) -> str:
    if not (status[0] == 1 and status[1]):
        return ""
    position = ctypes.cast(status, ctypes.c_void_p)
    text = ctypes.create_string_buffer(1024)
    lines = []
    while library.fb_interpret(text, len(text), ctypes.byref(position)):
        lines.append(text.value.decode("utf-8", "replace"))
    return "; ".join(lines)


def main() -> None:
    request = json.loads(sys.argv[1])
    started = time.monotonic()
    error = carry_out(request["library"], request["database"], request["create"], request["attributes"])
    print(json.dumps({"error": error, "attach_s": time.monotonic() - started}))


if __name__ == "__main__":
    main()
