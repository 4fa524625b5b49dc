"""Which process listens at an address."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.host import listening


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path, as a socket's has little room."""
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        yield Path(folder) / "socket"


def test_the_process_at_a_socket_is_found(place: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(place))
        server.listen()
        assert listening.at_socket(place) == os.getpid()
    assert listening.at_socket(place) is None
    assert listening.at_socket(place.with_name("nothing")) is None


def test_the_process_at_a_port_is_found() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert listening.at_port(port) is None
        server.listen()
        assert listening.at_port(port) == os.getpid()
    assert listening.at_port(port) is None


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("", True),
        ("db.example", False),
    ],
)
def test_a_name_of_this_host_is_known(name: str, here: bool) -> None:
    assert listening.is_here(name) is here
