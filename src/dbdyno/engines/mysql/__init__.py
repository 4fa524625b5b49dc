"""MySQL, rootless: a data directory of its own, a socket in a private folder, no network.

It descends with MariaDB from one server: what both still say alike is taken from MariaDB's folder.
"""

from __future__ import annotations

from dbdyno.engines.engine import Engine, IndexWords
from dbdyno.engines.mariadb.replication import ASYNCHRONOUS, SEMI_SYNCHRONOUS, Replication
from dbdyno.engines.mysql import data, facts, running, server, settings
from dbdyno.engines.mysql.facts import COMPARED_BY, PRODUCTION
from dbdyno.engines.mysql.group import GROUP, Group
from dbdyno.engines.mysql.replication import MYSQL_WORDS

MYSQL = Engine(
    name="mysql",
    title="MySQL",
    embedded=False,
    obtaining=server.SERVER,
    life=server,
    settings=settings,
    counters=facts,
    taking=data,
    double="DOUBLE",
    plans=facts.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=data,
    runtime=running,
    clusters={
        ASYNCHRONOUS: Replication(MYSQL_WORDS, semi=False),
        SEMI_SYNCHRONOUS: Replication(MYSQL_WORDS, semi=True),
        GROUP: Group(),
    },
    statement_timeout="SET SESSION max_execution_time = {ms}",
    meter=facts.METER,
    locks=facts.LOCKS,
    rows=facts.ROWS,
    indexes=IndexWords(
        found="SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND LOWER(index_name) = LOWER('{name}')",
        size="SELECT SUM(file_size) FROM information_schema.innodb_tablespaces"
        " WHERE name LIKE CONCAT(DATABASE(), '/%')",
    ),
)
