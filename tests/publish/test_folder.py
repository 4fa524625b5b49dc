"""A published folder is written whole or not at all, and nothing strange in it is opened."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.publish.folder import read_folder, require_empty, write_folder

CONTENTS = {"README.txt": b"read me", "files/01-a.lua": b"--"}


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", CONTENTS)
    found, strange = read_folder(tmp_path / "out")
    assert (dict(found), strange) == (CONTENTS, [])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_taken_and_a_full_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", CONTENTS)
    with pytest.raises(UserError, match="is not empty"):
        write_folder(tmp_path / "out", CONTENTS)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is no folder"):
        require_empty(tmp_path / "file")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_ends_the_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    synced: list[int] = []

    def end(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            raise error

    monkeypatch.setattr(os, "fsync", end)
    with pytest.raises((KeyboardInterrupt, UserError)):
        write_folder(tmp_path / "out", CONTENTS)
    assert list(tmp_path.iterdir()) == []


def test_a_place_without_room_is_told(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match=r"cannot write .*out"):
            write_folder(tmp_path / "out", {"large": b"x" * 2000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_links_and_pipes_are_named_and_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, CONTENTS)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "files" / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    contents, strange = read_folder(folder)
    assert contents == CONTENTS and sorted(strange) == ["files/up", "link", "pipe"]


def test_what_is_no_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder"):
        read_folder(tmp_path / "none")
