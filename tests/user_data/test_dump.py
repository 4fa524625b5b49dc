"""How a dump is packed is told by its contents."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.user_data.dump import Packing, dump_at, filled, text_of
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
