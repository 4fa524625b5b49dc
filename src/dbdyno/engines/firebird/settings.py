"""Firebird's settings: parameters of `firebird.conf`, and attributes of the database file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask, Proposal, Refused, Risk, Searchable, Where, risked
from dbdyno.engines.facts import (
    A_PATH,
    OF_DYNO,
    OTHER_FILE,
    UNREADABLE,
    ConfigurationLine,
    Include,
    SettingNeed,
    is_path,
    unquoted,
)
from dbdyno.engines.values import FALSE, TRUE, as_text, cache_mib, respelled, same_value, size_bytes
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss, Reading
from dbdyno.study.nouns import Promise

CREATION = frozenset({"page_size", "reserve_space"})
LOADING: Mapping[str, Level] = {}
LOGGED: Mapping[str, Level] = {}
DURABLE: Mapping[str, tuple[Level, ...]] = {"forced_writes": (True,)}
UNFORCED = Where("forced_writes", (False,), unset=True)
RISKS: Mapping[str, Risk] = {
    "AuthServer": Risk(Promise.SECURITY, loses=("Legacy_Auth",)),
    "DatabaseAccess": Risk(Promise.SECURITY, loses=("Full",)),
    "ExternalFileAccess": Risk(Promise.SECURITY, ("None",)),
    # How many commits may pass, and for how long, until one waits for the disk; below 1 none ever does.
    "MaxUnflushedWriteTime": Risk(Promise.DURABILITY, loss=Loss.COMMITS, up_to=0, where=UNFORCED),
    "MaxUnflushedWrites": Risk(Promise.DURABILITY, loss=Loss.COMMITS, up_to=1, where=UNFORCED),
    "RemoteFileOpenAbility": Risk(Promise.INTEGRITY, (False,)),
    "UdfAccess": Risk(Promise.SECURITY, ("None",)),
    "WireCrypt": Risk(Promise.SECURITY, ("Required",)),
    # Its pages are written in an order that keeps the file sound, which the kernel changes where it may wait.
    "forced_writes": Risk(Promise.DURABILITY, (True,), Loss.DATA),
}
LOSING: Mapping[str, Level] = {"forced_writes": False}

CONFINED: Mapping[str, tuple[str, ...]] = {"ExternalFileAccess": ("None",), "UdfAccess": ("None",)}
NEEDS: Sequence[SettingNeed] = (
    SettingNeed(
        ("MaxUnflushedWrites", "MaxUnflushedWriteTime"),
        "forced_writes",
        off=("true",),
        unset="true",
        why="so each page write waits for the disk",
    ),
)

ATTRIBUTES = {
    "page_size": "MON$PAGE_SIZE",
    "page_buffers": "MON$PAGE_BUFFERS",
    "forced_writes": "MON$FORCED_WRITES",
    "sweep_interval": "MON$SWEEP_INTERVAL",
    "reserve_space": "MON$RESERVE_SPACE",
}
"""Attributes that stand in the database file itself, and where the running engine shows them."""

OF_THE_NETWORK = re.compile(r"(Remote|Auth|Wire|User|Tcp|IPv6|Server|Plugins|Providers|.*Plugin).*")
"""Parameters of who reaches the server, and how: the engine runs embedded."""

SWITCHES = ("forced_writes", "reserve_space")
"""Attributes that are on or off."""

PAGE_BYTES = (4096, 8192, 16384, 32768)

huge_pages = embedded.huge_pages


BASE_BYTES = 200 << 20
"""What the load process takes beside Firebird's page cache."""
DEFAULT_PAGES, DEFAULT_PAGE_BYTES = 2048, 8192
MOST_PAGES = 131072
"""One GiB, which is enough for a first study."""


def permits(settings: Mapping[str, Level]) -> Loss:
    return risked(RISKS, settings)


def page_bytes(settings: Mapping[str, Level]) -> int:
    return size_bytes(settings.get("page_size", DEFAULT_PAGE_BYTES))


def memory_bytes(settings: Mapping[str, Level]) -> int:
    pages = settings.get("page_buffers") or settings.get("DefaultDbCachePages", DEFAULT_PAGES)
    return size_bytes(pages) * size_bytes(settings.get("page_size", DEFAULT_PAGE_BYTES)) + BASE_BYTES


