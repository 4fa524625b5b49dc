"""PostgreSQL, rootless: a data directory of its own, a socket in a private folder, and no network unless the
load comes from another host.

Where Dyno is root, the server runs in a user namespace of its own.
"""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.engines.postgresql import (
    cluster,
    counters,
    life,
    network,
    obtaining,
    plans,
    running,
    settings,
    taking,
    upgrading,
)
from dbdyno.engines.postgresql.compared import COMPARED_BY
from dbdyno.engines.postgresql.production import PRODUCTION

POSTGRESQL = Engine(
    name="postgresql",
    title="PostgreSQL",
    embedded=False,
    obtaining=obtaining.SERVER,
    life=life,
    settings=settings,
    counters=counters,
    taking=taking,
    recipe=Path(__file__).with_name("recipe.toml"),
    plans=plans.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=upgrading,
    network=network,
    platforms=obtaining.PLATFORMS,
    machine_sql="SELECT version()",
    runtime=running,
    cluster=cluster,
)
