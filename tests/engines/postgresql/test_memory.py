"""What a PostgreSQL shares goes with its data when it was killed, also where nothing else sees to that."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.engines.postgresql import memory
from dbdyno.errors import EngineMissing
from dbdyno.host import paths, read_only
from dbdyno.host.journal import open_journal
from dbdyno.host.process import families
from tests.running_server import UsersServer, users_server

pytestmark = pytest.mark.usefixtures("homes")


def shared() -> set[str]:
    """The numbers of segments, and the names of files, on this host."""
    segments = {line.split()[1] for line in memory.SEGMENTS.read_text().splitlines()[1:]}
    return segments | {path.name for path in memory.FILES.glob("PostgreSQL.*")}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[UsersServer]:
    """One on a host that gives it no namespace, in a folder that a cleanup removes."""
    monkeypatch.setattr(read_only, "why_writable", lambda: "the kernel refuses a mount namespace")
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
    memory.free(server.data / "database" / "postmaster.pid")
    assert shared() == before and server.tell("SELECT 1")