def proposals(memory_bytes: int) -> tuple[Proposal, ...]:
    pages = (cache_mib(memory_bytes) << 20) // DEFAULT_PAGE_BYTES
    return (
        Proposal(
            "config.page_buffers",
            (DEFAULT_PAGES, min(pages, MOST_PAGES)),
            "The cache in pages. It helps as long as the data do not fit into it.",
        ),
        Proposal(
            "config.forced_writes",
            (True, False),
            "true writes through to the disk. With false, a crash of the machine can damage the database.",
        ),
    )


def searchable(memory_bytes: int) -> tuple[Searchable, ...]:
    pages = min((cache_mib(memory_bytes) << 20) // DEFAULT_PAGE_BYTES, MOST_PAGES)
    return (
        Searchable(
            "page_buffers",
            {"from": 256, "to": pages, "scale": "log", "baseline": DEFAULT_PAGES},
            "the cache in pages",
        ),
        Searchable(
            "sweep_interval",
            [20000, 100000],
            "transactions until old versions of records are swept away",
        ),
    )


def names(installation: Installation) -> frozenset[str]:
    return frozenset(_parameters(installation)) | frozenset(ATTRIBUTES)


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    """Firebird takes 0 for a number that it cannot read, so the types come from its own firebird.conf."""
    types = _parameters(installation)
    found = {name: _fault(name, level, types.get(name, "")) for name, level in settings.items()}
    return {name: fault for name, fault in found.items() if fault}


def _fault(name: str, level: Level, kind: str) -> Refused | None:
    text = as_parameter(level).lower()
    reason = f"does not take {as_parameter(level)!r}"
    if name in ATTRIBUTES:
        return _fault_of_attribute(name, level, reason)
    if kind == "integer" and not re.fullmatch(r"[-+]?\d+[kmg]?", text):
        near = respelled(text, ("K", "M", "G"))
        guess = f'did you mean "{near[0]}"? ' if near else ""
        return Refused(reason, f"{guess}it takes a whole number, which K, M or G may follow")
    if kind == "boolean" and text not in TRUE | FALSE | {"y", "n"}:
        return Refused(reason, "it takes true and false")
    return None


def _fault_of_attribute(name: str, level: Level, reason: str) -> Refused | None:
    try:
        number = as_attributes({name: level}).get(name)
    except ServerFailed as fault:
        return Refused(reason, fault.hint)
    if name == "page_size" and number not in PAGE_BYTES:
        return Refused(reason, f"it takes {', '.join(map(str, PAGE_BYTES))}")
    return None


def configured(text: str, _installation: Installation | None) -> list[ConfigurationLine]:
    """The lines of a `firebird.conf`."""
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [_configured(number, line) for number, line in numbered if line and line[0] != "#"]


def _configured(number: int, line: str) -> ConfigurationLine:
    if other := re.fullmatch(r"include\s+(.+)", line):
        # A macro or a pattern in the path is resolved by the server that the file was written for.
        if re.search(r"[$*?]", other[1]):
            return ConfigurationLine(number, line, untaken=OTHER_FILE)
        return ConfigurationLine(number, line, include=Include(other[1]))
    found = re.fullmatch(r"([A-Za-z]\w*)\s*=\s*(.*)", line)
    if found is None:
        return ConfigurationLine(number, line, untaken=UNREADABLE)
    name, level = found[1], unquoted(found[2])
    if OF_THE_NETWORK.fullmatch(name):
        return ConfigurationLine(number, line, name, level, OF_DYNO)
    return ConfigurationLine(number, line, name, level, A_PATH if is_path(level) else "")


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
        if text in TRUE | FALSE and name in SWITCHES:
            number = int(text in TRUE)
        elif re.fullmatch(r"\d+", text):
            number = int(text)
        else:
            raise ServerFailed(
                f"Firebird's `{name}` cannot be {level!r}",
                "it takes true and false" if name in SWITCHES else "it takes a whole number without a unit",
            )
        if name == "reserve_space":
            numbers["no_reserve"] = 1 - number
        else:
            numbers[name] = number
    return numbers


def _whole(value: str | float | None) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)


def _parameters(installation: Installation) -> dict[str, str]:
    """The parameters that this build's own firebird.conf names, with their types; defaults stand there as
    comments."""
    return _named_in(installation.prefix / "firebird.conf")


@cache
def _named_in(file: Path) -> dict[str, str]:
    """Read once, because it is long and each level of a study asks for it."""
    types: dict[str, str] = {}
    kind = ""
    for line in file.read_text(errors="replace").splitlines():
        if told := re.match(r"#\s*Type: (\w+)", line):
            kind = told[1]
        elif parameter := re.match(r"#?([A-Z][A-Za-z0-9]+)\s*=", line):
            types.setdefault(parameter[1], kind)
    return types
