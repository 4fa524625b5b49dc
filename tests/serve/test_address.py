"""Nobody sees a page who was not given its address, and nobody is led to one by another site."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import psutil
import pytest

from dbdyno.serve.server import STRANGERS_PER_ADDRESS
from tests.conftest import homes_in
from tests.serve.served import Serving, Visitor, serving, visitor_of


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    patch = pytest.MonkeyPatch()
    with homes_in(tmp_path_factory.mktemp("homes"), patch), serving() as found:
        yield found
    patch.undo()


def stranger(served: Serving) -> Visitor:
    """Who knows the port, and no token."""
    return Visitor(served.visitor.port, "")


def test_the_token_becomes_a_cookie_and_leaves_the_address(served: Serving) -> None:
    answer = Visitor(served.visitor.port, served.visitor.token).enter()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    kept = answer.headers["set-cookie"]
    assert "HttpOnly" in kept and "SameSite=strict" in kept and f"dyno-{served.visitor.port}=" in kept


@pytest.mark.parametrize("path", ["/", "/run/x", "/events?page=/", "/vega.js", "/live", "/?token=wrong"])
@pytest.mark.parametrize("cookie", ["", "dyno-{port}=wrong", "dyno-{port}=é"])
def test_without_the_token_nothing_is_shown(served: Serving, path: str, cookie: str) -> None:
    sent = {"Cookie": cookie.format(port=served.visitor.port).encode().decode("latin-1")} if cookie else {}
    answer = stranger(served).ask(path, **sent)
    assert answer.status == 403 and "needs its token" in answer.body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_server_of_another_name_is_not_this_one(served: Serving, host: str) -> None:
    assert served.visitor.ask("/", Host=host.format(port=served.visitor.port)).status == 421


def test_a_server_on_this_machine_has_two_names(served: Serving) -> None:
    assert served.visitor.ask("/", Host=f"localhost:{served.visitor.port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_pages_can_only_be_read(served: Serving, method: str) -> None:
    assert served.visitor.ask("/", method).status == 405


@pytest.mark.parametrize("path", ["//evil.example/", "/%2Fevil.example/", "///evil.example"])
def test_an_address_never_leads_to_another_host(served: Serving, path: str) -> None:
    answer = stranger(served).ask(f"{path}?token={served.visitor.token}")
    assert answer.status == 303 and not answer.headers["location"].startswith("//")


@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_no_page_is_kept_framed_or_named_to_others(served: Serving, path: str) -> None:
    headers = served.visitor.ask(path).headers
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_two_servers_do_not_know_each_others_tokens(served: Serving) -> None:
    with serving() as other:
        assert other.visitor.token != served.visitor.token
        both = f"{served.visitor.cookie}; {other.visitor.cookie}"
        for one in (served, other):
            assert one.visitor.ask("/", Cookie=both).status == 200
        assert other.visitor.ask("/", Cookie=served.visitor.cookie).status == 403


def test_an_address_is_read_as_it_was_printed() -> None:
    assert visitor_of("http://127.0.0.1:80/?token=a-b\n") == Visitor(80, "a-b")


def half_sent(served: Serving) -> socket.socket:
    """A connection whose request never ends."""
    connection = socket.create_connection(("127.0.0.1", served.visitor.port), timeout=60)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.")
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection, which is waited for."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_request_that_never_ends_is_ended(served: Serving) -> None:
    with half_sent(served) as connection:
        assert is_closed(connection)


def test_who_waits_without_the_token_takes_no_place_of_who_has_it(served: Serving) -> None:
    strangers = [half_sent(served) for _ in range(STRANGERS_PER_ADDRESS + 8)]
    followed = served.visitor.connection("/events?page=/").getresponse()
    assert followed.readline() == b": following\n"
    strangers += [half_sent(served) for _ in range(STRANGERS_PER_ADDRESS + 8)]
    assert served.visitor.ask("/").status == 200
    assert all(is_closed(connection) for connection in strangers[:8])
    ours = [psutil.CONN_ESTABLISHED, served.visitor.port]
    open_now = [
        one
        for one in psutil.Process(served.process.pid).net_connections("tcp")
        if [one.status, one.laddr.port] == ours
    ]
    assert len(open_now) <= STRANGERS_PER_ADDRESS + 1
    assert not followed.isclosed()
    for connection in strangers:
        connection.close()
