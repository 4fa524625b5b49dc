"""The lines of a log, compressed or not, with their ends. A line holds the log's bytes: what is no UTF-8
stands in it as `surrogateescape` writes it. Logs hold whatever clients sent, so nothing in them is an error.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from dbdyno.errors import UserError
from dbdyno.user_data import dump
from dbdyno.user_data.dump import Dump, Packing, text_of

LINE_BYTES_MOST = 2**26
"""A longer line or entry is left out, because one statement must not fill the memory."""
LINE_COSTS = 64
"""Bytes that a line of an entry takes beside its text."""
OPENERS: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": dump.xz_opened,
}
ZSTD = b"\x28\xb5\x2f\xfd"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
BOM = b"\xef\xbb\xbf"
TOLD_BY = 1000
"""So many lines tell whether lines end in a carriage return too."""
WHOLE = "copy it again; what can be read of it: gzip -dc FILE > LOG"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number. A carriage return belongs to the end of a line only where all lines have
    one. Raises UserError for a file that cannot be read as text."""
    try:
        with _opened(path) as file:
            yield from _numbered(file)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise UserError(f"{path} is damaged, or was cut off while it was compressed", WHOLE) from None
    except OSError as error:
        if error.errno is None:
            raise UserError(f"{path} is damaged", WHOLE) from None
        raise UserError(f"{path} cannot be read: {error.strerror}", "give the path of a log") from None


def _numbered(file: BinaryIO) -> Iterator[tuple[int, str]]:
    head = list(islice(_raw(file), TOLD_BY))
    whole = head if head and head[-1].endswith(b"\n") else head[:-1]
    returns = bool(whole) and all(line.endswith(b"\r\n") for line in whole)
    number = 0
    for part in (head, _raw(file)):
        for line in part:
            number += 1
            if returns and line.endswith(b"\r\n"):
                line = line[:-2] + b"\n"
            yield number, line.decode("utf-8", "surrogateescape")


class Body(list[str]):
    """The lines of one entry. `over` tells that there was no room for all of them."""

    def __init__(self, *first: str) -> None:
        super().__init__(first)
        self._room = LINE_BYTES_MOST - sum(map(len, first))
        self.over = self._room < 0

    def append(self, line: str) -> None:
        self._room -= len(line) + LINE_COSTS
        if self._room < 0:
            self.over = True
        else:
            super().append(line)


def beginning(path: Path, lines_most: int) -> list[str]:
    """The first lines without their ends, fewer where they are long."""
    found, held = list[str](), 0
    for _, line in islice(lines(path), lines_most):
        found.append(line.rstrip("\r\n"))
        held += len(line)
        if held > LINE_BYTES_MOST:
            break
    return found


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(UTF_16):
        raise UserError(f"{path} is in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE > LOG")
    if head.startswith(ZSTD):
        with text_of(Dump(path, Packing.ZSTD, head, archive=False)) as text:
            yield cast("BinaryIO", text.source)
        return
    opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), None)
    with path.open("rb") if opener is None else cast("BinaryIO", opener(path)) as unpacked:
        yield unpacked


def _raw(file: BinaryIO) -> Iterator[bytes]:
    """The lines that are left of a file. One that is too long is cut, and has no end."""
    first = file.tell() == 0 if file.seekable() else True
    while line := file.readline(LINE_BYTES_MOST):
        if first:
            # A log that was copied while it was truncated begins with a hole of NULs.
            line, first = line.removeprefix(BOM).lstrip(b"\0"), False
            if not line:
                first = True
                continue
        if not line.endswith(b"\n") and len(line) >= LINE_BYTES_MOST:
            while (further := file.readline(LINE_BYTES_MOST)) and not further.endswith(b"\n"):
                pass
            line = line[:LINE_BYTES_MOST]
        yield line
