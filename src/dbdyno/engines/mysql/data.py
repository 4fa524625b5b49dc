"""Data that come to MySQL: a user's, and those of an older version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.engines.engine import Server, ending
from dbdyno.engines.mariadb import data as of_mariadb
from dbdyno.engines.mysql.server import SERVER, start
from dbdyno.engines.server import ACCOUNT, DATABASE
from dbdyno.engines.upgrade import STOP_S, series_of
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import program
from dbdyno.user_data.dump import Dump

ADOPTION = f"""\
CREATE USER IF NOT EXISTS {ACCOUNT}@localhost IDENTIFIED BY '';
ALTER USER {ACCOUNT}@localhost IDENTIFIED BY '' ACCOUNT UNLOCK;
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS {DATABASE};
RESET REPLICA ALL;
"""

writes = of_mariadb.writes
bring_in = of_mariadb.bring_in
require_recovered = of_mariadb.require_recovered
databases = of_mariadb.databases
settle = of_mariadb.settle


def require_dump(installation: Installation, dump: Dump) -> None:
    _client(installation)
    of_mariadb.require_text(dump)


def require_folder(version: str, source: Path) -> None:
    of_mariadb.require_family(source)
    if not (source / "mysql.ibd").exists():
        raise UserError(f"{source} is not a data folder of MySQL 8 or later", 'is it engine = "mariadb"?')
    of_mariadb.require_version(version, source, _version_of(source), "MySQL")


def load(
    installation: Installation, server: Server, _data: Path, dump: Dump, database: str, tell: Tell
) -> list[str]:
    return of_mariadb.loaded(_client(installation), server, dump, database, tell)


@contextmanager
def adopt(_installation: Installation, data: Path) -> Iterator[Mapping[str, Level]]:
    with of_mariadb.by_statements(data, ADOPTION) as first:
        # Without its notes the log tells of no recovery, and a replica would go to its source.
        yield {**first, "log_error_verbosity": 3, "skip_replica_start": "ON"}


def _client(installation: Installation) -> list[str]:
    return program(installation, SERVER.client, "mysql")


def _version_of(source: Path) -> str:
    with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        history = json.loads((source / "mysql_upgrade_history").read_text())
        return str(history["upgrade_history"][-1]["version"])
    return ""


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 2)


def lacking(_old: Installation, _new: Installation) -> DynoError | None:
    return None


def take_over(
    _old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    server = start(new, data, runtime, creation, Launch())
    with ending(server, STOP_S):
        pass
    return "the server's first start"
