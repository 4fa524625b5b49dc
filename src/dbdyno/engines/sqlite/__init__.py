"""SQLite: the library is built into the driver, its settings are pragmas of each connection."""

from __future__ import annotations

from dbdyno.engines.engine import Engine, UnderValgrind
from dbdyno.engines.sqlite import counters, life, obtaining, settings

SQLITE = Engine(
    name="sqlite",
    title="SQLite",
    embedded=True,
    obtaining=obtaining,
    life=life,
    settings=settings,
    counters=counters,
    # SQLite lies within the driver's own object; its source is one file.
    under_valgrind=UnderValgrind(owns=lambda file, _object: file.endswith("/sqlite3.c")),
)
