"""The lines of a log, compressed or not, with their ends. A line holds the log's bytes: what is no UTF-8
stands in it as `surrogateescape` writes it. Logs hold whatever clients sent, so nothing in them is an error.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.user_data.dump import packing_of, unpacked

LINE_BYTES_MOST = 2**26
"""A longer line or entry is left out, because one statement must not fill the memory."""
CHUNK_BYTES = 1 << 20
HEAD_BYTES = 6
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
WHOLE = "copy it again; what can be read of it: gzip -dc FILE > LOG"


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number. A carriage return belongs to the end of a line only where all lines have
    one. Raises UserError for a file that cannot be read as text."""
    cut = _driver.LogLines(LINE_BYTES_MOST)
    for piece in pieces(path):
        yield from cut.feed(piece)
    yield from cut.end()


def pieces(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, some at a time. Raises UserError for one that cannot be read as text."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(UTF_16):
            raise UserError(f"{path} is in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE > LOG")
        with unpacked(path, packing_of(head)) as text:
            while piece := text.source.read(CHUNK_BYTES):
                yield piece
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise UserError(f"{path} is damaged, or was cut off while it was compressed", WHOLE) from None
    except OSError as error:
        if error.errno is None:
            raise UserError(f"{path} is damaged", WHOLE) from None
        raise UserError(f"{path} cannot be read: {error.strerror}", "give the path of a log") from None


def beginning(path: Path, lines_most: int) -> list[str]:
    """The first lines without their ends, fewer where they are long."""
    found, held = list[str](), 0
    for _, line in islice(numbered_lines(path), lines_most):
        found.append(line.rstrip("\r\n"))
        held += len(line)
        if held > LINE_BYTES_MOST:
            break
    return found
