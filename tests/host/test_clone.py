"""Cloning trees: the same bytes, holes, links and modes, whatever the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.host.clone import clone_file, clone_tree, differing_file, tree_size_bytes


def test_a_tree_is_cloned_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "rows").write_bytes(os.urandom(100_000))
    (source / "empty").touch()
    (source / "empty").chmod(0o640)
    (source / "link").symlink_to("below/rows")
    (source / "folder link").symlink_to("below")
    cloned = clone_tree(source, tmp_path / "target")
    target = tmp_path / "target"
    assert (target / "below" / "rows").read_bytes() == (source / "below" / "rows").read_bytes()
    assert (target / "empty").stat().st_mode & 0o777 == 0o640
    assert (target / "link").readlink() == Path("below/rows")
    assert (target / "folder link").is_symlink()
    assert (cloned.files, cloned.way in ("reflink", "copy")) == (2, True)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda at: None, ""),
        (lambda at: flip(at / "below" / "rows", 0), "below/rows"),
        (lambda at: flip(at / "below" / "rows", 2_999_999), "below/rows"),
        (lambda at: os.truncate(at / "below" / "rows", 2_999_999), "below/rows"),
        (lambda at: os.truncate(at / "below" / "rows", 3_000_001), "below/rows"),
        (lambda at: (at / "empty").write_bytes(b"x"), "empty"),
        (lambda at: (at / "empty").unlink(), "empty"),
        (lambda at: (at / "more").touch(), "more"),
    ],
    ids=["equal", "first byte", "last byte", "a byte less", "a byte more", "not empty", "gone", "one more"],
)
def test_one_byte_that_differs_is_found(tmp_path: Path, change: Callable[[Path], object], name: str) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "rows").write_bytes(os.urandom(3_000_000))
    (source / "empty").touch()
    clone_tree(source, tmp_path / "target")
    change(tmp_path / "target")
    assert differing_file(source, tmp_path / "target") == name


def flip(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def test_holes_stay_holes(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "sparse").open("wb") as file:
        file.seek(64 << 20)
        file.write(b"end")
        file.truncate(128 << 20)
    clone_tree(tmp_path / "source", tmp_path / "target")
    copy = tmp_path / "target" / "sparse"
    assert copy.stat().st_size == 128 << 20
    assert tree_size_bytes(tmp_path / "target") < 1 << 20
    with copy.open("rb") as file:
        file.seek(64 << 20)
        assert file.read(3) == b"end"


@given(pieces=some.lists(some.tuples(some.integers(0, 300_000), some.binary(min_size=1, max_size=5000))))
def test_any_file_is_copied_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("clone")
    (folder / "source").mkdir()
    with (folder / "source" / "file").open("wb") as file:
        for position, content in pieces:
            file.seek(position)
            file.write(content)
    clone_tree(folder / "source", folder / "target")
    assert (folder / "target" / "file").read_bytes() == (folder / "source" / "file").read_bytes()


def test_where_the_kernel_copies_nothing_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_bytes(os.urandom(3_000_000))
    clone_tree(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target" / "file").read_bytes() == (tmp_path / "source" / "file").read_bytes()


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    with pytest.raises(FileExistsError):
        clone_tree(tmp_path / "source", tmp_path / "target")


def test_a_tree_is_on_disk_when_it_is_cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source" / "below").mkdir(parents=True)
    (tmp_path / "source" / "below" / "rows").write_bytes(b"x" * 9000)
    synced: list[tuple[Path, bytes]] = []

    def watched(folder: Path) -> None:
        synced.append((folder, (folder / "below" / "rows").read_bytes()))

    monkeypatch.setattr("dbdyno.host.clone.sync_file_system", watched)
    clone_tree(tmp_path / "source", tmp_path / "target")
    assert synced == [(tmp_path / "target", b"x" * 9000)]


def test_a_file_that_is_cloned_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_bytes(b"x" * 9000)
    synced: list[tuple[Path, bytes]] = []

    def watched(descriptor: int) -> None:
        synced.append((Path(f"/proc/self/fd/{descriptor}").readlink(), (tmp_path / "copy").read_bytes()))

    monkeypatch.setattr(os, "fsync", watched)
    clone_file(tmp_path / "data", tmp_path / "copy")
    assert synced == [(tmp_path / "copy", b"x" * 9000)]
