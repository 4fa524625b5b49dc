"""One question to a server, asked from Dyno's own process: before there is a load process, or without one."""

from __future__ import annotations

import json
from typing import Protocol

from dbdyno.driver import _driver
from dbdyno.errors import DriverFailed

Rows = list[list[str | float | None]]


class Ask(Protocol):
    """Runs one SQL statement on a server and returns its rows."""

    def __call__(self, sql: str) -> Rows: ...


def query(url: str, sql: str) -> Rows:
    """The rows of one statement. Raises DriverFailed with the driver's own message and hint."""
    try:
        rows: Rows = json.loads(_driver.query(url, sql))["rows"]
    except _driver.DriverError as error:
        raise DriverFailed(error.message, error.hint, error.kind) from None
    return rows
