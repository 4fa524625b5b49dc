"""Firebird, embedded: the engine is a library inside the load process."""

from __future__ import annotations

from dbdyno.engines.engine import Engine, IndexWords, UnderValgrind
from dbdyno.engines.firebird import data, facts, server, settings
from dbdyno.engines.firebird.facts import COMPARED_BY, PRODUCTION

FIREBIRD = Engine(
    name="firebird",
    title="Firebird",
    embedded=True,
    obtaining=server,
    life=server,
    settings=settings,
    counters=facts,
    taking=data,
    raw_file=server.DATABASE,
    dual="RDB$DATABASE",
    sessions_choose=False,
    under_valgrind=UnderValgrind(owns=facts.owns),
    plans=facts.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=data,
    statement_timeout="SET STATEMENT TIMEOUT {ms} MILLISECOND",
    indexes=IndexWords(
        found="SELECT COUNT(*) FROM RDB$INDICES WHERE LOWER(TRIM(RDB$INDEX_NAME)) = LOWER('{name}')",
    ),
)
