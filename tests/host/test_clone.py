"""Cloning trees: the same bytes, holes, links and modes, whatever the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.host.clone import clone_tree, tree_size_bytes


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
