"""Whether a level of PostgreSQL's is in effect, by what the server shows."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.engines.postgresql import settings
from dbdyno.errors import EngineMissing
from dbdyno.frozen import Level
from dbdyno.host import launch, paths
from dbdyno.host.journal import open_journal
from dbdyno.host.process import families
from tests.running_server import UsersServer, users_server


@pytest.mark.parametrize(
    ("name", "level", "effective", "same"),
    [
        ("shared_buffers", "128MB", "128MB", True),
        ("shared_buffers", 16384, "128MB", True),  # a bare number counts pages
        ("shared_buffers", "128MB", "64MB", False),
        ("wal_buffers", "-1", "4MB", True),  # the server chose the size
        ("wal_buffers", -1, "16MB", True),
        ("wal_buffers", "16MB", "4MB", False),
        ("wal_compression", "on", "pglz", True),  # a switch once, which has several ways now
        ("wal_compression", "lz4", "pglz", False),
        ("wal_compression", "off", "pglz", False),
        ("transaction_buffers", 0, "256kB", True),
        ("autovacuum_work_mem", -1, "-1", True),
        ("autovacuum_work_mem", -1, "64MB", False),  # this one never shows another size
    ],
)
def test_a_level_that_leaves_a_size_to_the_server_is_in_effect_whatever_it_chose(
    name: str, level: Level, effective: str, same: bool
) -> None:
    assert settings.same(name, level, effective) is same


pytestmark = pytest.mark.usefixtures("homes")


def shared() -> set[str]:
    """The numbers of segments, and the names of files, on this host."""
    segments = {line.split()[1] for line in settings.SEGMENTS.read_text().splitlines()[1:]}
    return segments | {path.name for path in settings.FILES.glob("PostgreSQL.*")}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[UsersServer]:
    """One on a host that gives it no namespace, in a folder that a cleanup removes."""
    monkeypatch.setattr(launch, "why_writable", lambda: "the kernel refuses a mount namespace")
    folder = paths.runtime() / "p"
    folder.mkdir()
    try:
        with users_server("postgresql@15", folder) as found:
            yield found
    except EngineMissing as missing:
        pytest.skip(f"postgresql is not here: {missing.message}")


def killed(server: UsersServer) -> None:
    assert server.server is not None
    for process_id in families(server.server.process_ids):
        os.kill(process_id, signal.SIGKILL)
    server.server.kill()


def test_memory_of_a_server_that_was_killed_goes_with_its_data(server: UsersServer) -> None:
    before = shared()
    with open_journal() as journal:
        journal.note_tree(server.folder)
        killed(server)
        assert shared() == before, "nothing of it is left by itself"
    assert not Path(server.folder).exists()
    gone = before - shared()
    assert len([name for name in gone if name.startswith("PostgreSQL.")]) >= 1
    assert len([name for name in gone if name.isdigit()]) == 1


def test_memory_of_a_server_that_lives_stays(server: UsersServer) -> None:
    before = shared()
    settings.free(server.data / "database" / "postmaster.pid")
    assert shared() == before and server.tell("SELECT 1")
