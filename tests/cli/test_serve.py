"""`dyno serve`: it begins with an address, and ends with Ctrl-C."""

from __future__ import annotations

import re
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.cli.calls import complaint
from tests.cli.trend_cases import keep
from tests.serve.served import serving

pytestmark = pytest.mark.usefixtures("homes")


def test_a_port_that_is_in_use_is_one_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = complaint("serve", "--port", str(port))
    assert said.startswith(f"error: port {port} of 127.0.0.1 is in use\n") and "hint: name another" in said


def test_a_store_that_cannot_be_read_is_told_before_the_address(homes: Path) -> None:
    (homes / "no.sqlite").write_text("no database")
    assert "no.sqlite failed" in complaint("serve", "--store", f"sqlite:///{homes / 'no.sqlite'}", code=1)


def test_a_token_in_a_file_stays_the_same(homes: Path) -> None:
    file = homes / "token"
    tokens = set()
    for _ in range(2):
        with serving("--token-file", str(file)) as served:
            tokens.add(served.visitor.token)
    assert tokens == {file.read_text().strip()} and file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("short", 0o600, "holds no token"),
        ("a" * 40 + "\nb", 0o600, "holds no token"),
        ("a" * 40, 0o644, "others may read"),
        ("\u00e9" * 40, 0o600, "cannot hold a token"),
    ],
)
def test_a_file_without_a_secret_is_refused(homes: Path, text: str, mode: int, said: str) -> None:
    file = homes / "token"
    file.write_text(text)
    file.chmod(mode)
    assert said in complaint("serve", "--token-file", str(file))
    assert "cannot hold a token" in complaint("serve", "--token-file", str(homes / "no" / "token"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_its_end(number: signal.Signals) -> None:
    keep("one")
    with serving() as served:
        assert served.visitor.ask("/").status == 200
        served.process.send_signal(number)
        assert served.process.wait(60.0) == 0
        assert served.process.stderr is not None
        told = served.process.stderr.read().splitlines()
    assert len(told) == 1 and "Ctrl-C ends" in told[0]


def test_who_has_a_page_open_is_told_of_the_end() -> None:
    keep("one")
    with serving() as served:
        connection = served.visitor.connection("/events?page=/&shown=")
        events = connection.getresponse()
        assert events.readline() == b": following\n"
        served.process.send_signal(signal.SIGINT)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(events.read()))
        reader.start()
        assert served.process.wait(60.0) == 0
        reader.join()
    assert b"event: over\ndata: Dyno no longer serves this page." in read[0]


def test_who_has_a_page_open_hears_of_each_run() -> None:
    keep("one")
    with serving() as served:
        assert "/run/two" not in served.visitor.ask("/").body
        events = served.visitor.connection("/events?page=/&shown=").getresponse()
        seen: list[bytes] = []
        while not any(line.startswith(b"data: ") for line in seen):
            seen.append(events.readline())
        keep("two")
        while sum(line.startswith(b"data: ") for line in seen) < 2:
            seen.append(events.readline())
        page = served.visitor.ask("/").body
        told = re.search(r'data-shown="(\w+)"', page)
        assert "/run/two" in page and told is not None
        # The page may have been drawn once more since the last word of it.
        while seen[-1] != f"data: {told[1]}\n".encode():
            seen.append(events.readline())
    assert b"event: drawn\n" in seen
