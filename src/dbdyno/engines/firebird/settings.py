"""Firebird's settings: parameters of `firebird.conf`, and attributes of the database file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask
from dbdyno.engines.values import FALSE, TRUE, as_text, same_value
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Reading

CREATION = frozenset({"page_size", "reserve_space"})
LOADING: Mapping[str, Level] = {}

ATTRIBUTES = {
    "page_size": "MON$PAGE_SIZE",
    "page_buffers": "MON$PAGE_BUFFERS",
    "forced_writes": "MON$FORCED_WRITES",
    "sweep_interval": "MON$SWEEP_INTERVAL",
    "reserve_space": "MON$RESERVE_SPACE",
}
"""Attributes that stand in the database file itself, and where the running engine shows them."""

huge_pages = embedded.huge_pages


def names(installation: Installation) -> frozenset[str]:
    return frozenset(_parameters(installation)) | frozenset(ATTRIBUTES)


def read(ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
    readings: dict[str, Reading] = {}
    rows = ask("SELECT TRIM(RDB$CONFIG_NAME), RDB$CONFIG_VALUE FROM RDB$CONFIG")
    for name, value in ((str(row[0]).strip(), row[1]) for row in rows):
        if name in names:
            source = f"SELECT RDB$CONFIG_VALUE FROM RDB$CONFIG WHERE RDB$CONFIG_NAME = '{name}'"
            readings[name] = Reading(value="" if value is None else str(value), source=source)
    row = ask(f"SELECT {', '.join(ATTRIBUTES.values())} FROM MON$DATABASE")[0]
    for (name, column), value in zip(ATTRIBUTES.items(), row, strict=True):
        if name in names:
            readings[name] = Reading(value=_whole(value), source=f"SELECT {column} FROM MON$DATABASE")
    return readings


def same(_name: str, requested: Level, effective: str) -> bool:
    return same_value(requested, effective)


def as_parameter(level: Level) -> str:
    """A level as `firebird.conf` takes it."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def as_attributes(attributes: Mapping[str, Level]) -> dict[str, int]:
    """Levels as the database's parameter buffer takes them. Raises ServerFailed for what is no number."""
    numbers: dict[str, int] = {}
    for name, level in attributes.items():
        text = as_text(level).lower()
        if text in TRUE | FALSE and name in ("forced_writes", "reserve_space"):
            number = int(text in TRUE)
        elif re.fullmatch(r"\d+", text):
            number = int(text)
        else:
            raise ServerFailed(
                f"Firebird's `{name}` cannot be {level!r}", "give a whole number, or true and false"
            )
        if name == "reserve_space":
            numbers["no_reserve"] = 1 - number
        else:
            numbers[name] = number
    return numbers


def _whole(value: str | float | None) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)


def _parameters(installation: Installation) -> set[str]:
    """The parameters that this build's own firebird.conf names; defaults stand there as comments."""
    text = (installation.prefix / "firebird.conf").read_text(errors="replace")
    return set(re.findall(r"^#?([A-Z][A-Za-z0-9]+)\s*=", text, re.MULTILINE))
