"""The files of each repetition."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.imported import pgbench
from dbdyno.imported.files import Repetition, lines_of, of_threads, one_each
from tests.needs import on_machine

Reader = Callable[[Sequence[Path]], list[Repetition]]


def folder_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("a line\n")
    return folder


def test_the_threads_of_a_process_are_one_repetition(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, "log.20", "log.100", "log.20.1", "log.20.10", *(f"log.20.{n}" for n in range(2, 10))
    )
    found = of_threads([folder])
    assert [Path(each.name).name for each in found] == ["log.20", "log.100"]
    assert [file.name for file in found[0].files] == ["log.20", *(f"log.20.{n}" for n in range(1, 11))]
    assert [file.name for file in found[1].files] == ["log.100"]


@pytest.mark.parametrize("prefix", ["rep1", "pgbench_log", "new.disk2", "2"])
def test_the_prefix_of_a_log_may_end_in_a_digit(tmp_path: Path, prefix: str) -> None:
    names = [f"{prefix}.4711", f"{prefix}.4711.1", f"{prefix}.4712"]
    found = of_threads([folder_with(tmp_path, *names)])
    assert [[file.name for file in each.files] for each in found] == [names[:2], names[2:]]


def test_a_file_with_another_name_is_a_repetition_of_its_own(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "monday.log", "tuesday.log")
    assert [each.files for each in of_threads([folder])] == [
        (folder / "monday.log",),
        (folder / "tuesday.log",),
    ]
    assert len(one_each([folder])) == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["log.20.1"], "log.20 is missing"),
        (["log.20", "log.20.2"], "log.20.1 is missing"),
        ([], "holds no file"),
    ],
)
def test_a_folder_that_lacks_a_file_is_refused(tmp_path: Path, names: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        of_threads([folder_with(tmp_path, *names)])


def test_a_path_that_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"cannot be read: File name too long|is not there"):
        one_each([tmp_path / ("x" * 300)])

    def refused(folder: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        one_each([tmp_path])


def test_a_path_must_be_there_and_be_named_once(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.log")
    with pytest.raises(UserError, match="is not there"):
        one_each([folder / "b.log"])
    with pytest.raises(UserError, match="is given twice"):
        one_each([folder, folder / "a.log"])


def test_a_compressed_log_belongs_to_the_run_in_its_name(tmp_path: Path) -> None:
    names = ["log.20.gz", "log.20.1.xz", "log.21", "log.21.1.gz"]
    found = of_threads([folder_with(tmp_path, *names)])
    assert sorted(sorted(file.name for file in each.files) for each in found) == [
        ["log.20.1.xz", "log.20.gz"],
        ["log.21", "log.21.1.gz"],
    ]


@pytest.mark.parametrize("reader", [of_threads, one_each])
def test_a_log_beside_its_compressed_self_is_given_twice(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"log\.20.* is given twice, as .*log\.20.* too"):
        reader([folder_with(tmp_path, "log.20", "log.20.gz")])


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


def test_a_log_of_zstd_is_read(tmp_path: Path) -> None:
    if not on_machine("zstd"):
        return
    packed = subprocess.run(["zstd", "-qc"], input=b"1 2\n3 4\n", stdout=subprocess.PIPE, check=True).stdout
    assert list(lines_of(written(tmp_path, packed))) == [(1, "1 2"), (2, "3 4")]


def test_outputs_of_several_tests_are_no_repetitions(tmp_path: Path) -> None:
    for name in ("sb.o.point-query.pk1.dop4", "sb.o.scan.pk1.dop4"):
        (tmp_path / name).write_text("sysbench\n")
    with pytest.raises(UserError, match=r"outputs of 2 tests \(point-query, scan\)"):
        one_each([tmp_path])
    assert len(one_each([tmp_path / "sb.o.scan.pk1.dop4"])) == 1
