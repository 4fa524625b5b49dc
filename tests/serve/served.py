"""Pages as a process serves them, and what asks for them."""

from __future__ import annotations

import http.client
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from dbdyno.serve.pages import READER
from tests.warm import Process

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: str


@dataclass
class Visitor:
    """A browser's part: it was given an address, and keeps the cookie."""

    port: int
    token: str
    cookie: str = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """A header's name may have a low line in the place of a dash."""
        connection = self.connection(path, method, **headers)
        answer = connection.getresponse()
        found = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        connection.close()
        return found

    def connection(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPConnection:
        """A connection on which the page was asked for."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, headers=sent)
        return connection

    def enter(self) -> Answer:
        """Opens the address with its token, and keeps the cookie."""
        answer = self.ask(f"/?token={self.token}")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer


def following(
    visitor: Visitor, page: str, seen: list[str], after_s: float = 0.0, times: int = 1
) -> threading.Thread:
    """Does in a thread what the script of a page does: whenever it is another one than the reader has `seen`
    last, it is asked for, so much later and so often. The last that is seen is what is said at the end."""
    name = secrets.token_hex(8)
    events = visitor.connection(f"/events?page={page}&reader={name}&shown=").getresponse()
    assert events.readline() == b": following\n"

    def follow() -> None:
        kind = b""
        for line in events:
            told = line.decode().removeprefix("data: ").strip()
            if kind == b"event: over\n":
                seen.append(told)
            elif kind == b"event: drawn\n" and not (seen and f'data-shown="{told}"' in seen[-1]):
                time.sleep(after_s)
                seen.extend(visitor.ask(page, **{READER: name}).body for _ in range(times))
            kind = line

    reader = threading.Thread(target=follow)
    reader.start()
    return reader


def visitor_of(address: str) -> Visitor:
    """Whoever was given an address, and has not opened it yet."""
    parts = urlsplit(address.strip())
    assert parts.hostname == "127.0.0.1" and parts.port, address
    return Visitor(parts.port, parts.query.removeprefix("token="))


@dataclass
class Serving:
    """A `dyno serve` that runs."""

    process: Process
    visitor: Visitor


@contextmanager
def serving(*arguments: str) -> Iterator[Serving]:
    """A `dyno serve`, and who has entered its pages. It is killed at the end, if it has not ended."""
    process = Process("serve", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        visitor = visitor_of(process.stdout.readline())
        visitor.enter()
        yield Serving(process, visitor)
    finally:
        process.kill()
        process.communicate()


def until(visitor: Visitor, path: str, words: str) -> str:
    """The page once it says so. Fails where it does not for long."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        body = visitor.ask(path).body
        if words in body:
            return body
        assert time.monotonic() < deadline_s, f"{words!r} never stood in {path}"
        time.sleep(0.1)
