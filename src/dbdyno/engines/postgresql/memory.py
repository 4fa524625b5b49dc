"""Memory that a PostgreSQL shared and left when it was killed, where a host gives it no namespace of its own.

Its own next start on the same data would free that. What Dyno made has no such start.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SEGMENTS = Path("/proc/sysvipc/shm")
FILES = Path("/dev/shm")
MAGIC = 679834894
"""How the segment begins (PGShmemMagic in storage/pg_shmem.h); the process that made it follows."""
HEADER_BYTES = 80
ID_LINE = 6
"""Of postmaster.pid, from 0: the key and the number of the segment (utils/pidfile.h)."""
READ_ONLY, REMOVE = 0o10000, 0
FAILED = ctypes.c_void_p(-1).value
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p
_LIBC.shmdt.argtypes = [ctypes.c_void_p]


def free(pid_file: Path) -> None:
    """Frees what the server shared that wrote a postmaster.pid. It is dead; what another process uses, or
    another server made, stays."""
    try:
        lines = pid_file.read_text().splitlines()
        process_id, number = int(lines[0]), int(lines[ID_LINE].split()[1])
        data = pid_file.parent.stat()
    except (OSError, ValueError, IndexError):
        return
    if not _is_left_by(number, process_id):
        return
    header = _header(number)
    whose = struct.pack("=QQ", data.st_dev, data.st_ino)
    if header[:8] != struct.pack("=ii", MAGIC, process_id) or whose not in header:
        return
    for control in _files_named_in(header):
        for one in (*_files_named_in(control.read_bytes()), control):
            with suppress(OSError):
                one.unlink()
    _LIBC.shmctl(number, REMOVE, None)


def _is_left_by(number: int, process_id: int) -> bool:
    """Whether this process made a segment that nobody uses."""
    with suppress(OSError):
        names, *rows = (line.split() for line in SEGMENTS.read_text().splitlines())
        for row in (dict(zip(names, row, strict=False)) for row in rows):
            if int(row["shmid"]) == number:
                return int(row["cpid"]) == process_id and int(row["nattch"]) == 0
    return False


def _header(number: int) -> bytes:
    """How a segment begins; empty where this user may not read it."""
    address = _LIBC.shmat(number, None, READ_ONLY)
    if address == FAILED:
        return b""
    try:
        return ctypes.string_at(address, HEADER_BYTES)
    finally:
        _LIBC.shmdt(address)


def _files_named_in(content: bytes) -> Iterator[Path]:
    """The files of /dev/shm whose numbers stand in memory, wherever a version puts them. The numbers are
    drawn from 32 bits."""
    numbers = struct.unpack(f"={len(content) // 4}I", content[: len(content) // 4 * 4])
    there = {path.name: path for path in FILES.glob("PostgreSQL.*")}
    for number in dict.fromkeys(numbers):
        if (path := there.get(f"PostgreSQL.{number}")) is not None and path.lstat().st_nlink == 1:
            yield path
