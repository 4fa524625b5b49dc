"""How MySQL takes data that a user brings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.engines.engine import Server
from dbdyno.engines.mariadb import taking
from dbdyno.engines.mysql.obtaining import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
from dbdyno.obtain.client import program
from dbdyno.obtain.installation import Installation
from dbdyno.user_data.dump import Dump

ADOPTION = f"""\
CREATE USER IF NOT EXISTS {ACCOUNT}@localhost IDENTIFIED BY '';
ALTER USER {ACCOUNT}@localhost IDENTIFIED BY '' ACCOUNT UNLOCK;
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS {DATABASE};
RESET REPLICA ALL;
"""

writes = taking.writes
bring_in = taking.bring_in
require_recovered = taking.require_recovered
databases = taking.databases
settle = taking.settle


def require_dump(installation: Installation, dump: Dump) -> None:
    _client(installation)
    taking.require_text(dump)


def require_folder(version: str, source: Path) -> None:
    taking.require_family(source)
    if not (source / "mysql.ibd").exists():
        raise UserError(f"{source} is not a data folder of MySQL 8 or later", 'is it engine = "mariadb"?')
    taking.require_version(version, source, _version_of(source), "MySQL")


def load(
    installation: Installation, server: Server, _data: Path, dump: Dump, database: str, tell: Tell
) -> list[str]:
    return taking.loaded(_client(installation), server, dump, database, tell)


@contextmanager
def adopt(_installation: Installation, data: Path) -> Iterator[Mapping[str, Level]]:
    with taking.by_statements(data, ADOPTION) as first:
        # Without its notes the log tells of no recovery, and a replica would go to its source.
        yield {**first, "log_error_verbosity": 3, "skip_replica_start": "ON"}


def _client(installation: Installation) -> list[str]:
    return program(installation, SERVER.client, "mysql")


def _version_of(source: Path) -> str:
    with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        history = json.loads((source / "mysql_upgrade_history").read_text())
        return str(history["upgrade_history"][-1]["version"])
    return ""
