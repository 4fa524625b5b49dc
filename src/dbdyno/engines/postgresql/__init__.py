"""PostgreSQL, rootless: a data directory of its own, a socket in a private folder, and no network unless the
load comes from another host.

Where Dyno is root, the server runs in a user namespace of its own.
"""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.engine import Engine, IndexWords
from dbdyno.engines.postgresql import cluster, data, facts, running, server, settings
from dbdyno.engines.postgresql.facts import COMPARED_BY, PRODUCTION

POSTGRESQL = Engine(
    name="postgresql",
    title="PostgreSQL",
    embedded=False,
    obtaining=server.SERVER,
    life=server,
    settings=settings,
    counters=facts,
    taking=data,
    recipe=Path(__file__).with_name("recipe.toml"),
    plans=facts.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=data,
    network=server,
    platforms=server.PLATFORMS,
    machine_sql="SELECT version()",
    runtime=running,
    clusters={"streaming": cluster},
    statement_timeout="SET statement_timeout = {ms}",
    meter=facts.METER,
    locks=facts.LOCKS,
    rows=facts.ROWS,
    indexes=IndexWords(
        found="SELECT COUNT(*) FROM pg_indexes WHERE LOWER(indexname) = LOWER('{name}')",
        size="SELECT pg_database_size(current_database())",
    ),
)
