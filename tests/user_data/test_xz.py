"""What xz packed is read as xz reads it, and takes no more memory than it may."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.imported.files import lines_of
from dbdyno.sql_logs.lines import numbered_lines
from dbdyno.user_data import dump
from dbdyno.user_data.dump import dump_at
from tests.cli.calls import complaint

TEXT = b"CREATE TABLE a (id INT);\n" * 50_000
HEADER, DICTIONARY = slice(12, 24), 16
"""Of the first block of a stream, and where the header says how large the dictionary is."""


def greedy(path: Path) -> Path:
    """A file of a few hundred bytes whose header asks for a dictionary of 4 GiB."""
    packed = bytearray(lzma.compress(TEXT))
    packed[DICTIONARY] = 40
    header = packed[HEADER]
    packed[HEADER] = header[:-4] + struct.pack("<I", zlib.crc32(header[:-4]))
    path.write_bytes(packed)
    return path


@pytest.mark.parametrize(
    "packed",
    [
        lzma.compress(TEXT),
        lzma.compress(TEXT[:1000]) + b"\0" * 8 + lzma.compress(TEXT[1000:]) + b"\0" * 200_000,
        lzma.compress(b"") + lzma.compress(TEXT, preset=9),
    ],
    ids=["a stream", "streams with padding", "an empty stream"],
)
@pytest.mark.parametrize("size", [-1, 7, 1 << 20])
def test_all_streams_are_read(packed: bytes, size: int) -> None:
    with dump.xz_unpacked(BytesIO(packed), Path("x")) as source:
        assert b"".join(iter(lambda: source.read(size), b"")) == TEXT


@pytest.mark.parametrize(
    ("packed", "error"),
    [
        (lzma.compress(TEXT)[:-20], EOFError),
        (lzma.compress(TEXT)[:3], EOFError),
        (lzma.compress(TEXT)[:-20] + b"x" * 20, lzma.LZMAError),
        (lzma.compress(TEXT) + b"rubbish" * 9, lzma.LZMAError),
    ],
)
def test_what_is_cut_or_damaged_is_an_error(packed: bytes, error: type[Exception]) -> None:
    with dump.xz_unpacked(BytesIO(packed), Path("x")) as source, pytest.raises(error):
        source.read()


@pytest.mark.parametrize(
    "read",
    [lambda path: list(lines_of(path)), lambda path: list(numbered_lines(path)), dump_at],
    ids=["log", "server", "dump"],
)
def test_a_file_that_asks_for_more_memory_than_it_may_take_is_refused(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = greedy(tmp_path / "log.xz")
    with pytest.raises(UserError, match=f"{path} takes more than 300 MiB of memory to unpack") as refused:
        read(path)
    assert refused.value.hint == f"unpack it yourself if you trust it: xz -dk {path}"


def test_an_import_of_such_a_file_says_so(homes: Path) -> None:
    assert "of memory to unpack" in complaint("import", "pgbench", str(greedy(homes / "log.xz")))
