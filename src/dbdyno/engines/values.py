"""Settings across engines: what one is called in the others, and whether two spellings of a value mean the
same."""

from __future__ import annotations

import math
import os.path
import re
from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level

TRUE = frozenset({"1", "on", "true", "yes"})
FALSE = frozenset({"0", "off", "false", "no"})
QUANTITY = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([a-z]*)", re.IGNORECASE)
BYTES = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


def as_text(level: Level) -> str:
    """A level as servers read it on a command line or in a configuration file."""
    if isinstance(level, bool):
        return "ON" if level else "OFF"
    return str(level)


def answer_text(value: str | float) -> str:
    """A value of a server's answer, where whole numbers come as doubles."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def same_value(requested: Level, effective: str) -> bool:
    """Compares by meaning. Numbers without a unit are plain numbers, or bytes where the other side has a
    size.
    """
    wanted, found = as_text(requested).strip(), effective.strip()
    if wanted.lower() == found.lower():
        return True
    for words in (TRUE, FALSE):
        if wanted.lower() in words:
            return found.lower() in words or _same_quantity(wanted, found)
    return _same_quantity(wanted, found) or _same_members(wanted, found) or _same_path(wanted, found)


def quantity(text: str) -> tuple[float, str] | None:
    """A number in its base unit, and what it measures: `bytes`, `ms`, or nothing. None when it is no
    quantity.
    """
    found = QUANTITY.fullmatch(text.strip())
    if not found:
        return None
    number, unit = float(found[1]), found[2].lower()
    if not unit:
        return number, ""
    if unit in MILLISECONDS:
        return number * MILLISECONDS[unit], "ms"
    prefix = unit[0] if re.fullmatch(r"[kmgtpe](i?b)?|b", unit) else ""
    return (number * BYTES[prefix], "bytes") if prefix else None


def respelled(text: str, units: Sequence[str]) -> list[str]:
    """The same number and unit in the spellings that an engine may know: `128 MB` is `128M` in K, M, G, and
    `1.5G` is `1536M`. `units` go from small to large; empty when the text is no number with a unit.
    """
    found = re.fullmatch(r"([-+]?\d+)(\.\d+)?\s*([a-z]+)", text.strip(), re.IGNORECASE)
    if not found:
        return []
    number, fraction, unit = found.groups()
    if not fraction:
        return [f"{number}{one}" for one in units if one[0].lower() == unit[0].lower()]
    size = quantity(text)
    if size is None or size[1] != "bytes":
        return []
    sizes = [
        (one, BYTES[one[0].lower()])
        for one in units
        if quantity(f"1{one}") == (BYTES.get(one[0].lower()), "bytes")
    ]
    exact = [f"{size[0] / bytes_each:.0f}{one}" for one, bytes_each in sizes if size[0] % bytes_each == 0]
    return exact[-1:]


def size_bytes(level: Level, unit_bytes: int = 1) -> int:
    """The size that a level means; a bare number counts in `unit_bytes`. 0 for what is no size."""
    found = quantity(as_text(level))
    if found is None or found[1] == "ms":
        return 0
    return int(abs(found[0]) * (1 if found[1] else unit_bytes))


CACHE_MIB_LEAST, CACHE_MIB_MOST = 256, 8192


def cache_mib(memory_bytes: int) -> int:
    """How large a cache is worth a try in so much memory: about a quarter of it, as a power of two."""
    quarter_mib = min(max(memory_bytes >> 22, CACHE_MIB_LEAST), CACHE_MIB_MOST)
    return int(1 << (quarter_mib.bit_length() - 1))


def _same_quantity(wanted: str, found: str) -> bool:
    left, right = quantity(wanted), quantity(found)
    if left is None or right is None:
        return False
    if left[1] and right[1] and left[1] != right[1]:
        return False
    if left[0].is_integer() and right[0].is_integer():
        return left[0] == right[0]
    return math.isclose(left[0], right[0], rel_tol=1e-9)


def _same_members(wanted: str, found: str) -> bool:
    """Sets (`sql_mode`) compare without order; `name=value` sets (`optimizer_switch`) hold what was asked
    for.
    """
    if "," not in wanted + found and "=" not in wanted:
        return False
    left, right = _members(wanted), _members(found)
    if left and all("=" in member for member in left):
        return left <= right
    return left == right


def _members(text: str) -> set[str]:
    return {member.strip().lower() for member in text.split(",") if member.strip()}


def _same_path(wanted: str, found: str) -> bool:
    return "/" in wanted and "/" in found and os.path.normpath(wanted) == os.path.normpath(found)


COUNTERPARTS: tuple[Mapping[str, str], ...] = (
    {
        "mariadb": "innodb_buffer_pool_size",
        "mysql": "innodb_buffer_pool_size",
        "postgresql": "shared_buffers",
        "firebird": "DefaultDbCachePages",
        "sqlite": "cache_size",
    },
    {
        "mariadb": "innodb_flush_log_at_trx_commit",
        "mysql": "innodb_flush_log_at_trx_commit",
        "postgresql": "synchronous_commit",
        "firebird": "forced_writes",
        "sqlite": "synchronous",
    },
    {
        "mariadb": "innodb_log_file_size",
        "mysql": "innodb_redo_log_capacity",
        "postgresql": "max_wal_size",
        "sqlite": "wal_autocheckpoint",
    },
    {"mariadb": "innodb_doublewrite", "mysql": "innodb_doublewrite", "postgresql": "full_page_writes"},
    {
        "mariadb": "sort_buffer_size",
        "mysql": "sort_buffer_size",
        "postgresql": "work_mem",
        "firebird": "TempCacheLimit",
    },
    {
        "mariadb": "innodb_page_size",
        "mysql": "innodb_page_size",
        "firebird": "page_size",
        "sqlite": "page_size",
    },
    {"mariadb": "innodb_flush_method", "mysql": "innodb_flush_method", "postgresql": "wal_sync_method"},
)
"""Settings of one purpose, by engine. They are not equal: units and effects differ."""


def counterpart(name: str, engine: str) -> tuple[str, str]:
    """An engine that has a setting of this name, and what serves its purpose in `engine`; two empty texts
    where that is not known."""
    folded = name.casefold()
    for settings in COUNTERPARTS:
        owner = next((owner for owner, own in settings.items() if own.casefold() == folded), "")
        if owner and engine in settings:
            return owner, settings[engine]
    return "", ""
