"""How a dump is packed is told by its contents, and what xz packed takes no more memory than it may."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import subprocess
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.imported.files import lines_of
from dbdyno.sql_logs.lines import numbered_lines
from dbdyno.user_data import dump
from dbdyno.user_data.dump import Packing, dump_at, filled, text_of
from tests.cli.calls import complaint
from tests.needs import on_machine

TEXT = b"-- MariaDB dump\nCREATE TABLE a (b INT);\n" + b"INSERT INTO a VALUES (1);\n" * 50_000


def test_what_packs_a_dump_is_told_by_its_contents_and_not_by_its_name(tmp_path: Path) -> None:
    packed = {
        Packing.NONE: TEXT,
        Packing.GZIP: gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
        Packing.BZIP2: bz2.compress(TEXT),
        Packing.XZ: lzma.compress(TEXT),
    }
    if on_machine("zstd"):
        packed[Packing.ZSTD] = subprocess.run(["zstd"], input=TEXT, capture_output=True, check=True).stdout
    for packing, content in packed.items():
        place = tmp_path / "dump.sql"
        place.write_bytes(content)
        dump = dump_at(place)
        assert (dump.packing, dump.archive, dump.is_text) == (packing, False, True)
        assert dump.head.startswith(b"-- MariaDB dump\n")
        with text_of(dump) as text:
            assert filled(text.source, 10 * len(TEXT)) == TEXT
            assert text.done_bytes == len(content) == dump.size_bytes


def test_archives_of_pg_dump_are_told_from_text(tmp_path: Path) -> None:
    (tmp_path / "custom").write_bytes(b"PGDMP\x01\x0e")
    assert dump_at(tmp_path / "custom").archive
    (tmp_path / "directory").mkdir()
    with pytest.raises(UserError, match="is a folder and no dump"):
        dump_at(tmp_path / "directory")
    (tmp_path / "directory/toc.dat").write_bytes(b"PGDMP")
    assert dump_at(tmp_path / "directory").archive


def test_a_dump_that_was_cut_short_is_refused_where_it_ends(tmp_path: Path) -> None:
    cut = gzip.compress(TEXT)[:-20]
    (tmp_path / "a").write_bytes(cut)
    dump = dump_at(tmp_path / "a")
    with (
        pytest.raises(UserError, match="cannot be read to its end"),
        text_of(dump) as text,
    ):
        filled(text.source, 10 * len(TEXT))


def test_what_is_no_dump_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    assert not dump_at(tmp_path / "picture").is_text
    for name, told in (("missing", "there is no"), ("empty", "is empty")):
        with pytest.raises(UserError, match=told):
            dump_at(tmp_path / name)


XZ_TEXT = b"CREATE TABLE a (id INT);\n" * 50_000
HEADER, DICTIONARY = slice(12, 24), 16
"""Of the first block of a stream, and where the header says how large the dictionary is."""


def greedy(path: Path) -> Path:
    """A file of a few hundred bytes whose header asks for a dictionary of 4 GiB."""
    packed = bytearray(lzma.compress(XZ_TEXT))
    packed[DICTIONARY] = 40
    header = packed[HEADER]
    packed[HEADER] = header[:-4] + struct.pack("<I", zlib.crc32(header[:-4]))
    path.write_bytes(packed)
    return path


@pytest.mark.parametrize(
    "packed",
    [
        lzma.compress(XZ_TEXT),
        lzma.compress(XZ_TEXT[:1000]) + b"\0" * 8 + lzma.compress(XZ_TEXT[1000:]) + b"\0" * 200_000,
        lzma.compress(b"") + lzma.compress(XZ_TEXT, preset=9),
    ],
    ids=["a stream", "streams with padding", "an empty stream"],
)
@pytest.mark.parametrize("size", [-1, 7, 1 << 20])
def test_all_streams_are_read(packed: bytes, size: int) -> None:
    with dump.xz_unpacked(BytesIO(packed), Path("x")) as source:
        assert b"".join(iter(lambda: source.read(size), b"")) == XZ_TEXT


@pytest.mark.parametrize(
    ("packed", "error"),
    [
        (lzma.compress(XZ_TEXT)[:-20], EOFError),
        (lzma.compress(XZ_TEXT)[:3], EOFError),
        (lzma.compress(XZ_TEXT)[:-20] + b"x" * 20, lzma.LZMAError),
        (lzma.compress(XZ_TEXT) + b"rubbish" * 9, lzma.LZMAError),
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
