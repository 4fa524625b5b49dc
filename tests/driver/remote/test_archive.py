"""The file that is copied to a load host."""

from __future__ import annotations

import hashlib
import io
import platform
import zipfile
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.driver.remote.archive import archive
from dbdyno.driver.remote.boot import CHILD, MACHINE, MODULE


def test_the_same_driver_is_the_same_file_whenever_it_is_made() -> None:
    first = archive()
    archive.cache_clear()
    assert archive() == first
    assert first.digest == hashlib.sha256(first.content).hexdigest()


def test_the_file_holds_the_driver_the_child_and_the_kind_of_cpu() -> None:
    members = zipfile.ZipFile(io.BytesIO(archive().content))
    assert sorted(members.namelist()) == sorted([MODULE, CHILD, MACHINE])
    assert members.read(MODULE) == Path(_driver.__file__).read_bytes()
    assert members.read(MACHINE).decode() == platform.machine()
