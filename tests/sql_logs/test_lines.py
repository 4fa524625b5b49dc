"""Lines of logs, whatever their packing and their bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.sql_logs import lines as read
from dbdyno.sql_logs.lines import beginning, numbered_lines
from dbdyno.sql_logs.read import log_of
from tests.needs import on_machine

TOO_LONG = "entry that is too long"


def of(tmp_path: Path, content: bytes) -> list[str]:
    path = tmp_path / "log"
    path.write_bytes(content)
    found = list(numbered_lines(path))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return [line for _, line in found]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_log_may_be_compressed_whatever_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert of(tmp_path, pack(b"one\r\ntwo\r\nthree")) == ["one\n", "two\n", "three"]


def test_a_log_may_be_compressed_with_zstd(tmp_path: Path) -> None:
    if not on_machine("zstd"):
        return
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    subprocess.run(["zstd", "-q", path], check=True)
    assert [line for _, line in numbered_lines(tmp_path / "log.zst")] == ["one\n", "two\n"]
    assert beginning(tmp_path / "log.zst", 1) == ["one"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", b""),
        (b"\n\n", b"\n\n"),
        (b"\xef\xbb\xbfone\n", b"one\n"),
        ("naïve\n".encode() + "naïve €\n".encode("cp1252") + b"\x81\0\n",) * 2,
        (b"\0" * 1000 + b"one\0\ntwo\n", b"one\0\ntwo\n"),
        (b"\0" * 1000, b""),
        (b"a\r\nb\n",) * 2,
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"a\r\n\r\r\nb\r\n", b"a\n\r\nb\n"),
    ],
)
def test_a_line_holds_the_bytes_of_the_log(tmp_path: Path, content: bytes, expected: bytes) -> None:
    assert "".join(of(tmp_path, content)).encode("utf-8", "surrogateescape") == expected


def test_a_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "LINE_BYTES_MOST", 10)
    assert of(tmp_path, b"a" * 35 + b"\nshort\n" + b"b" * 95) == ["a" * 10, "short\n", "b" * 10]


@pytest.mark.parametrize(
    ("beginning", "further", "end"),
    [
        ("# User@Host: a[a] @ b []\n# Query_time: 1.0  Lock_time: 0\nSELECT 1", "+ 1",
         "+ 0;\n"),
        ("240101  1:00:00\t 7 Query\tSELECT 1", "+ 1", "240101  1:00:00\t 7 Quit\t\n"),
        ("2024-01-01 00:00:00.000 UTC [1] LOG:  duration: 1.0 ms  statement: SELECT 1", "\t+ 1",
         "2024-01-01 00:00:00.000 UTC [1] LOG:  checkpoint\n2024-01-01 00:00:00.000 UTC [1] LOG:  x\n"),
    ],
)  # fmt: skip
def test_an_entry_of_many_lines_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: str, further: str, end: str
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join([beginning, *[further] * 10_000, end]))
    whole = [seen for seen in log_of([path]).statements if not seen.rest]
    assert whole[0].text.count("+ 1") == 10_000
    monkeypatch.setattr(read, "LINE_BYTES_MOST", 1000)
    found = list(log_of([path]).statements)
    assert TOO_LONG in [seen.rest for seen in found] and not any(seen.text for seen in found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"one\n" * 1000)[:-20], "is damaged, or was cut off"),
        (gzip.compress(b"one\n" * 1000)[:40] + b"xxxxxxxxxxxxxxxxxxxx", "is damaged"),
        (bz2.compress(b"one\n" * 1000)[:-20], "is damaged, or was cut off"),
        ("one\n".encode("utf-16"), "is in UTF-16"),
    ],
    ids=["cut gzip", "damaged gzip", "cut bzip2", "UTF-16"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(UserError) as refused:
        of(tmp_path, content)
    assert said in refused.value.message and refused.value.hint


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        list(numbered_lines(tmp_path))
