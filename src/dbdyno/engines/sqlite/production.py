"""How SQLite is deployed: by statements that an application runs on each of its connections."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dbdyno.engines.production import Production
from dbdyno.engines.sqlite.settings import CREATION, pragma
from dbdyno.frozen import Level


def written(settings: Mapping[str, Level]) -> str:
    """Statements for the beginning of a connection."""
    return "".join(f"PRAGMA {name} = {pragma(name, level)};\n" for name, level in settings.items())


def _by_vacuum(name: str, level: Level) -> str:
    """A pragma that is fixed when a file is made, or made anew."""
    return f"sqlite3 DATABASE 'PRAGMA journal_mode = delete; PRAGMA {name} = {pragma(name, level)}; VACUUM'"


PRODUCTION = Production(
    file="connection.sql",
    written=written,
    version_sql="SELECT sqlite_version()",
    data_sql="SELECT file FROM pragma_database_list WHERE name = 'main'",
    protocols=("sqlite",),
    comment="--",
    in_data={name: partial(_by_vacuum, name) for name in sorted(CREATION)},
)
