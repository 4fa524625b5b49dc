"""A log's lines: of files as they are and compressed, whole and damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.imported import pgbench
from dbdyno.imported.lines import ZSTANDARD, lines_of

LOGS = Path(__file__).parent / "logs" / "pgbench"
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
TEXT = "".join(f"0 {number} {1000 + 7 * number} 0 1700000000 {number}\n" for number in range(2000))

compressors = pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
Compress = Callable[[bytes], bytes]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "pgbench_log.7"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("kind", sorted(path.name for path in LOGS.iterdir()))
def test_a_compressed_log_holds_what_the_log_holds(kind: str, ending: str, tmp_path: Path) -> None:
    files = sorted((LOGS / kind).iterdir())
    packed = [tmp_path / f"{path.name}.{ending}" for path in files]
    for path, made in zip(files, packed, strict=True):
        made.write_bytes(COMPRESSORS[ending](path.read_bytes()))
    assert pgbench.read(packed, pgbench.LAG) == pgbench.read(files, pgbench.LAG)


@compressors
@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), min_size=1))
def test_any_text_is_read_line_by_line(
    compress: Compress, lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    path = written(tmp_path_factory.mktemp("log"), compress(text))
    assert list(lines_of(path)) == list(enumerate(lines, 1))


@compressors
def test_a_compressed_log_that_was_cut_short_is_refused(compress: Compress, tmp_path: Path) -> None:
    whole = compress(TEXT.encode())
    with pytest.raises(UserError, match=r"line \d+: the compressed file is damaged from here on"):
        list(lines_of(written(tmp_path, whole[: len(whole) // 2])))


@compressors
def test_a_compressed_log_that_was_damaged_is_refused(compress: Compress, tmp_path: Path) -> None:
    whole = bytearray(compress(TEXT.encode()))
    for place in range(len(whole) // 2, len(whole) // 2 + 40):
        whole[place] ^= 0xFF
    with pytest.raises(UserError, match=r"line \d+: the compressed file is damaged|this is no text"):
        list(lines_of(written(tmp_path, bytes(whole))))


@compressors
def test_a_compressed_log_without_a_line_is_empty(compress: Compress, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is empty"):
        list(lines_of(written(tmp_path, compress(b""))))


def test_a_log_of_zstd_is_refused_with_what_unpacks_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="compressed by zstd") as refused:
        list(lines_of(written(tmp_path, ZSTANDARD + b"anything")))
    assert refused.value.hint.startswith("zstd -d ")
