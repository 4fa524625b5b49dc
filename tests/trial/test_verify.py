"""The proof that an embedded engine's process holds the library that was named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import ServerFailed
from dbdyno.host.journal import open_journal
from dbdyno.host.launch import Launch
from dbdyno.layers.setup import Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference
from dbdyno.trial.verify import verify

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes")]


@pytest.fixture
def copied(tmp_path: Path) -> Installation:
    """The host's library in a file of the test's own."""
    library = SQLITE.obtaining.locate(Reference("sqlite")).library
    assert library is not None
    shutil.copy(library, tmp_path / "libsqlite3.so.0")
    return SQLITE.obtaining.locate(Reference("sqlite", path=str(tmp_path)))


@contextmanager
def running(installation: Installation, named: Installation, folder: Path) -> Iterator[Running]:
    """SQLite of one installation, under the name of another."""
    SQLITE.life.initialise(installation, folder / "data", {})
    server = SQLITE.life.start(installation, folder / "data", folder, {}, Launch())
    with open_journal() as journal, LoadProcess({}, Launch()) as load:
        yield Running(Setup(SQLITE, named, folder, journal, Job(workload="tpcb")), server, load)


def test_the_named_library_is_proved_until_its_file_changes(copied: Installation, tmp_path: Path) -> None:
    with running(copied, copied, tmp_path) as found:
        assert verify(found, {}, {}) == ()
        assert copied.library is not None
        with copied.library.open("ab") as library:
            library.write(b"\0")
        with pytest.raises(ServerFailed, match="holds another SQLite") as failed:
            verify(found, {}, {})
        assert str(copied.library) in failed.value.message


def test_a_process_with_another_library_is_no_proof(copied: Installation, tmp_path: Path) -> None:
    assert copied.library is not None
    twin = copied.library.with_name("libsqlite3.so.0.twin")
    shutil.copy(copied.library, twin)
    named = replace(copied, library=twin)
    with (
        running(copied, named, tmp_path) as found,
        pytest.raises(ServerFailed, match="holds another SQLite"),
    ):
        verify(found, {}, {})
