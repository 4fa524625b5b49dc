"""Lines of logs, whatever their packing and their bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.traffic import lines as read
from dbdyno.traffic.lines import lines
from dbdyno.traffic.read import log_of


def of(tmp_path: Path, content: bytes) -> list[str]:
    path = tmp_path / "log"
    path.write_bytes(content)
    found = list(lines(path))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return [line for _, line in found]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_log_may_be_compressed_whatever_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert of(tmp_path, pack(b"one\r\ntwo\nthree")) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n", ["", ""]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        ("naïve\n".encode() + "naïve €\n".encode("cp1252") + b"\x81\n", ["naïve", "naïve €", "\ufffd"]),
        (b"\0" * 1000 + b"one\0\ntwo\n", ["one", "two"]),
        (b"\0" * 1000, []),
    ],
)
def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    assert of(tmp_path, content) == expected


def test_a_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "LINE_BYTES_MOST", 10)
    assert of(tmp_path, b"a" * 35 + b"\nshort\n" + b"\0" * 95 + b"end\n") == [
        f"{'a' * 10}{read.CUT}",
        "short",
        "end",
    ]


@pytest.mark.parametrize(
    ("beginning", "further"),
    [
        ("# Time: 240101  1:00:00\n# User@Host: a[a] @ b []\n# Query_time: 1.0\nSELECT 1", "+ 1"),
        ("240101  1:00:00\t 7 Query\tSELECT 1", "+ 1"),
        ("2024-01-01 00:00:00.000 UTC [1] LOG:  duration: 1.0 ms  statement: SELECT 1", "\t+ 1"),
    ],
)
def test_an_entry_of_many_lines_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: str, further: str
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join([beginning, *[further] * 10_000, ""]))
    [whole] = log_of([path]).statements
    assert whole.text.count("+ 1") == 10_000
    monkeypatch.setattr(read, "LINE_BYTES_MOST", 1000)
    [cut] = log_of([path]).statements
    assert 1 < cut.text.count("+ 1") < 20 and cut.text.endswith(read.CUT)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"one\n" * 1000)[:-20], "is damaged, or was cut off"),
        (gzip.compress(b"one\n" * 1000)[:40] + b"xxxxxxxxxxxxxxxxxxxx", "is damaged"),
        (bz2.compress(b"one\n" * 1000)[:-20], "is damaged, or was cut off"),
        (b"\x28\xb5\x2f\xfd....", "is compressed with zstd"),
        ("one\n".encode("utf-16"), "is in UTF-16"),
    ],
    ids=["cut gzip", "damaged gzip", "cut bzip2", "zstd", "UTF-16"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(UserError) as refused:
        of(tmp_path, content)
    assert said in refused.value.message and refused.value.hint


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        list(lines(tmp_path))
