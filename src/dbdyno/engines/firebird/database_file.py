"""Makes a Firebird database file, changes its attributes, backs it up or restores it, through the client
library's C interface. Backups are those of `gbak`.

Runs as a process of its own (`python database_file.py REQUEST`), because the engine reads its environment
when it is loaded and because a fault of it must not take Dyno along. REQUEST is JSON: `library`,
`database`, and an `action`: `create` or `open` with `attributes` (name: integer), `backup` or `restore` with
the path of a `backup`. Prints JSON: `error` (empty: done) and `seconds`.

Parameter buffers: Firebird's `firebird/impl/consts_pub.h`; functions: InterBase 6 API Guide,
"isc_attach_database" and "Working with Services".
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
import time

DPB_VERSION = 1
DPB = {"page_size": 4, "sweep_interval": 22, "forced_writes": 24, "no_reserve": 27, "page_buffers": 61}
DPB_USER_NAME, DPB_SQL_DIALECT, DPB_UTF8_FILENAME = 28, 63, 77
DIALECT = 3
"""A database made without it is of dialect 1, which has no BIGINT."""
USER, SERVICES = b"SYSDBA", b"service_mgr"
SPB_VERSION = bytes((2, 2))
ACTIONS = {"backup": 1, "restore": 2}
SPB_BACKUP, SPB_DATABASE, SPB_OPTIONS = 5, 106, 108
CREATE = 0x2000
"""Of a restore: the database is not there yet."""
SPB_LINE = 62
"""Asks for the next line of what the service says. One of no length is the last."""
ANSWER_BYTES = 4096


def parameters(attributes: dict[str, int]) -> bytes:
    """The database parameter buffer: a version, then tag, length and little-endian value of each."""
    buffer = bytes([DPB_VERSION, DPB_UTF8_FILENAME, 0, DPB_SQL_DIALECT, 1, DIALECT, DPB_USER_NAME, len(USER)])
    buffer += USER
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


def serve(library_path: str, database: str, action: str, backup: str) -> str:
    """Backs up or restores through the service of the library. The error in Firebird's words, or nothing."""
    library = ctypes.CDLL(library_path)
    status = (ctypes.c_ssize_t * 20)()
    handle = ctypes.c_uint(0)
    attach = SPB_VERSION + bytes((DPB_USER_NAME, len(USER))) + USER
    library.isc_service_attach(
        status, len(SERVICES), SERVICES, ctypes.byref(handle), ctypes.c_ushort(len(attach)), attach
    )
    if failed := _message(library, status):
        return failed
    wanted = bytes((ACTIONS[action],)) + _text(SPB_DATABASE, database) + _text(SPB_BACKUP, backup)
    if action == "restore":
        wanted += bytes((SPB_OPTIONS,)) + struct.pack("<I", CREATE)
    library.isc_service_start(status, ctypes.byref(handle), None, ctypes.c_ushort(len(wanted)), wanted)
    failed = _message(library, status) or _served(library, status, handle)
    library.isc_service_detach(status, ctypes.byref(handle))
    return failed


def _served(library: ctypes.CDLL, status: ctypes.Array[ctypes.c_ssize_t], handle: ctypes.c_uint) -> str:
    """Waits for the end of what the service does; the error that it ends with, or nothing."""
    asked, answer = bytes((SPB_LINE,)), ctypes.create_string_buffer(ANSWER_BYTES)
    while True:
        library.isc_service_query(
            status, ctypes.byref(handle), None, ctypes.c_ushort(0), None,
            ctypes.c_ushort(len(asked)), asked, ctypes.c_ushort(ANSWER_BYTES), answer,
        )  # fmt: skip
        if failed := _message(library, status):
            return failed
        kind, length = struct.unpack_from("<BH", answer)
        if kind != SPB_LINE or not length:
            return ""


def _text(tag: int, text: str) -> bytes:
    written = text.encode()
    return bytes((tag,)) + struct.pack("<H", len(written)) + written


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
    library, database, action = request["library"], request["database"], request["action"]
    started = time.monotonic()
    if action in ACTIONS:
        error = serve(library, database, action, request["backup"])
    else:
        error = carry_out(library, database, action == "create", request["attributes"])
    print(json.dumps({"error": error, "seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main()
