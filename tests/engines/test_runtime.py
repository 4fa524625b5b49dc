"""Which process of this host a server's URL leads to."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.deploy.made import production_of
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.runtime import process_at, server_at
from dbdyno.errors import UserError

PRODUCTION = production_of(MARIADB)


@pytest.fixture
def listening() -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory(prefix="dyno-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server,
    ):
        server.bind(f"{folder}/s")
        server.listen()
        yield Path(folder) / "s"


def test_a_urls_socket_leads_to_its_process(listening: Path) -> None:
    assert process_at(f"mysql://root@localhost/test?socket={listening}", PRODUCTION) == os.getpid()


def test_a_urls_port_leads_to_its_process() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert process_at(f"mysql://root@127.0.0.1:{port}/test", PRODUCTION) == os.getpid()


def test_what_forwards_to_a_server_is_not_taken_for_it(listening: Path) -> None:
    url = f"mysql://root@localhost/test?socket={listening}"
    assert server_at(url, PRODUCTION, ("mariadbd",)) is None
    own = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0]
    assert server_at(url, PRODUCTION, (Path(os.fsdecode(own)).name,)) == os.getpid()


@pytest.mark.parametrize("url", ["mysql://root@db.example/test", "sqlite:///a/b.sqlite"])
def test_another_host_and_a_file_lead_to_none(url: str) -> None:
    assert process_at(url, PRODUCTION) is None


def test_a_url_of_several_hosts_is_of_no_server() -> None:
    with pytest.raises(UserError, match="names several hosts"):
        process_at("postgresql://me@127.0.0.1:1,127.0.0.1:2/test", PRODUCTION)
