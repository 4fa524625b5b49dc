"""Who holds a folder, and a copy of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.user_data import folder as digest
from dbdyno.user_data.folder import (
    copy_folder,
    digest_of_path,
    holder_of,
    require_stopped,
    require_unmoved,
    size_bytes_of,
)

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


def test_the_process_that_holds_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ibdata1"
    file.write_text("data")
    assert holder_of(file) == 0
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert holder_of(file) == child.pid
        with pytest.raises(UserError, match=rf"a server that runs, process {child.pid}"):
            require_stopped(tmp_path, holder_of(file))
        child.communicate(b"\n")
    assert holder_of(file) == 0


def test_a_copy_belongs_to_this_user_and_leaves_out_what_it_is_told(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "inner").mkdir(parents=True)
    (source / "inner/a").write_text("one")
    (source / "inner/a").chmod(0o444)
    (source / "server.pid").write_text("1")
    copy_folder(source, target, lambda path: path.suffix == ".pid")
    assert sorted(path.name for path in target.rglob("*")) == ["a", "inner"]
    status = (target / "inner/a").stat()
    assert (status.st_mode & 0o777, status.st_uid) == (0o600, os.geteuid())
    copy_folder(source / "inner/a", tmp_path / "alone")
    assert (tmp_path / "alone").read_text() == "one"


def test_a_folder_with_a_part_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    require_unmoved(folder)
    (folder / "pg_wal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="pg_wal is a link to"):
        require_unmoved(folder)


pytestmark = pytest.mark.usefixtures("homes")


def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "dump.sql"
    place.write_text("one")
    assert digest_of_path(place) == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(digest, "_of_file", lambda _: pytest.fail("it was read again"))
        assert digest_of_path(place) == hashlib.sha256(b"one").hexdigest()
    before = place.stat()
    place.write_text("two")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest_of_path(place) == hashlib.sha256(b"two").hexdigest()


def test_a_folder_is_known_by_names_and_contents_wherever_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/a").write_text("one")
    (folder / "b").write_text("two")
    first = digest_of_path(folder)
    shutil.copytree(folder, tmp_path / "copied")
    assert digest_of_path(tmp_path / "copied") == first
    assert size_bytes_of(folder) == 6
    (folder / "b").rename(folder / "c")
    assert digest_of_path(folder) != first
    (folder / "c").rename(folder / "b")
    (folder / "inner/a").write_text("ona")
    assert digest_of_path(folder) != first
