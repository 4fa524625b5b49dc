"""One question to a server, asked from Dyno's own process: before there is a load process, or without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from dbdyno.driver import _driver
from dbdyno.driver.passwords import source_of, without_any
from dbdyno.errors import DriverFailed

Rows = list[list[str | float | None]]


class Ask(Protocol):
    """Runs one SQL statement on a server and returns its rows."""

    def __call__(self, sql: str) -> Rows: ...


def query(url: str, sql: str) -> Rows:
    """The rows of one statement. Raises DriverFailed with the driver's own message and hint."""
    try:
        return _rows(_driver.query(url, sql))
    except _driver.DriverError as error:
        raise failed(url, error) from None


@contextmanager
def conversation(url: str) -> Iterator[Ask]:
    """Asks a server one statement after another in one session. Raises like `query`, and does not connect
    again."""
    session = _driver.Conversation(url)

    def ask(sql: str) -> Rows:
        try:
            return _rows(session.ask(sql))
        except _driver.DriverError as error:
            raise failed(url, error) from None

    try:
        yield ask
    finally:
        session.close()


def failed(url: str, error: _driver.DriverError) -> DriverFailed:
    """What the driver says of a server at a URL. Where its password was refused, the hint says where that
    comes from."""
    return DriverFailed(error.message, hint_with_source(url, error.hint), error.kind)


def hint_with_source(url: str, hint: str) -> str:
    """A hint, with where the password in a URL comes from where the hint is about that, or with where one was
    looked for where there is none."""
    if "its password" not in hint:
        return hint
    source, places = source_of(url), without_any(url)
    if places:
        return f"give a password: neither {places} holds one; {hint}"
    return f"{hint.replace(' in the URL', '')}; the password comes from {source}" if source else hint


def _rows(answer: str) -> Rows:
    rows: Rows = json.loads(answer)["rows"]
    return rows
