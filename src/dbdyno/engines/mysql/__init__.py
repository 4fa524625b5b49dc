"""MySQL, rootless: a data directory of its own, a socket in a private folder, no network.

It descends with MariaDB from one server: what both still say alike is taken from MariaDB's folder.
"""

from __future__ import annotations

from dbdyno.engines.engine import Engine
from dbdyno.engines.mysql import counters, life, obtaining, plans, running, settings, taking, upgrading
from dbdyno.engines.mysql.compared import COMPARED_BY
from dbdyno.engines.mysql.production import PRODUCTION

MYSQL = Engine(
    name="mysql",
    title="MySQL",
    embedded=False,
    obtaining=obtaining.SERVER,
    life=life,
    settings=settings,
    counters=counters,
    taking=taking,
    double="DOUBLE",
    plans=plans.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=upgrading,
    runtime=running,
)
