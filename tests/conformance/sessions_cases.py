"""What the tests of sessions share with others."""

from __future__ import annotations

import json

from dbdyno.driver import _driver


def rows(url: str, sql: str) -> list[list[object]]:
    answer: list[list[object]] = json.loads(_driver.query(url, sql))["rows"]
    return answer
