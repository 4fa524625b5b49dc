"""Who holds a folder, and a copy of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.user_data.folder import copy, holder_of, require_stopped, require_unmoved

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
    copy(source, target, lambda path: path.suffix == ".pid")
    assert sorted(path.name for path in target.rglob("*")) == ["a", "inner"]
    status = (target / "inner/a").stat()
    assert (status.st_mode & 0o777, status.st_uid) == (0o600, os.geteuid())
    copy(source / "inner/a", tmp_path / "alone")
    assert (tmp_path / "alone").read_text() == "one"


def test_a_folder_with_a_part_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    require_unmoved(folder)
    (folder / "pg_wal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="pg_wal is a link to"):
        require_unmoved(folder)
