"""The lines of a log, compressed or not. Logs hold whatever clients sent, so nothing in them is an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from dbdyno.errors import UserError
from dbdyno.given import xz

LINE_BYTES_MOST = 2**26
"""What stands behind this in a line, or in an entry of several, is left out, because one statement must not
fill the memory."""
LINE_COSTS = 64
"""Bytes that a line of an entry takes beside its text."""
OPENERS: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": xz.opened,
}
ZSTD = b"\x28\xb5\x2f\xfd"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
BOM = b"\xef\xbb\xbf"
CUT = "... (cut off by Dyno)"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number. Raises UserError for a file that cannot be read as text."""
    try:
        with _opened(path) as file:
            number = 0
            while (line := _line(file)) is not None:
                number += 1
                yield number, _text(line.removeprefix(BOM) if number == 1 else line)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise UserError(f"{path} is damaged, or was cut off while it was compressed", WHOLE) from None
    except OSError as error:
        if error.errno is None:
            raise UserError(f"{path} is damaged", WHOLE) from None
        raise UserError(f"{path} cannot be read: {error.strerror}", "give the path of a log") from None


WHOLE = "copy it again; what can be read of it: gzip -dc FILE > LOG"


class Body(list[str]):
    """The lines of one entry, without those for which there is no room."""

    def __init__(self, *first: str) -> None:
        super().__init__(first)
        self._room = LINE_BYTES_MOST - sum(map(len, first))

    def append(self, line: str) -> None:
        if self._room <= 0:
            return
        super().append(line if len(line) <= self._room else line[: self._room] + CUT)
        self._room -= len(line) + LINE_COSTS
        if self._room <= 0 and not self[-1].endswith(CUT):
            super().append(CUT)


def beginning(path: Path, lines_most: int) -> list[str]:
    """The first lines, fewer where they are long."""
    found, held = list[str](), 0
    for _, line in islice(lines(path), lines_most):
        found.append(line)
        held += len(line)
        if held > LINE_BYTES_MOST:
            break
    return found


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(ZSTD):
        raise UserError(f"{path} is compressed with zstd", "unpack it: zstd -d FILE")
    if head.startswith(UTF_16):
        raise UserError(f"{path} is in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE > LOG")
    opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), None)
    return path.open("rb") if opener is None else cast("BinaryIO", opener(path))


def _line(file: BinaryIO) -> bytes | None:
    """The next line without its end; None at the end. A log that was copied while it was truncated begins
    with a hole of NULs, so these are left out."""
    kept, cut = b"", False
    while part := file.readline(LINE_BYTES_MOST):
        ended = part.endswith(b"\n")
        told = part.replace(b"\0", b"") if b"\0" in part else part
        room = LINE_BYTES_MOST - len(kept)
        kept, cut = kept + told[:room] if kept else told[:room], cut or len(told) > room
        if ended:
            break
    else:
        if not kept:
            return None
    return kept.rstrip(b"\r\n") + (CUT.encode() if cut else b"")


def _text(line: bytes) -> str:
    """Clients of one server may speak in different encodings, so what is no UTF-8 is read as Windows-1252."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")
