"""Which levels a PostgreSQL takes. The server says so: `-C` reads all settings, prints one, and ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache

from dbdyno.engines.engine import Refused, not_taken
from dbdyno.engines.values import FALSE, TRUE, as_text, quantity, respelled
from dbdyno.frozen import Level
from dbdyno.obtain import path
from dbdyno.obtain.installation import Installation

CREATION = frozenset({"data_checksums", "wal_segment_size"})
"""What `initdb` takes, and the server does not."""

UNITS = ("kB", "MB", "GB", "TB", "us", "ms", "s", "min", "h", "d")
NO_FILES = tuple(f"--{name}=/dev/null" for name in ("config_file", "hba_file", "ident_file"))
SEGMENT_BYTES_LEAST, SEGMENT_BYTES_MOST = 1 << 20, 1 << 30


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    faults = {name: fault for name in settings if (fault := _fault_in_creation(name, settings[name]))}
    asked = {name: level for name, level in settings.items() if name not in CREATION}
    for name in not_taken(lambda tried: not _complaint(installation.command, _options(tried)), asked):
        alone = _complaint(installation.command, _options({name: asked[name]}))
        complaint = alone or _complaint(installation.command, _options(asked))
        faults[name] = _refused(installation, name, as_text(asked[name]), complaint)
    return faults


def _fault_in_creation(name: str, level: Level) -> Refused | None:
    """Why `initdb` would not take it."""
    if name == "data_checksums" and as_text(level).lower() not in TRUE | FALSE:
        return Refused(f"does not take {as_text(level)!r}", "it takes on and off")
    if name == "wal_segment_size":
        size = quantity(as_text(level))
        bytes_asked = 0 if size is None else int(size[0] * (1 if size[1] else 2**20))
        within = SEGMENT_BYTES_LEAST <= bytes_asked <= SEGMENT_BYTES_MOST
        if not within or bytes_asked & (bytes_asked - 1):
            takes = "it takes a power of two from 1MB to 1GB; a number without a unit is in MB"
            return Refused(f"does not take {as_text(level)!r}", takes)
    return None


def _options(settings: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(f"--{name}={as_text(level)}" for name, level in settings.items())


@lru_cache
def _complaint(command: tuple[str, ...], options: tuple[str, ...]) -> str:
    """What the server refuses of these options, and its hint; empty where it takes them all."""
    done = path.answer(command, "-C", "fsync", *NO_FILES, "--data_directory=/", *options)
    if done.returncode == 0:
        return ""
    told = re.findall(r"(?:FATAL|ERROR|HINT):\s+(.*)", done.stderr)
    return "; ".join(told) or done.stderr.strip() or "it said nothing"


def _refused(installation: Installation, name: str, written: str, complaint: str) -> Refused:
    words = re.findall(r"\w+", complaint.partition("Available values:")[2])
    tried = [*respelled(written, UNITS), *get_close_matches(written.lower(), words, n=3)]
    good = [one for one in tried if not _complaint(installation.command, _options({name: one}))]
    listed = " or ".join(f'"{one}"' for one in good)
    guess = f"did you mean {listed}? " if good else ""
    return Refused(f"does not take {written!r}", f"{guess}the server says: {complaint}")
