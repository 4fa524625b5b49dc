"""SQLite from nothing to a database that the load process can open."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.engines.sqlite.settings import CREATION, PRAGMAS, pragma
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

DATABASE = "dyno.sqlite"


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 10_000_000, "an SQLite database")
    data.mkdir(mode=0o700)
    connection = sqlite3.connect(data / DATABASE)
    try:
        for name in sorted(CREATION):
            if name in settings:
                connection.execute(f"PRAGMA {name} = {pragma(name, settings[name])}")
        # An empty file has no header yet: this writes it, and with it what was chosen.
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        shutil.rmtree(data, ignore_errors=True)
        raise ServerFailed(f"SQLite could not make its database: {error}", "see sqlite.org/pragma") from None
    finally:
        connection.close()


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> EmbeddedServer:
    database = data / DATABASE
    require_database(database)
    refuse_unknown(settings, PRAGMAS, "Dyno cannot set SQLite's", f"there are: {', '.join(sorted(PRAGMAS))}")
    chosen = {name: level for name, level in settings.items() if name not in CREATION}
    pragmas = "&".join(f"{name}={quote(pragma(name, level))}" for name, level in chosen.items())
    return EmbeddedServer(
        url=f"sqlite://{quote(str(database), safe='/')}{'?' if pragmas else ''}{pragmas}",
        version=installation.version,
        driver_environment=dict(launch.environment),
    )
