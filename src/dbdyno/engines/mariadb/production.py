"""How MariaDB is deployed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.engines.mariadb import levels
from dbdyno.engines.production import Production
from dbdyno.frozen import Level

PLAIN = re.compile(r"[\w.,:=+/-]+")
"""What stands in an option file without quotes."""


def written(settings: Mapping[str, Level]) -> str:
    """An option file for the server of every version."""
    return "\n".join(["[mysqld]", *(_line(name, level) for name, level in settings.items())]) + "\n"


def _line(name: str, level: Level) -> str:
    """As on the command line, where some settings are switched by their names alone."""
    key, given, value = levels.option(name, level).removeprefix("--").partition("=")
    # A log that is switched on keeps the file that the server in production gives it.
    named = given and not levels.is_switched_on(name, level)
    return f"{key.replace('-', '_')} = {_quoted(value)}" if named else key.replace("-", "_")


def _quoted(value: str) -> str:
    """The server reads escapes in quotes as well."""
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


PRODUCTION = Production(
    file="90-dyno.cnf",
    written=written,
    version_sql="SELECT VERSION()",
    data_sql="SELECT @@datadir",
    protocols=("mysql", "mariadb"),
    folder="/etc/mysql/mariadb.conf.d",
    service="mariadb",
    port=3306,
    client="mariadb --batch --skip-column-names --execute",
    limits={"open_files_limit": "LimitNOFILE"},
    release_parts=2,
)
