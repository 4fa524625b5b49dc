"""Firebird, embedded: the engine is a library inside the load process."""

from __future__ import annotations

from dbdyno.engines.engine import Engine, UnderValgrind
from dbdyno.engines.firebird import counters, life, obtaining, plans, settings, taking, upgrading
from dbdyno.engines.firebird.compared import COMPARED_BY
from dbdyno.engines.firebird.production import PRODUCTION

FIREBIRD = Engine(
    name="firebird",
    title="Firebird",
    embedded=True,
    obtaining=obtaining,
    life=life,
    settings=settings,
    counters=counters,
    taking=taking,
    raw_file=life.DATABASE,
    dual="RDB$DATABASE",
    sessions_choose=False,
    under_valgrind=UnderValgrind(owns=counters.owns),
    plans=plans.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=upgrading,
)
