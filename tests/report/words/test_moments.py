"""Moments are written in UTC wherever the reader is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dbdyno.report.words.moments import day_text, moment_text, second_text

LATE_S = 1_767_225_543.6
"""The last minute of a year in UTC, which is over in Auckland."""


@pytest.fixture(params=["UTC", "Pacific/Auckland"], autouse=True)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_moment_says_that_it_is_in_utc() -> None:
    assert moment_text(LATE_S) == "2025-12-31 23:59 UTC"
    assert second_text(LATE_S) == "2025-12-31 23:59:03 UTC"


def test_a_day_is_that_of_utc() -> None:
    assert day_text(LATE_S) == "2025-12-31"
