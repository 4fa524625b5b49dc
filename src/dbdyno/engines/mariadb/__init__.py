"""MariaDB, rootless: a data directory of its own, a socket in a private folder, and no network unless the
load comes from another host.
"""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.engine import Engine, IndexWords, UnderValgrind, VectorWords
from dbdyno.engines.mariadb import cluster, data, facts, running, server, settings
from dbdyno.engines.mariadb.facts import COMPARED_BY, PRODUCTION
from dbdyno.engines.mariadb.replication import (
    ASYNCHRONOUS,
    MARIADB_WORDS,
    SEMI_SYNCHRONOUS,
    Replication,
)

MARIADB = Engine(
    name="mariadb",
    title="MariaDB",
    embedded=False,
    obtaining=server.SERVER,
    life=server,
    settings=settings,
    counters=facts,
    taking=data,
    recipe=Path(__file__).with_name("recipe.toml"),
    double="DOUBLE",
    vectors=VectorWords(
        value="VEC_FromText('{text}')",
        euclidean="VEC_DISTANCE_EUCLIDEAN({one}, {other})",
        cosine="VEC_DISTANCE_COSINE({one}, {other})",
        table=(
            "CREATE TABLE {table} (id INT PRIMARY KEY, v VECTOR({dimensions}) NOT NULL, VECTOR INDEX (v))",
        ),
    ),
    # Valgrind holds all other threads up while one waits for io_uring, and does not map the terabytes into
    # which a buffer pool may grow: with the least maximum it is as large as it begins. Older versions know no
    # maximum.
    under_valgrind=UnderValgrind(
        settings={"innodb_use_native_aio": False, "loose_innodb_buffer_pool_size_max": "8M"}
    ),
    plans=facts.read,
    production=PRODUCTION,
    compared=COMPARED_BY,
    upgrading=data,
    network=server,
    platforms=server.PLATFORMS,
    machine_sql="SELECT @@version_compile_machine",
    runtime=running,
    clusters={
        "galera": cluster,
        ASYNCHRONOUS: Replication(MARIADB_WORDS, semi=False),
        SEMI_SYNCHRONOUS: Replication(MARIADB_WORDS, semi=True),
    },
    statement_timeout="SET SESSION max_statement_time = {s}",
    meter=facts.METER,
    locks=facts.LOCKS,
    rows=facts.ROWS,
    indexes=IndexWords(
        found="SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND LOWER(index_name) = LOWER('{name}')",
        size="SELECT SUM(file_size) FROM information_schema.innodb_sys_tablespaces"
        " WHERE name LIKE CONCAT(DATABASE(), '/%')",
    ),
)
