"""A digest is of contents, and is kept for what has not changed."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from dbdyno.user_data import digest
from dbdyno.user_data.digest import digest_of, size_of

pytestmark = pytest.mark.usefixtures("homes")


def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "dump.sql"
    place.write_text("one")
    assert digest_of(place) == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(digest, "_of_file", lambda _: pytest.fail("it was read again"))
        assert digest_of(place) == hashlib.sha256(b"one").hexdigest()
    before = place.stat()
    place.write_text("two")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest_of(place) == hashlib.sha256(b"two").hexdigest()


def test_a_folder_is_known_by_names_and_contents_wherever_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/a").write_text("one")
    (folder / "b").write_text("two")
    first = digest_of(folder)
    shutil.copytree(folder, tmp_path / "copied")
    assert digest_of(tmp_path / "copied") == first
    assert size_of(folder) == 6
    (folder / "b").rename(folder / "c")
    assert digest_of(folder) != first
    (folder / "c").rename(folder / "b")
    (folder / "inner/a").write_text("ona")
    assert digest_of(folder) != first
