"""A log's lines, each with its number, and the one message for a line that is not what it should be."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from dbdyno.errors import UserError
from dbdyno.user_data import xz

GZIP, BZIP2, XZ, ZSTANDARD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
"""What compressed files begin with. No line of a log does."""
LINE_MOST = 1 << 20
"""Characters of a line with its end. A few kilobytes can be packed that unpack to more than the memory."""


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each line without its end, with its number from 1 on; of a compressed file, those that it holds. Raises
    UserError for a file that cannot be read, is empty, is damaged, is no text, or whose last line was cut
    short.
    """
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(iter(partial(file.readline, LINE_MOST), ""), 1):
                if not line.endswith("\n"):
                    if len(line) == LINE_MOST:
                        raise wrong(
                            path, number, f"this line is longer than {LINE_MOST:,} characters", NO_LOG
                        )
                    raise wrong(path, number, "the last line is cut short", CUT_SHORT)
                yield number, line[:-1]
    except UnicodeDecodeError:
        raise wrong(path, number + 1, "this is no text", "give the logs as the tool wrote them") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise wrong(path, number + 1, "the compressed file is damaged from here on", WHOLE) from None
    except OSError as error:
        # bz2 tells of damage by this error too, which then is none of the system's.
        if error.strerror is None:
            raise wrong(path, number + 1, "the compressed file is damaged from here on", WHOLE) from None
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    if number == 0:
        raise UserError(f"{path} is empty", "leave it out, or look why the benchmark wrote nothing")


NO_LOG = "this is no log of a benchmark; look what it holds: head -c 1000, or zcat FILE | head -c 1000"
CUT_SHORT = "import it when the benchmark has ended; if it was killed, delete that line"
WHOLE = "copy it again, or leave it out; gzip -t, bzip2 -t and xz -t tell whether a file is whole"


def _opened(path: Path) -> TextIO:
    """The file's text. What compressed it shows in its first bytes, whatever it is called."""
    with path.open("rb") as file:
        beginning = file.read(max(map(len, (GZIP, BZIP2, XZ, ZSTANDARD))))
    if beginning.startswith(GZIP):
        return gzip.open(path, "rt", encoding="utf-8")
    if beginning.startswith(BZIP2):
        return bz2.open(path, "rt", encoding="utf-8")
    if beginning.startswith(XZ):
        return TextIOWrapper(xz.opened(path), encoding="utf-8")
    if beginning.startswith(ZSTANDARD):
        raise UserError(f"{path} is compressed by zstd, which Dyno cannot read", f"zstd -d {path}")
    return path.open(encoding="utf-8")


def wrong(path: Path, line: int, message: str, hint: str) -> UserError:
    return UserError(f"{path}, line {line}: {message}", hint)
