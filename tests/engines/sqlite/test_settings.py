"""SQLite's settings are pragmas: how a level becomes one, and how it is read back."""

from __future__ import annotations

import pytest

from dbdyno.engines.sqlite import settings
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level


@pytest.mark.parametrize(
    ("name", "level", "text"),
    [
        ("cache_size", "64M", "-65536"),
        ("cache_size", -2000, "-2000"),
        ("mmap_size", "256M", "268435456"),
        ("synchronous", "normal", "normal"),
        ("encoding", "UTF-16le", "UTF-16le"),
    ],
)
def test_a_level_becomes_what_a_pragma_takes(name: str, level: Level, text: str) -> None:
    assert settings.pragma(name, level) == text


@pytest.mark.parametrize(
    ("name", "level", "effective", "same"),
    [
        ("synchronous", "normal", "1", True),
        ("synchronous", "FULL", "2", True),
        ("synchronous", 2, "2", True),
        ("synchronous", "normal", "2", False),
        ("cache_size", "64M", "-65536", True),
        ("cache_size", "64M", "-2000", False),
        ("journal_mode", "WAL", "wal", True),
    ],
)
def test_a_value_read_back_is_compared_by_meaning(
    name: str, level: Level, effective: str, same: bool
) -> None:
    assert settings.same(name, level, effective) is same


@pytest.mark.parametrize("text", ["1; DROP TABLE x", "a b", "x'", "&synchronous=off"])
def test_what_is_no_word_is_refused(text: str) -> None:
    with pytest.raises(ServerFailed):
        settings.pragma("journal_mode", text)
