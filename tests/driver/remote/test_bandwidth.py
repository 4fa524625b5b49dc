"""What the network carries between a load host and this one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dbdyno.driver.remote import bandwidth
from dbdyno.driver.remote.boot import TO_SERVER, WORD_BYTES, carried
from dbdyno.driver.remote.load import RemoteDriver, install
from tests.load_hosts import NAME, log_in_here


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteDriver:
    log_in_here(tmp_path, monkeypatch)
    install(NAME)
    return RemoteDriver(NAME)


def test_both_directions_are_told(driver: RemoteDriver) -> None:
    found = driver.bandwidth("127.0.0.1", round_trip_s=0.0)
    driver.close()
    assert found is not None
    # Loopback of any machine is faster than a network of 100 Mbit/s.
    assert min(found.to_server_bytes_per_s, found.from_server_bytes_per_s) > 12.5e6


def test_whoever_does_not_know_the_word_is_hung_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1.0)
        with socket.create_connection(listener.getsockname()) as stranger:
            stranger.sendall(bytes(WORD_BYTES) * 1000)
            assert bandwidth._served(listener, bytes(range(WORD_BYTES)), TO_SERVER, 0.1) == 0.0


def test_a_load_host_that_does_not_come_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
    answer = carried(place, bytes(WORD_BYTES), TO_SERVER, 0.1)
    assert answer["error"]["kind"] == "connect" and "refused" in answer["error"]["message"]
