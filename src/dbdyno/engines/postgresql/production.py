"""How PostgreSQL is deployed, as Debian lays it out: a service and a folder for each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.engines.production import Production
from dbdyno.engines.values import as_text
from dbdyno.frozen import Level

PLAIN = re.compile(r"[\w.+-]+")
"""What stands in a postgresql.conf without quotes."""


def written(settings: Mapping[str, Level]) -> str:
    """Lines of a `postgresql.conf`."""
    return "".join(f"{name} = {_quoted(as_text(level))}\n" for name, level in settings.items())


def _quoted(value: str) -> str:
    """The server reads escapes in quotes as well."""
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", r"\\").replace("'", "''")
    return f"'{escaped}'"


PRODUCTION = Production(
    file="90-dyno.conf",
    written=written,
    version_sql="SHOW server_version",
    data_sql="SHOW data_directory",
    protocols=("postgresql", "postgres"),
    folder="/etc/postgresql/{release}/main/conf.d",
    service="postgresql@{release}-main",
    port=5432,
    # pg_ctlcluster drops the environment of its unit, and reads this file.
    environment="/etc/postgresql/{release}/main/environment",
    # Debian's cluster lets in the user of its own role, and `apply` runs as root.
    client="runuser -u postgres -- psql --no-psqlrc --no-align --tuples-only --command",
)
