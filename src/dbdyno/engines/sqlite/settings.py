"""SQLite's settings: the pragmas that can be set."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import quote, urlencode

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask, Proposal, Refused, Risk, Searchable, risked
from dbdyno.engines.facts import UNREADABLE, ConfigurationLine, SettingNeed
from dbdyno.engines.values import FALSE, TRUE, as_text, cache_mib, quantity, same_value, size_bytes
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss, Reading
from dbdyno.study.nouns import Promise

CREATION = frozenset({"page_size", "auto_vacuum", "encoding"})
LOADING: Mapping[str, Level] = {}
LOGGED: Mapping[str, Level] = {}
DURABLE: Mapping[str, tuple[Level, ...]] = {
    "journal_mode": ("delete", "truncate", "persist", "wal"),
    "synchronous": ("full", "extra"),
}
LOSING: Mapping[str, Level] = {"synchronous": "off"}

RISKS: Mapping[str, Risk] = {
    "journal_mode": Risk(Promise.INTEGRITY, DURABLE["journal_mode"], Loss.DATA),
    "synchronous": Risk(Promise.DURABILITY, (*DURABLE["synchronous"], 2, 3), Loss.COMMITS, worse=("off",)),
}

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

PLAIN_WORDS = {
    "encoding": ("UTF-8", "UTF-16", "UTF-16le", "UTF-16be"),
    "journal_mode": ("delete", "truncate", "persist", "memory", "wal", "off"),
    "locking_mode": ("normal", "exclusive"),
}
"""Pragmas that take a word and answer with it."""

PAGE_BYTES = tuple(512 << power for power in range(8))
SMALLEST = {"cache_size": -(2**31)}
"""The least whole number that a pragma takes, where that is not 0."""

NEEDS: Sequence[SettingNeed] = (
    SettingNeed(
        ("wal_autocheckpoint",),
        "journal_mode",
        off=("delete", "truncate", "persist", "memory", "off"),
        unset="delete",
        why="so there is no write-ahead log",
    ),
)

CONFINED: Mapping[str, tuple[str, ...]] = {}
huge_pages = embedded.huge_pages


DEFAULT_CACHE, DEFAULT_PAGE_BYTES = -2000, 4096
BASE_BYTES = 200 << 20
"""What the load process takes beside the cache of one connection."""


def permits(settings: Mapping[str, Level]) -> Loss:
    journal = _word(settings, "journal_mode", "delete")
    synchronous = _word(settings, "synchronous", "full")
    together = Loss.NOTHING
    if synchronous == "off":
        together = Loss.DATA
    elif journal == "delete" and synchronous != "extra":
        # A journal that was deleted comes back unless its folder is synced too, which `extra` alone does.
        together = Loss.COMMITS
    return Loss.gravest((risked(RISKS, settings), together))


def _word(settings: Mapping[str, Level], name: str, default: str) -> str:
    """A pragma's level as its word, however it is written."""
    level = as_text(settings.get(name, default)).lower()
    words = WORDS.get(name, ())
    return words[int(level)] if level.isdigit() and int(level) < len(words) else level


def page_bytes(settings: Mapping[str, Level]) -> int:
    return size_bytes(settings.get("page_size", DEFAULT_PAGE_BYTES))


def memory_bytes(settings: Mapping[str, Level]) -> int:
    cache = settings.get("cache_size", DEFAULT_CACHE)
    # A positive number counts pages, a negative one KiB.
    in_kib = as_text(cache).strip().startswith("-")
    unit_bytes = 1024 if in_kib else size_bytes(settings.get("page_size", DEFAULT_PAGE_BYTES))
    return size_bytes(cache, unit_bytes) + BASE_BYTES


def proposals(memory_bytes: int) -> tuple[Proposal, ...]:
    return (
        Proposal(
            "config.journal_mode",
            ("delete", "wal"),
            "wal writes changes to a log first: readers and the writer do not wait for each other.",
        ),
        Proposal(
            "config.cache_size",
            ("2M", f"{min(cache_mib(memory_bytes), 512)}M"),
            "The cache of each connection. It helps as long as the data do not fit into it.",
        ),
        Proposal(
            "config.synchronous",
            ("full", "normal"),
            "full waits for the disk at each commit. With normal, a crash of the machine can lose the last"
            " ones.",
        ),
    )


def searchable(memory_bytes: int) -> tuple[Searchable, ...]:
    most_mib = min(cache_mib(memory_bytes), 512)
    return (
        Searchable("journal_mode", ["delete", "wal"], "with wal, readers and the writer do not wait"),
        Searchable(
            "wal_autocheckpoint",
            {
                "from": 100,
                "to": 10000,
                "scale": "log",
                "baseline": 1000,
                "only_if": {"config.journal_mode": "wal"},
            },
            "pages in the log before they are moved to the file",
        ),
        Searchable(
            "cache_size", {"from": "2M", "to": f"{most_mib}M", "scale": "log"}, "each connection's cache"
        ),
        Searchable("mmap_size", [0, "256M"], "reads without a copy"),
        Searchable("temp_store", ["default", "memory"], "where temporary tables are"),
    )


def names(_installation: Installation) -> frozenset[str]:
    return PRAGMAS


def refused(_installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    """SQLite passes over what it does not understand, so this is said here, not asked there."""
    found = {name: _fault(name, level) for name, level in settings.items()}
    return {name: fault for name, fault in found.items() if fault}


def _fault(name: str, level: Level) -> Refused | None:
    text = as_text(level).lower()
    reason = f"does not take {as_text(level)!r}"
    words = WORDS.get(name, ()) or PLAIN_WORDS.get(name, ())
    if words:
        numbers = [str(index) for index in range(len(WORDS.get(name, ())))]
        switched = name == "synchronous" and text in TRUE | FALSE
        if switched or text in [word.lower() for word in words] or text in numbers:
            return None
        near = get_close_matches(text, words, n=1)
        guess = f'did you mean "{near[0]}"? ' if near else ""
        return Refused(reason, f"{guess}it takes {', '.join(words)}")
    amount = quantity(text)
    if amount is None or not amount[0].is_integer() or amount[0] < SMALLEST.get(name, 0):
        return Refused(reason, f"it takes a whole number of at least {SMALLEST.get(name, 0)}")
    if name == "page_size" and int(amount[0]) not in PAGE_BYTES:
        return Refused(reason, f"it takes {', '.join(map(str, PAGE_BYTES))}")
    return None


def configured(text: str, _installation: Installation | None) -> list[ConfigurationLine]:
    """None of the lines: SQLite has no configuration file."""
    return [
        ConfigurationLine(number, line, untaken=UNREADABLE)
        for number, line in enumerate(text.splitlines(), 1)
    ]


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
        return text
    number = amount[0]
    return str(int(-number // 1024)) if name == "cache_size" else str(int(number))


def url(database: Path, library: Path | None, settings: Mapping[str, Level] | None = None) -> str:
    """The URL of a file that is opened by this library (None: the one that the dynamic loader finds), with
    settings that are pragmas of the connection."""
    parameters = {name: pragma(name, level) for name, level in (settings or {}).items()}
    if library is not None:
        parameters["library"] = str(library)
    return f"sqlite://{quote(str(database), safe='/')}?{urlencode(parameters, quote_via=quote, safe='/')}"
