"""SQLite: a library inside the load process, whose settings are pragmas of each connection."""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.engine import Engine, IndexWords, UnderValgrind
from dbdyno.engines.sqlite import data, facts, server, settings, shell
from dbdyno.engines.sqlite.facts import COMPARED_BY, PRODUCTION

SQLITE = Engine(
    name="sqlite",
    title="SQLite",
    embedded=True,
    obtaining=server,
    life=server,
    settings=settings,
    counters=facts,
    taking=data,
    recipe=Path(__file__).with_name("recipe.toml"),
    compensates_from=(3, 43),
    holds_infinity=True,
    sessions_choose=False,
    under_valgrind=UnderValgrind(owns=server.owns),
    plans=facts.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=data,
    platforms=server.PLATFORMS,
    shell=shell,
    guest=shell,
    rows=facts.ROWS,
    indexes=IndexWords(
        found="SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND LOWER(name) = LOWER('{name}')",
        size="SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    ),
)
