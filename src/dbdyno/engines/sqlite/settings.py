"""SQLite's settings: the pragmas that can be set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask
from dbdyno.engines.values import as_text, quantity, same_value
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Reading

CREATION = frozenset({"page_size", "auto_vacuum", "encoding"})
LOADING: Mapping[str, Level] = {}

PRAGMAS = frozenset(
    {
        "busy_timeout",
        "cache_size",
        "journal_mode",
        "locking_mode",
        "mmap_size",
        "synchronous",
        "temp_store",
        "wal_autocheckpoint",
        *CREATION,
    }
)
"""The pragmas that can be set: when the file is made, or by the driver on each of its connections."""

WORDS = {
    "synchronous": ("off", "normal", "full", "extra"),
    "temp_store": ("default", "file", "memory"),
    "auto_vacuum": ("none", "full", "incremental"),
}
"""Pragmas that take a word and answer with its number."""

huge_pages = embedded.huge_pages


def names(_installation: Installation) -> frozenset[str]:
    return PRAGMAS


def read(ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
    readings = {}
    for name in sorted(names & PRAGMAS):
        rows = ask(f"PRAGMA {name}")
        if rows and rows[0][0] is not None:
            value = rows[0][0]
            text = str(int(value)) if isinstance(value, float) else str(value)
            readings[name] = Reading(value=text, source=f"PRAGMA {name}")
    return readings


def same(name: str, requested: Level, effective: str) -> bool:
    words = WORDS.get(name, ())
    wanted = pragma(name, requested).lower()
    if effective.isdigit() and wanted in words:
        return words.index(wanted) == int(effective)
    return same_value(wanted, effective)


def pragma(name: str, level: Level) -> str:
    """A level as a pragma takes it: no units, and a cache's size in KiB as a negative number."""
    text = as_text(level)
    amount = quantity(text)
    if amount is None or not amount[1]:
        if not re.fullmatch(r"[-+.\w]+", text):
            raise ServerFailed(f"SQLite's `{name}` cannot be {text!r}", "give one word or number")
        return f"'{text}'" if name == "encoding" else text
    number = amount[0]
    return str(int(-number // 1024)) if name == "cache_size" else str(int(number))
