"""SQLite: a library inside the load process, whose settings are pragmas of each connection."""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.engine import Engine, UnderValgrind
from dbdyno.engines.sqlite import counters, guest, life, obtaining, plans, settings, shell, taking, upgrading
from dbdyno.engines.sqlite.compared import COMPARED_BY
from dbdyno.engines.sqlite.production import PRODUCTION

SQLITE = Engine(
    name="sqlite",
    title="SQLite",
    embedded=True,
    obtaining=obtaining,
    life=life,
    settings=settings,
    counters=counters,
    taking=taking,
    recipe=Path(__file__).with_name("recipe.toml"),
    compensates_from=(3, 43),
    holds_infinity=True,
    sessions_choose=False,
    under_valgrind=UnderValgrind(owns=obtaining.owns),
    plans=plans.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=upgrading,
    platforms=obtaining.PLATFORMS,
    shell=shell,
    guest=guest,
)
