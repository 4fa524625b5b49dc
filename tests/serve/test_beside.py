"""The last page of a run goes to all who follow it."""

from __future__ import annotations

import secrets
import socket

import pytest

from dbdyno.records.place import store_url
from dbdyno.serve.address import Address
from dbdyno.serve.beside import pages_beside
from tests.cli.trend_cases import keep
from tests.serve.served import PATIENCE_S, Visitor, following, until

pytestmark = pytest.mark.usefixtures("homes")

PAGE = "/"
SLOWER_S = 0.5
"""A second reader asks so much later: many times the pause in which the server looks whether all have it."""


def test_the_server_ends_when_the_last_of_its_readers_has_the_last_page() -> None:
    keep("first")
    token, quick, slow = secrets.token_hex(16), list[str](), list[str]()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with pages_beside(listener, Address(port, token), store_url(), PAGE, lambda _: None):
        readers = []
        # Who asks more often stands for nobody else.
        for seen, after_s, times in ((quick, 0.0, 3), (slow, SLOWER_S, 1)):
            visitor = Visitor(port, token)
            visitor.enter()
            seen.append(until(visitor, PAGE, "first"))
            readers.append(following(visitor, PAGE, seen, after_s, times))
        keep("second")
    for reader in readers:
        reader.join(PATIENCE_S)
    for seen in (quick, slow):
        *_, last, over = seen
        assert "second" in last and over.startswith("Dyno no longer")
